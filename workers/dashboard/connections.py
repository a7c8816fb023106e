"""The HTTP server of the page: its connections are bounded, and none can keep others away.

Tornado bounds the time for the head of a request and for a body, but neither the number of
connections, nor those that became websockets. Here all count. When the places are full, a new
connection takes the place of the oldest one that has sent no complete head; if there is none, of
the oldest one that is no websocket. So idle and slow clients lose their places, in order, and a
client that sends its request at once is served.
"""

import logging
from typing import Any
from weakref import WeakSet

from tornado.httpserver import HTTPServer
from tornado.httputil import (
    HTTPConnection,
    HTTPHeaders,
    HTTPMessageDelegate,
    RequestStartLine,
    ResponseStartLine,
)
from tornado.iostream import IOStream
from typing_extensions import override

MAX_CONNECTIONS = 512
"""Connections at the same time: a browser has up to six, and one of them is its websocket."""

MAX_SOCKETS = 256
"""Websockets at the same time, so that places for requests remain."""

HEAD_SECONDS = 10.0
"""Seconds for a client to send the head of a request, and to send its body."""

LOGGER = "online_svm.dashboard"

log = logging.getLogger(LOGGER)


class BoundedServer(HTTPServer):
    """An HTTP server with at most `most` connections, websockets included."""

    @override
    def initialize(self, app: Any, most: int, **options: Any) -> None:  # type: ignore[override]
        options |= {"idle_connection_timeout": HEAD_SECONDS, "body_timeout": HEAD_SECONDS}
        super().initialize(app, **options)
        self._most = most
        self._streams: dict[IOStream, None] = {}  # in the order in which they connected
        self._waiting: dict[IOStream, None] = {}  # those without a complete head, the oldest first
        self._websockets: WeakSet[IOStream] = WeakSet()

    @override
    def handle_stream(self, stream: IOStream, address: tuple[Any, ...]) -> None:
        """Serve a new connection; if there are too many, close another one."""
        if len(self._streams) >= self._most:
            self._streams = {one: None for one in self._streams if not one.closed()}
        if len(self._streams) >= self._most and not self._close_oldest():
            log.error("too many websockets are open: a connection was refused")
            stream.close()
            return
        self._streams[stream] = None
        super().handle_stream(stream, address)

    def _close_oldest(self) -> bool:
        """Close the connection whose place a new one takes; return whether there is one."""
        plain = (one for one in self._streams if one not in self._websockets)
        found = next(iter(self._waiting), None) or next(plain, None)
        if found is None:
            return False
        log.error("too many connections are open: the oldest one without a request was closed")
        self._streams.pop(found, None)
        self._waiting.pop(found, None)
        found.close()
        return True

    def take_socket(self, stream: IOStream) -> bool:
        """Count a connection as a websocket from now on; return whether there is a place for it."""
        if sum(not one.closed() for one in self._websockets) >= MAX_SOCKETS:
            log.error("too many websockets are open: one was refused")
            return False
        self._websockets.add(stream)
        return True

    @override
    def start_request(self, server_conn: Any, request_conn: HTTPConnection) -> HTTPMessageDelegate:
        """Wait for the head of a request."""
        self._waiting[server_conn.stream] = None
        delegate = super().start_request(server_conn, request_conn)
        return _Head(delegate, self._waiting, server_conn.stream)

    @override
    def on_close(self, server_conn: Any) -> None:
        """Forget the connection; one that became a websocket keeps its place until it closes."""
        self._waiting.pop(server_conn.stream, None)
        super().on_close(server_conn)


class _Head(HTTPMessageDelegate):
    """Passes a request on; notes when its head is complete."""

    def __init__(
        self, delegate: HTTPMessageDelegate, waiting: dict[IOStream, None], stream: IOStream
    ) -> None:
        self._delegate, self._waiting, self._stream = delegate, waiting, stream
        self.data_received = delegate.data_received  # type: ignore[method-assign]  # as it is
        self.finish = delegate.finish  # type: ignore[method-assign]
        self.on_connection_close = delegate.on_connection_close  # type: ignore[method-assign]

    @override
    def headers_received(
        self, start_line: RequestStartLine | ResponseStartLine, headers: HTTPHeaders
    ) -> Any:
        self._waiting.pop(self._stream, None)
        return self._delegate.headers_received(start_line, headers)
