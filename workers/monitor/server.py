"""The HTTP server of the endpoint: `/metrics`, `/livez` and `/readyz`, in threads of its own."""

import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from socketserver import TCPServer, ThreadingMixIn
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry, make_wsgi_app
from typing_extensions import override

from workers.monitor.address import Address
from workers.monitor.health import Probes
from workers.printable import printable

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

CONNECTIONS = 16
"""Connections at once; Prometheus and a probe need one each.

Where there are more, the one that has asked for nothing for longest is closed.
"""

CLIENT_SECONDS = 5.0
"""Seconds for which a client that says nothing is listened to."""

_TEXT = [("Content-Type", "text/plain; charset=utf-8"), ("Cache-Control", "no-store")]
_PATHS = "/metrics, /livez, /readyz"


class Endpoint:
    """The WSGI application.

    Parameters
    ----------
    registry : CollectorRegistry
    health : Probes
    """

    def __init__(self, registry: CollectorRegistry, health: Probes) -> None:
        self._metrics = make_wsgi_app(registry)
        self._probes: dict[str, Callable[[], list[str]]] = {
            "/livez": health.dead,
            "/readyz": health.unready,
        }

    def __call__(self, environ: "WSGIEnvironment", start: "StartResponse") -> Iterable[bytes]:
        """Answer one request."""
        path = environ.get("PATH_INFO", "")
        if path == "/metrics":
            answered: Iterable[bytes] = self._metrics(environ, start)
            return answered
        if path not in self._probes:
            return _text(start, "404 Not Found", f"there are {_PATHS}")
        if environ.get("REQUEST_METHOD") not in ("GET", "HEAD"):
            return _text(start, "405 Method Not Allowed", "use GET")
        failing = self._probes[path]()
        if failing:
            # One line: what probes log.
            told = printable(" ".join("; ".join(failing).split()))
            return _text(start, "503 Service Unavailable", told)
        return _text(start, "200 OK", "ok")


def _text(start: "StartResponse", status: str, line: str) -> Iterable[bytes]:
    start(status, list(_TEXT))  # the server adds to it
    return [line.encode(errors="backslashreplace") + b"\n"]


class _Handler(WSGIRequestHandler):
    timeout = CLIENT_SECONDS
    server: "_Server"

    @override
    def parse_request(self) -> bool:
        self.server.clients.has_asked(self.request)
        return super().parse_request()

    @override
    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: a scrape a second would hide the log of the worker."""

    @override
    def get_stderr(self) -> Any:
        """Return what swallows the traceback of a client that went away."""
        return _Nowhere()


class _Nowhere:
    def write(self, _text: str) -> None:
        """Write nothing."""

    def flush(self) -> None:
        """Do nothing."""


class _Clients:
    """The open connections, at most `CONNECTIONS`; those that asked for nothing make room."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._silent: dict[socket.socket, None] = {}  # in the order in which they came
        self._asking: set[socket.socket] = set()

    def has_room_for(self, client: socket.socket) -> bool:
        """Take a client in; return False if all the others are being answered."""
        with self._lock:
            if len(self._silent) + len(self._asking) >= CONNECTIONS:
                if not self._silent:
                    return False
                self._turn_away(next(iter(self._silent)))
            self._silent[client] = None
            return True

    def has_asked(self, client: socket.socket) -> None:
        """Note that a client began its request."""
        with self._lock:
            if client in self._silent:
                del self._silent[client]
                self._asking.add(client)

    def gone(self, client: socket.socket) -> None:
        """Note that a client is answered, or closed."""
        with self._lock:
            self._silent.pop(client, None)
            self._asking.discard(client)

    def _turn_away(self, client: socket.socket) -> None:
        """End a connection; its thread sees the end, and closes it."""
        del self._silent[client]
        with suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True
    request_queue_size = CONNECTIONS

    def __init__(self, address: Address, application: Endpoint) -> None:
        self.address_family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        self.clients = _Clients()
        super().__init__((address.host, address.port), _Handler)
        self.set_app(application)

    @override
    def process_request(self, request: Any, client_address: Any) -> None:
        if self.clients.has_room_for(request):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    @override
    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.clients.gone(request)

    @override
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a client that broke off."""

    @override
    def server_bind(self) -> None:
        # The inherited method asks the name service for the name of this machine.
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]
        self.setup_environ()


@contextmanager
def serving(address: Address, application: Endpoint) -> Iterator[Address]:
    """Serve within the block; yield where.

    Raises
    ------
    BadConfiguration
        If nothing can listen there.
    """
    try:
        server = _Server(address, application)
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
