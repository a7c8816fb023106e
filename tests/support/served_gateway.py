"""A gateway in a thread of a test, and a client of it without further packages."""

import http.client
import json
import threading
from contextlib import contextmanager

from processes import LIMIT

from workers.gateway.gateway import Gateway
from workers.gateway.limits import GatewayLimits
from workers.gateway.server import GatewayServer
from workers.gateway.tokens import Tokens


class Reply:
    """A response: its status, its headers whatever their case, its body, and that as JSON."""

    def __init__(self, response):
        self.status, self.headers = response.status, response.headers
        self.body = response.read()

    @property
    def json(self):
        return json.loads(self.body)


class Client:
    """Sends requests to one gateway, each on a connection of its own."""

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
            return Reply(connection.getresponse())
        finally:
            connection.close()

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
