"""The server of the gateway: uvicorn on one socket, until a signal."""

import asyncio
import contextlib
import logging
import resource
import signal
from collections.abc import Iterator

import uvicorn
from starlette.types import ASGIApp
from typing_extensions import override

from workers.config.listening import LOOPBACK, is_loopback, listening
from workers.gateway.app import application
from workers.gateway.gateway import Gateway
from workers.gateway.inference_protocol import InferenceProtocol
from workers.gateway.limits import CLIENT_SECONDS, HEADER_BYTES, PromptProtocol, RequestCheck

PORT = 8080

_GRACE = 10  # seconds for the responses that are under way at a stop
_SPARE = 64  # descriptors beside connections


class GatewayServer:
    """A gateway on a port.

    Parameters
    ----------
    gateway : Gateway
    address : str
        IP address to listen on.
    port : int
        0 for any free one.

    Raises
    ------
    BadConfiguration
        If the port cannot be had.
    """

    def __init__(self, gateway: Gateway, address: str = LOOPBACK, port: int = PORT) -> None:
        self._gateway = gateway
        self._socket = listening(address, port)
        self.port: int = self._socket.getsockname()[1]
        host = f"[{address}]" if ":" in address else address
        self.link = f"http://{host}:{self.port}/"
        names = (LOOPBACK, "localhost", "[::1]", host)
        routes = InferenceProtocol(gateway).routes
        ours = frozenset(f"{name}:{self.port}" for name in names)
        app = RequestCheck(application(gateway, routes), ours if is_loopback(address) else None)
        self._server = _Server(_config(app, gateway.limits.connections))

    def run(self) -> None:
        """Serve until `stop`, SIGTERM or SIGINT; responses that are under way are finished."""
        asyncio.run(self._serve())

    def stop(self) -> None:
        """End `run`, from any thread."""
        self._server.should_exit = True

    async def _serve(self) -> None:
        with contextlib.suppress(ValueError, RuntimeError):  # not in the main thread
            for number in (signal.SIGINT, signal.SIGTERM):
                asyncio.get_running_loop().add_signal_handler(number, self.stop)
        ends = asyncio.create_task(self._end_waits())
        await self._server.serve([self._socket])
        ends.cancel()

    async def _end_waits(self) -> None:
        while not self._server.should_exit:
            await asyncio.sleep(0.05)
        await self._gateway.end_waits()


class _Server(uvicorn.Server):
    """uvicorn's server, which leaves signals to whoever runs it."""

    @override
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _config(app: ASGIApp, connections: int) -> uvicorn.Config:
    # Its lines hold what clients sent, and a line a request would hide all others.
    for name in ("uvicorn.error", "uvicorn.access"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return uvicorn.Config(
        app,
        http=PromptProtocol,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=_allowed(connections),
        backlog=1024,
        timeout_keep_alive=int(CLIENT_SECONDS),
        timeout_graceful_shutdown=_GRACE,
        h11_max_incomplete_event_size=HEADER_BYTES,
    )


def _allowed(connections: int) -> int:
    """Raise the limit of open files for so many connections; return how many it allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + _SPARE
    if soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with contextlib.suppress(OSError, ValueError):  # where this process may not raise it
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return max(1, min(connections, soft - _SPARE))
