"""The HTTP server of `/metrics`, `/livez` and `/readyz`, in separate threads.

An orchestrator kills a worker whose probes fail, so no other connection may delay a probe. The
number of concurrent scrapes is bounded. If too many connections have not sent a whole request, the
oldest is closed. The server of prometheus-client starts a thread for each connection, without a
bound, which waits for ever for the rest of a request. The server of tornado has no bound of
connections either, and one slow scrape would delay its probes.
"""

import errno
import re
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from http import HTTPMethod
from io import BufferedReader, StringIO
from socketserver import TCPServer, ThreadingMixIn
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry, make_wsgi_app
from typing_extensions import override

from workers.config.listening import LOOPBACK
from workers.errors import BadConfiguration
from workers.text import printable

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment


class Address(NamedTuple):
    """A host and a port; port 0 takes a free one."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Return the address of a text such as `9464`, `0.0.0.0:9464` or `[::]:9464`.

        Raises BadConfiguration for any other text.
        """
        found = re.fullmatch(r"(?:(\[[0-9A-Fa-f:.]+\]|[^\[\]:/\s]*):)?([0-9]{1,5})", text)
        if found is None or int(found[2]) > 65_535:
            raise BadConfiguration(
                f"setting metrics: {text[:80]!r} is no address: write a port, or host:port "
                "(0.0.0.0:9464 listens on every network of this machine)"
            )
        return cls((found[1] or LOOPBACK).strip("[]"), int(found[2]))

    def check(self) -> None:
        """Raise BadConfiguration if this machine has no such address, or this user may not use it.

        A port in use is accepted.
        """
        with socket.socket(socket.AF_INET6 if ":" in self.host else socket.AF_INET) as probe:
            try:
                probe.bind((self.host, self.port))
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise self.unusable(error) from None

    def unusable(self, error: OSError) -> BadConfiguration:
        """Return the error for an address at which nothing can listen."""
        return BadConfiguration(
            f"setting metrics: nothing can listen on {self}: {error.strerror or error}"
        )

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


MAX_WAITING_CONNECTIONS = 64
"""Connections that have not sent a whole request; beyond these the oldest is closed."""

MAX_SCRAPES = 8  # concurrent requests other than probes; Prometheus needs one
CLIENT_SECONDS = 5.0  # timeout of a client that sends nothing, or does not read its answer
_HEAD_BYTES = 1 << 14  # bytes read of a request line and its headers; later headers are ignored

_TEXT = [("Content-Type", "text/plain; charset=utf-8"), ("Cache-Control", "no-store")]
_PROBES = ("/livez", "/readyz")
_PATHS = ", ".join(("/metrics", *_PROBES))


class Probes(Protocol):
    """The failures of a process."""

    def unready(self) -> list[str]:
        """Return the reasons why it is not ready; empty if it is."""

    def dead(self) -> list[str]:
        """Return the reasons to restart it; empty if it is live."""


class Endpoint:
    """The WSGI application of the metrics and the probes."""

    def __init__(self, registry: CollectorRegistry, health: Probes) -> None:
        self._metrics = make_wsgi_app(registry)
        checks: tuple[Callable[[], list[str]], ...] = (health.dead, health.unready)
        self._probes = dict(zip(_PROBES, checks, strict=True))

    def __call__(self, environ: "WSGIEnvironment", start: "StartResponse") -> Iterable[bytes]:
        """Answer one request."""
        path = environ.get("PATH_INFO", "")
        if path == "/metrics":
            answered: Iterable[bytes] = self._metrics(environ, start)
            return answered
        if path not in self._probes:
            return _text(start, "404 Not Found", f"there are {_PATHS}")
        if environ.get("REQUEST_METHOD") not in (HTTPMethod.GET, HTTPMethod.HEAD):
            return _text(start, "405 Method Not Allowed", "use GET")
        failing = self._probes[path]()
        if failing:
            # On one line: an orchestrator logs it.
            line = printable(" ".join("; ".join(failing).split()))
            return _text(start, "503 Service Unavailable", line)
        return _text(start, "200 OK", "ok")


def _text(start: "StartResponse", status: str, line: str) -> Iterable[bytes]:
    start(status, list(_TEXT))  # a copy: the server appends headers to it
    return [line.encode(errors="backslashreplace") + b"\n"]


class _Handler(WSGIRequestHandler):
    timeout = CLIENT_SECONDS
    server: "_MetricsServer"

    @override
    def setup(self) -> None:
        super().setup()
        self.rfile = _Head(self.rfile.detach())

    @override
    def parse_request(self) -> bool:
        if not super().parse_request():
            return False
        if self.server.clients.admits(self.request, self.path.partition("?")[0]):
            return True
        self.send_error(503, explain="too many requests at once")
        return False

    @override
    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: frequent scrapes would hide the worker's log."""

    @override
    def get_stderr(self) -> Any:
        """Return a stream that drops tracebacks of clients that disconnected."""
        return StringIO()


class _Head(BufferedReader):
    """A request whose head is read up to a bound."""

    _left = _HEAD_BYTES

    @override
    def readline(self, size: int | None = -1, /) -> bytes:
        line = super().readline(self._left if size is None or size < 0 else min(size, self._left))
        self._left -= len(line)
        return line


class _Clients:
    """The open connections."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[socket.socket, None] = {}  # for a request, the oldest first
        self._scrapes: set[socket.socket] = set()  # being answered

    def add(self, client: socket.socket) -> None:
        """Add a connection without a request; close the oldest if there are too many."""
        with self._lock:
            if len(self._waiting) >= MAX_WAITING_CONNECTIONS:
                oldest = next(iter(self._waiting))
                del self._waiting[oldest]
                with suppress(OSError):
                    oldest.shutdown(socket.SHUT_RDWR)  # its thread then closes it
            self._waiting[client] = None

    def admits(self, client: socket.socket, path: str) -> bool:
        """Return whether the request that a client has sent may be answered now."""
        with self._lock:
            self._waiting.pop(client, None)
            if path in _PROBES:
                return True
            if len(self._scrapes) >= MAX_SCRAPES:
                return False
            self._scrapes.add(client)
            return True

    def remove(self, client: socket.socket) -> None:
        """Remove a connection that was answered or closed."""
        with self._lock:
            self._waiting.pop(client, None)
            self._scrapes.discard(client)


class _MetricsServer(ThreadingMixIn, WSGIServer):
    daemon_threads = True
    request_queue_size = MAX_WAITING_CONNECTIONS

    def __init__(self, address: Address, application: Endpoint) -> None:
        self.address_family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        self.clients = _Clients()
        super().__init__((address.host, address.port), _Handler)
        self.set_app(application)

    @override
    def process_request(self, request: Any, client_address: Any) -> None:
        self.clients.add(request)
        super().process_request(request, client_address)

    @override
    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.clients.remove(request)

    @override
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors of clients that disconnected."""

    @override
    def server_bind(self) -> None:
        # The inherited method would look up the name of this machine by DNS.
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]
        self.setup_environ()


@contextmanager
def serving(address: Address, application: Endpoint) -> Iterator[Address]:
    """Serve within the block; yield the address. BadConfiguration: nothing can listen there."""
    try:
        server = _MetricsServer(address, application)
    except OSError as error:
        raise address.unusable(error) from None
    thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()
    try:
        yield Address(address.host, server.server_address[1])
    finally:
        with suppress(OSError):
            server.shutdown()
            server.server_close()
        thread.join(1.0)
