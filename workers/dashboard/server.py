"""The web server of the page."""

import asyncio
import secrets
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Self

from bokeh.application import Application
from bokeh.application.handlers.function import FunctionHandler
from bokeh.document import Document
from bokeh.server.auth_provider import NullAuth
from bokeh.server.server import BaseServer
from bokeh.server.tornado import BokehTornado
from tornado.ioloop import IOLoop

from workers.config.listening import LOOPBACK, allowed_connections, check_address, listening
from workers.dashboard.connections import LOGGER, MAX_CONNECTIONS, BoundedServer
from workers.dashboard.follower import Follower
from workers.dashboard.handlers import HelpPage, TokenAuth, add_handlers
from workers.dashboard.page import make_page, refuse
from workers.dashboard.shown_feed import Choice
from workers.dashboard.text import HELP
from workers.log import one_line_a_cause

PORT = 5006

MAX_SESSIONS = 200  # browsers at the same time; each takes memory and a refresh a second
_MAX_MESSAGE_BYTES = 1 << 20  # size of a message from a browser


class Dashboard:
    """Serves the page of feeds (see `Follower`) on a port; port 0 is any free one.

    Without a token, a secret shared with the viewers, the address must be loopback.
    BadConfiguration: the token is missing, or the port cannot be used.
    """

    def __init__(
        self,
        url: str,
        feeds: Sequence[str] = (),
        address: str = LOOPBACK,
        port: int = PORT,
        token: str | None = None,
        owns: Callable[[str], bool] | None = None,
    ) -> None:
        check_address(address, token is not None)
        self._address, self._token = address, token
        one_line_a_cause("bokeh", "tornado", "asyncio", LOGGER)
        self._socket = listening(address, port)
        self.port: int = self._socket.getsockname()[1]
        self.follower = Follower(url, feeds, owns)

    @property
    def link(self) -> str:
        """The address of the page, without the token."""
        host = f"[{self._address}]" if ":" in self._address else self._address
        return f"http://{host}:{self.port}/"

    def run(self, until_input_ends: bool = False) -> None:
        """Serve until `stop`, or until a signal if this is the main thread.

        `until_input_ends` also stops when standard input ends, because the parent process ended.
        """
        asyncio.run(self._serve(until_input_ends))

    def stop(self) -> None:
        """End `run`, from any thread."""
        self._loop.add_callback(self._end.set)

    async def _serve(self, until_input_ends: bool) -> None:
        self._loop, self._end = IOLoop.current(), asyncio.Event()
        if until_input_ends:
            asyncio.get_running_loop().add_reader(sys.stdin.fileno(), self._end.set)
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                asyncio.get_running_loop().add_signal_handler(number, self._end.set)
        self.follower.start()
        server = self._server()
        server.start()
        try:
            await self._end.wait()
        finally:
            server.stop()
            self.follower.stop()

    def _server(self) -> BaseServer:
        application = Application(FunctionHandler(self._open))
        tornado = BokehTornado(
            {"/": application},
            extra_websocket_origins=self._origins(),
            extra_patterns=[(f"/{HELP}", HelpPage)],
            use_index=False,
            redirect_root=False,
            # No session opens without a signed session id, which only `PageHandler` gives out.
            secret_key=secrets.token_bytes(32),
            sign_sessions=True,
            include_headers=[],
            include_cookies=[],
            auth_provider=NullAuth() if self._token is None else TokenAuth(self._token),
            websocket_max_message_size_bytes=_MAX_MESSAGE_BYTES,
        )
        self._tornado = tornado
        most = allowed_connections(MAX_CONNECTIONS)
        http = BoundedServer(tornado, max_buffer_size=_MAX_MESSAGE_BYTES, most=most)
        add_handlers(tornado, tornado.applications["/"], http.take_socket)
        http.add_socket(self._socket)
        return BaseServer(IOLoop.current(), tornado, http)

    def _origins(self) -> list[str]:
        """Return the sites whose pages may open a websocket.

        Without a token, only this server. With a token, any: browsers send the login cookie
        (SameSite) only from pages of this server.
        """
        if self._token is not None:
            return ["*"]
        return [f"{host}:{self.port}" for host in (LOOPBACK, "localhost", "[::1]")]

    def _open(self, document: Document) -> None:
        if len(self._tornado.get_sessions("/")) >= MAX_SESSIONS:
            refuse(document, MAX_SESSIONS)
            return
        given = document.session_context.request.arguments
        arguments = {name: values[-1].decode(errors="replace") for name, values in given.items()}
        make_page(document, self.follower, Choice.of(arguments))

    def __enter__(self) -> Self:
        """Serve in a separate thread."""
        self._thread = threading.Thread(target=self.run, name="dashboard", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._thread.join()
