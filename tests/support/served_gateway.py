"""A gateway in a thread of a test, and a client of it without further packages."""

import http.client
import json
import threading
from contextlib import contextmanager

from processes import LIMIT, free_port
from system_tools import package
from world import Worker, wait_until

for name in ("starlette", "uvicorn"):  # without them the tests that import this are skipped
    package(name, "pip install 'online-svm[http]'")

import described  # noqa: E402

from workers.gateway.gateway import Gateway  # noqa: E402
from workers.gateway.limits import GatewayLimits  # noqa: E402
from workers.gateway.server import GatewayServer  # noqa: E402
from workers.gateway.tokens import Tokens  # noqa: E402


class Reply:
    """A response: its status, its headers in any case, its body, also as JSON."""

    def __init__(self, response):
        self.status, self.headers = response.status, response.headers
        self.body = response.read()

    @property
    def json(self):
        return json.loads(self.body)


class Client:
    """Sends requests to one gateway, each on a connection of its own.

    Each response must be one that the OpenAPI document describes.
    """

    def __init__(self, port, **headers):
        self.port, self._headers = port, headers

    def ask(self, method, path, body=None, **headers):
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        sent = {"Content-Type": "application/json"} if body is not None else {}
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT)
        try:
            connection.request(method, path, body, sent | self._headers | named)
            reply = Reply(connection.getresponse())
        finally:
            connection.close()
        described.check(method, path, reply.status, reply.headers["Content-Type"], reply.body)
        return reply

    def get(self, path, **headers):
        return self.ask("GET", path, **headers)

    def post(self, path, body, **headers):
        return self.ask("POST", path, body, **headers)


@contextmanager
def serving(url, *feeds, tokens=None, **limits):
    """Serve feeds in a thread; yield a client."""
    gateway = Gateway(url, feeds, Tokens(tokens), GatewayLimits(**limits))
    server = GatewayServer(gateway, port=0)
    thread = threading.Thread(target=server.run, name="gateway", daemon=True)
    thread.start()
    try:
        yield Client(server.port)
    finally:
        server.stop()
        thread.join(LIMIT)
        assert not thread.is_alive()


@contextmanager
def gateway_process(url, *feeds, options=()):
    """Run the command `gateway`; yield its process and a client, once Redis is connected."""
    port = free_port()
    command = ("gateway", *feeds, "--redis", url, "--port", port, *options)
    with Worker(*command) as process:
        client = Client(port)
        wait_until(lambda: _takes(client, feeds[0]), why="the gateway takes entries")
        yield process, client


def _takes(client, feed):
    try:
        return client.get(f"/feeds/{feed}/answers/1-1").status == 404
    except ConnectionError:
        return False
