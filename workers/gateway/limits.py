"""Bounds of a request: its body, its headers, how long it may take, and the host it names."""

import asyncio
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send
from typing_extensions import override
from uvicorn.protocols.http.h11_impl import H11Protocol

from workers.gateway.refused import Refused

HEADER_BYTES = 1 << 14
"""Bytes of the headers of a request."""

CLIENT_SECONDS = 10.0
"""Seconds for the headers of a request, and for its body."""


@dataclass(frozen=True, slots=True)
class GatewayLimits:
    """What a gateway takes.

    Attributes
    ----------
    high_water : int
        Entries of a feed that may wait for its worker.
    max_body : int
        Bytes of the body of a request.
    connections : int
        Connections at the same time.
    max_timeout : float
        Seconds that a request may wait for answers.
    """

    high_water: int = 10_000
    max_body: int = 1 << 20
    connections: int = 2000
    max_timeout: float = 60.0


async def json_body(request: Request, most: int) -> bytes:
    """Return the body of a request, which is JSON by its headers.

    Clients of the Open Inference Protocol may name no kind. A browser may do so as well, for a page
    of another site, but says then where the request comes from.

    Raises
    ------
    Refused
        415 for another kind, 413 for more than `most` bytes, 408 where it does not come.
    """
    headers = request.headers
    if "inference-header-content-length" in headers:
        raise Refused(415, "no binary tensors: send their data as JSON, in tritonclient by "
                           "set_data_from_numpy(array, binary_data=False)")  # fmt: skip
    is_of_browser = "origin" in headers or "sec-fetch-site" in headers
    kind = headers.get("content-type", "" if is_of_browser else "application/json")
    kind = kind.partition(";")[0].strip().lower()
    if kind != "application/json" or headers.get("content-encoding"):
        # A page of another site can send no such request without asking this server, which refuses.
        raise Refused(415, "send Content-Type: application/json, not encoded otherwise")
    length = request.headers.get("content-length", "0")
    if int(length) > most:
        raise Refused(413, f"the body has {length} bytes; send at most {most}")
    found = bytearray()
    try:
        async with asyncio.timeout(CLIENT_SECONDS):
            async for chunk in request.stream():
                found += chunk
                if len(found) > most:
                    raise Refused(413, f"the body is larger than {most} bytes")
    except TimeoutError:
        raise Refused(408, f"the body did not come within {CLIENT_SECONDS:g} s") from None
    return bytes(found)


def seconds(request: Request, most: float, default: float = 5.0) -> float:
    """Return how long a request waits for answers: `timeout` of its query.

    Raises
    ------
    Refused
        422 if that is no number from 0 to `most`.
    """
    text = request.query_params.get("timeout")
    try:
        found = min(default, most) if text is None else float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found <= most:
        raise Refused(422, f"timeout: send seconds from 0 to {most:g}")
    return found


class RequestCheck:
    """Refuses large headers, and a `Host` that a page of another site made a browser send.

    Parameters
    ----------
    app : ASGI application
    hosts : set of str, optional
        What `Host` may be; by default anything.
    """

    def __init__(self, app: ASGIApp, hosts: frozenset[str] | None = None) -> None:
        self._app = app
        self._hosts = None if hosts is None else frozenset(host.encode() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        refused = self._refused(scope["headers"]) if scope["type"] == "http" else None
        if refused is None:
            await self._app(scope, receive, send)
        else:
            await refused(scope, receive, send)

    def _refused(self, headers: list[tuple[bytes, bytes]]) -> Response | None:
        if sum(len(name) + len(value) for name, value in headers) > HEADER_BYTES:
            return JSONResponse({"error": f"the headers have more than {HEADER_BYTES} bytes"}, 431)
        named = [value.lower() for name, value in headers if name == b"host"]
        if self._hosts is None or (len(named) == 1 and named[0] in self._hosts):
            return None
        return JSONResponse({"error": "Host: this is not a name of this gateway"}, 421)


class PromptProtocol(H11Protocol):
    """HTTP for clients that send the headers of a request in time; others are disconnected.

    uvicorn waits for ever for the first request, and for the rest of the headers of a later one.
    """

    _timer: asyncio.TimerHandle | None = None
    _seen: object = None

    @override
    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._timer = self.loop.call_later(CLIENT_SECONDS, self._check)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def _check(self) -> None:
        """Disconnect where no request came since the check before this one."""
        is_at_work = self.cycle is not None and not self.cycle.response_complete
        if not is_at_work and self.cycle is self._seen:
            self.transport.close()
            return
        self._seen = None if is_at_work else self.cycle
        self._timer = self.loop.call_later(CLIENT_SECONDS, self._check)
