"""The server of the gateway: uvicorn on one socket, until a signal.

Clients that do not send a request in time, or do not read its response, are disconnected. uvicorn
parses requests, bounds incomplete headers (`h11_max_incomplete_event_size`), connections
(`limit_concurrency`) and the pause between two requests (`timeout_keep_alive`), and reports a
client that hung up. It has no other time limits. So the following is done here:

- The timer of `timeout_keep_alive` also runs from the connection on, until the headers of a request
  are complete. uvicorn starts it after a response, and stops it at the next byte.
- A client that does not read its response is disconnected. uvicorn's flow control would wait for
  it, even when the connection is being closed.
- A pipelined request is not answered, and the connection is closed after the response to the
  previous one, as RFC 9112 (9.3.2) allows. uvicorn keeps such requests, and stops reading
  meanwhile, so that it would not notice that the client hung up.

`limits.json_body` limits the time for a body.
"""

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Iterator
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from typing_extensions import override
from uvicorn.protocols.http.flow_control import CLOSE_HEADER
from uvicorn.protocols.http.h11_impl import H11Protocol

from workers.config.listening import LOOPBACK, allowed_connections, is_loopback, listening
from workers.gateway import limits
from workers.gateway.app import application
from workers.gateway.gateway import Gateway
from workers.gateway.inference_protocol import InferenceProtocol

DEFAULT_PORT = 8080

SEND_BYTES = 1 << 16
"""Size of the kernel's send buffer: the progress of a reading client is visible in such steps."""

_MIN_READ_BYTES = 1 << 14  # in half of `CLIENT_SECONDS`
_GRACE = 10  # seconds to finish responses at a stop


class _PromptProtocol(H11Protocol):
    """The protocol of one connection, with the additional time limits."""

    _next_check: asyncio.TimerHandle | None = None
    _response: object = None  # being written at the last check
    _unread = 0  # its bytes that the client had not read

    @override
    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.timeout_keep_alive_task = self.loop.call_later(
            self.timeout_keep_alive, self.timeout_keep_alive_handler
        )
        self._check_reads()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if self._next_check is not None:
            self._next_check.cancel()
        super().connection_lost(exc)

    @override
    def data_received(self, data: bytes) -> None:
        """Receive a part of a request; stop the timer when its headers are complete."""
        cycle, is_ahead = self.cycle, self._is_answering
        if not is_ahead:
            self.conn.receive_data(data)
            self.handle_events()
            if self.cycle is not cycle:
                self._unset_keepalive_if_required()
            is_ahead = self._is_answering and bool(self.conn.trailing_data[0])
        if is_ahead and self.cycle.keep_alive:
            self.cycle.scope["headers"].append(CLOSE_HEADER)  # as if the client had sent it
            self.cycle.keep_alive = False

    @property
    def _is_answering(self) -> bool:
        """Whether the request is complete and its response is not."""
        cycle = self.cycle
        return cycle is not None and not cycle.more_body and not cycle.response_complete

    def _check_reads(self) -> None:
        """Disconnect a client that has read too little since the last check."""
        unread = self.transport.get_write_buffer_size()
        response = self.cycle, self.cycle is not None and self.cycle.response_complete
        if unread and response == self._response and self._unread - unread < _MIN_READ_BYTES:
            self.transport.abort()
            return
        self._response, self._unread = response, unread
        self._next_check = self.loop.call_later(limits.CLIENT_SECONDS / 2, self._check_reads)


class GatewayServer:
    """A gateway on a port, 0 for any free one. Raises BadConfiguration if it cannot listen."""

    def __init__(self, gateway: Gateway, address: str = LOOPBACK, port: int = DEFAULT_PORT) -> None:
        self._gateway = gateway
        self._socket = listening(address, port)
        # Connections inherit it.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES)
        self.port: int = self._socket.getsockname()[1]
        host = f"[{address}]" if ":" in address else address
        self.link = f"http://{host}:{self.port}/"
        names = (LOOPBACK, "localhost", "[::1]", host)
        routes = InferenceProtocol(gateway).routes
        ours = frozenset(f"{name}:{self.port}" for name in names)
        app = limits.RequestCheck(
            application(gateway, routes), ours if is_loopback(address) else None
        )
        self._server = _Server(_config(app, gateway.limits.connections))

    def run(self) -> None:
        """Serve until `stop`, SIGTERM or SIGINT; finish the current responses."""
        asyncio.run(self._serve())

    def stop(self) -> None:
        """End `run`; may be called in any thread."""
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
    """uvicorn's server without signal handlers."""

    @override
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _config(app: ASGIApp, connections: int) -> uvicorn.Config:
    # uvicorn's log would contain data of clients, and a line for each request.
    for name in ("uvicorn.error", "uvicorn.access"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return uvicorn.Config(
        app,
        http=_PromptProtocol,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        # uvicorn refuses the one that reaches it
        limit_concurrency=allowed_connections(connections) + 1,
        backlog=1024,
        timeout_keep_alive=limits.CLIENT_SECONDS,
        timeout_graceful_shutdown=_GRACE,
        h11_max_incomplete_event_size=limits.HEADER_BYTES,
    )
