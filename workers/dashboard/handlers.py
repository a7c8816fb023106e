"""HTTP handlers: the page, the websocket of its session, the login, and the help.

Bokeh's own page handler starts a session for each request, and so does its embedding script; any
web site can make a browser send such a request. Here a request returns a signed token, and the
session starts with the websocket, which no page of another site can open.
"""

import hmac
import html
import re
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from bokeh.core.templates import get_env
from bokeh.embed.bundle import bundle_for_objs_and_resources
from bokeh.embed.elements import html_page_for_render_items
from bokeh.embed.util import RenderItem
from bokeh.server.auth_provider import AuthProvider
from bokeh.server.contexts import ApplicationContext
from bokeh.server.tornado import BokehTornado
from bokeh.server.views.auth_request_handler import AuthRequestHandler
from bokeh.server.views.ws import WSHandler
from bokeh.util.token import (
    check_token_signature,
    generate_jwt_token,
    generate_session_id,
    get_token_payload,
)
from markdown_it import MarkdownIt
from tornado.iostream import IOStream
from tornado.web import ErrorHandler, RequestHandler, authenticated
from typing_extensions import override

from workers.config.files import read_regular
from workers.dashboard.card import ASSETS
from workers.dashboard.shown_feed import Choice
from workers.errors import BadConfiguration

MIN_TOKEN_CHARS = 16
_MAX_TOKEN_FILE_BYTES = 1 << 16

_COOKIE = "online_svm_dashboard"
_LOGIN = "/login"

_FORM = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>online-svm</title></head>
<body style="font: 16px/1.5 system-ui, sans-serif; margin: 3rem auto; max-width: 24rem">
<h1 style="font-size: 1.2rem">online-svm</h1>
<form method="post"><label>Token of this page<br>
<input name="token" type="password" autofocus required style="width: 100%%"></label>
<p><button>Show the feeds</button></p></form><p>%s</p></body></html>"""

MONITORING = Path(__file__).parents[2] / "docs" / "monitoring.md"

_FRAME = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,"><title>Monitoring - online-svm</title><style>{style}
body {{ max-width: 50rem; overflow-wrap: anywhere; }}
table {{ display: block; overflow-x: auto; border-collapse: collapse; }}
td, th {{ border: 1px solid var(--line); padding: .2rem .5rem; text-align: left; }}
pre {{ overflow-x: auto; }}</style></head><body>{text}</body></html>"""

_REPLACED = ((r"<p><img [^>]*></p>", ""), (r'<a href="(?!https?:|#)[^"]*">(.*?)</a>', r"\1"))
"""Patterns of pictures and of links to other files, which are not served, and replacements."""


class PageHandler(AuthRequestHandler):
    """The page without content, with the signed token of its future session."""

    application: BokehTornado

    @authenticated
    def get(self) -> None:
        """Write the page for the choice in the address."""
        arguments = self.request.query_arguments
        choice = Choice.of({name: self.get_query_argument(name) for name in arguments})
        self.write(_rendered(choice, self._token(choice), self.application))

    def _token(self, choice: Choice) -> str:
        app = self.application
        arguments = {name: [value.encode()] for name, value in asdict(choice).items()}
        signing = {"secret_key": app.secret_key, "signed": app.sign_sessions}
        token: str = generate_jwt_token(
            generate_session_id(**signing),
            **signing,
            extra_payload={"headers": {}, "cookies": {}, "arguments": arguments},
            expiration=app.session_token_expiration,
        )
        return token


class SocketHandler(WSHandler):
    """The websocket of a session; it needs a place, and a token that this process signed."""

    @override
    def initialize(self, take_socket: Callable[[IOStream], bool], **options: Any) -> None:
        super().initialize(**options)
        self._take_socket = take_socket

    async def get(self, *args: Any, **kwargs: Any) -> None:
        """Open the websocket if the request has a valid token."""
        if self.current_user is None or not self._has_token():
            self.send_error(403)
            return
        if not self._take_socket(self.request.connection.stream):
            self.send_error(503)
            return
        await super().get(*args, **kwargs)

    def _has_token(self) -> bool:
        """Return whether the request has a token that this process signed and that is valid."""
        app, found = self.application, False
        token = self.request.headers.get("Sec-WebSocket-Protocol", "").split(",")[-1].strip()
        with suppress(ValueError, KeyError, TypeError):  # not a token
            found = check_token_signature(
                token, secret_key=app.secret_key, signed=app.sign_sessions
            ) and bool(get_token_payload(token)["session_expiry"] > time.time())
        return found


def add_handlers(
    tornado: BokehTornado, context: ApplicationContext, take_socket: Callable[[IOStream], bool]
) -> None:
    """Add these handlers before Bokeh's; the embedding script is not served.

    `take_socket` gives a connection a place as a websocket, or returns False.
    """
    context_of = {
        "application_context": context, "bokeh_websocket_path": "/ws", "take_socket": take_socket
    }  # fmt: skip
    tornado.add_handlers(".*", [
        ("/", PageHandler),
        ("/ws", SocketHandler, context_of),
        ("/autoload.js", ErrorHandler, {"status_code": 404}),
    ])  # fmt: skip


def _rendered(choice: Choice, token: str, app: BokehTornado) -> str:
    links = [("all feeds", choice.address(feed=""))] if choice.feed else []
    links += [
        (name, choice.address(theme=name))
        for name in ("auto", "light", "dark")
        if name != choice.theme
    ]
    page: str = html_page_for_render_items(
        bundle_for_objs_and_resources(None, app.resources()),
        {},
        [RenderItem(token=token, elementid="page", use_for_title=True)],
        choice.title,
        template=template(),
        template_variables={
            "links": links, "theme": choice.theme, "style": asset("page.css"),
            "script": asset("tabs.js"),
        },
    )  # fmt: skip
    return page


@cache
def template() -> Any:
    """Return the template of the page, and of a report."""
    return get_env().from_string(asset("page.html"))


@cache
def asset(name: str) -> str:
    """Return the text of a file in `assets`."""
    return (ASSETS / name).read_text("utf-8")


class HelpPage(RequestHandler):
    """The page with docs/monitoring.md, which explains each figure."""

    def get(self) -> None:
        """Show the page."""
        self.write(rendered())


@cache
def rendered() -> str:
    """Return docs/monitoring.md as HTML; if it is not installed, a reference to it."""
    if not MONITORING.is_file():
        return _FRAME.format(
            style=asset("page.css"),
            text="<p>See <code>docs/monitoring.md</code> in the sources.</p>",
        )
    made = MarkdownIt("commonmark", {"html": False}).enable("table")
    text = made.render(MONITORING.read_text("utf-8"))
    text = text.replace("<table>", '<table tabindex="0">').replace("<pre>", '<pre tabindex="0">')
    for pattern, replacement in _REPLACED:
        text = re.sub(pattern, replacement, text)
    return _FRAME.format(
        style=asset("page.css"), text=re.sub(r"<h([1-6])>(.*?)</h\1>", _with_anchor, text)
    )


def _with_anchor(heading: re.Match[str]) -> str:
    level, words = heading[1], heading[2]
    return (
        f'<h{level} id="{anchor(html.unescape(re.sub("<[^>]*>", "", words)))}">{words}</h{level}>'
    )


def anchor(heading: str) -> str:
    """Return the anchor of a heading, as GitHub makes it.

    Examples
    --------
    >>> anchor("The `met` stream: what it says")
    'the-met-stream-what-it-says'
    """
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def read_token(path: Path) -> str:
    """Return the token in a file: its first line.

    BadConfiguration: the file cannot be read, or the token is too short.
    """
    try:
        lines = read_regular(path, _MAX_TOKEN_FILE_BYTES).decode().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise BadConfiguration(f"--token-file {path}: cannot be read: {reason}") from None
    token = lines[0].strip() if lines else ""
    if len(token) < MIN_TOKEN_CHARS:
        raise BadConfiguration(
            f"--token-file {path}: the token has {len(token)} characters; use at least "
            f"{MIN_TOKEN_CHARS}"
        )
    return token


class TokenAuth(AuthProvider):
    """Admits a browser that sent the token, by a cookie that is valid while this process runs."""

    def __init__(self, token: str) -> None:
        self._cookie = hmac.new(secrets.token_bytes(32), b"viewer", sha256).hexdigest()
        self._login = _login(token, self._cookie)
        super().__init__()

    @property
    def get_user(self) -> Callable[[RequestHandler], str | None]:
        """Function that returns "viewer" for a request with the cookie, else None."""

        def user(request: RequestHandler) -> str | None:
            given = request.get_cookie(_COOKIE, "")
            return "viewer" if hmac.compare_digest(given.encode(), self._cookie.encode()) else None

        return user

    @property
    def login_url(self) -> str:
        """The address of the form."""
        return _LOGIN

    @property
    def login_handler(self) -> type[RequestHandler]:
        """The form for the token."""
        return self._login

    get_user_async = get_login_url = logout_url = logout_handler = None


def _login(token: str, cookie: str) -> type[RequestHandler]:
    class Login(RequestHandler):
        """A form with one field."""

        def get(self) -> None:
            """Show the form."""
            self.write(_FORM % "")

        def post(self) -> None:
            """Check the token; set the cookie."""
            given = self.get_body_argument("token", "")
            if not hmac.compare_digest(given.encode(), token.encode()):
                self.set_status(403)
                self.write(_FORM % "That is not the token.")
                return
            self.set_cookie(_COOKIE, cookie, httponly=True, samesite="Strict")
            self.redirect(_local(self.get_query_argument("next", "/")))

    return Login


def _local(target: str) -> str:
    """Return the address to go to after the login; `/` in place of another site.

    Examples
    --------
    >>> _local("/?feed=mail"), _local("//evil.example"), _local("https://evil.example")
    ('/?feed=mail', '/', '/')
    """
    return target if target == "/" or target.startswith("/?") else "/"
