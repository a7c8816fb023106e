"""Checks of a request: its body, its headers, its timeout, and its host."""

import asyncio
from dataclasses import dataclass

import orjson
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from workers.gateway.refused import MEDIA_TYPE, Refused, wrong

HEADER_BYTES = 1 << 14
"""Largest number of bytes of the headers of a request."""

CLIENT_SECONDS = 10.0
"""Seconds for a client to send the headers, to send the body, and to read the response."""


@dataclass(frozen=True, slots=True)
class GatewayLimits:
    """Limits of what a gateway accepts."""

    high_water: int = 10_000  # most entries of a feed that wait for its worker
    max_body: int = 1 << 20  # bytes
    connections: int = 2000  # at the same time
    max_timeout: float = 60.0  # seconds that a request may wait for answers
    states: int = 64  # published states that are kept, each of another feed


def refusal(error: Refused) -> Response:
    """Return the response of a refused request."""
    headers = {"Cache-Control": "no-store", **error.headers}
    return Response(orjson.dumps(error.body), error.status, headers, MEDIA_TYPE)


async def json_body(request: Request, most: int) -> bytes:
    """Return the body of a request that is JSON according to its headers.

    A client of the Open Inference Protocol need not send a content type. Nor need a browser, for a
    page of another site, but then its headers contain the origin of the request.

    Raises Refused: 415 for another content type; 413 for more than `most` bytes; 408 if it does not
    arrive in time.
    """
    headers = request.headers
    if "inference-header-content-length" in headers:
        raise Refused("binary_tensors")
    is_of_browser = "origin" in headers or "sec-fetch-site" in headers
    kind = headers.get("content-type", "" if is_of_browser else "application/json")
    kind = kind.partition(";")[0].strip().lower()
    if kind != "application/json" or headers.get("content-encoding"):
        # For a page of another site, a browser sends application/json only after a CORS preflight,
        # which this server refuses.
        raise Refused("type_unknown")
    length = request.headers.get("content-length", "0")
    if int(length) > most:
        raise Refused("body_too_large", most=most)
    found = bytearray()
    try:
        async with asyncio.timeout(CLIENT_SECONDS):
            async for chunk in request.stream():
                found += chunk
                if len(found) > most:
                    raise Refused("body_too_large", most=most)
    except TimeoutError:
        raise Refused("body_slow", seconds=CLIENT_SECONDS) from None
    except ClientDisconnect:
        raise Refused("body_incomplete") from None
    return bytes(found)


def parameter(request: Request, name: str) -> str | None:
    """Return a query parameter; None if it is absent. Raises Refused (422) if it is sent twice."""
    found = request.query_params.getlist(name)
    if len(found) > 1:
        raise wrong(name, "it is sent twice; send it once")
    return found[0] if found else None


def seconds(request: Request, most: float, default: float = 5.0) -> float:
    """Return the query parameter `timeout`, in seconds.

    Raises Refused: 422 if it is not a number from 0 to `most`.
    """
    text = parameter(request, "timeout")
    try:
        found = min(default, most) if text is None else float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found <= most:
        raise wrong("timeout", f"send seconds from 0 to {most:g}")
    return found


def max_stale(request: Request) -> int | None:
    """Return the query parameter `max_stale`, in examples; None if it is absent.

    Raises Refused: 422 if it is no whole number.
    """
    text = parameter(request, "max_stale")
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 16):
        raise wrong("max_stale", "send a whole number of examples")
    return int(text)


class RequestCheck:
    """Refuses large headers, ambiguous lengths, and hosts that do not belong to this gateway.

    uvicorn (h11) bounds only incomplete headers, accepts two lengths of a body, and does not check
    the `Host`, which DNS rebinding could abuse. Without `hosts` any host is accepted.
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
            await refusal(refused)(scope, receive, send)

    def _refused(self, headers: list[tuple[bytes, bytes]]) -> Refused | None:
        if sum(len(name) + len(value) for name, value in headers) > HEADER_BYTES:
            return Refused("headers_too_large", most=HEADER_BYTES)
        names = {name for name, _ in headers}
        if names >= {b"content-length", b"transfer-encoding"}:
            return Refused("two_lengths", headers={"Connection": "close"})
        named = [value.lower() for name, value in headers if name == b"host"]
        if self._hosts is None or (len(named) == 1 and named[0] in self._hosts):
            return None
        return Refused("host_unknown")
