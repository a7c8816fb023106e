"""A token that a browser must know before it sees the page."""

import hmac
import secrets
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from bokeh.server.auth_provider import AuthProvider
from tornado.web import RequestHandler

from workers.errors import BadConfiguration

LEAST = 16
"""Characters of a token."""

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


def read_token(path: Path) -> str:
    """Return the token in a file: its first line.

    Raises
    ------
    BadConfiguration
        If the file cannot be read, or the token is too short.
    """
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise BadConfiguration(f"--token-file {path}: cannot be read: {reason}") from None
    token = lines[0].strip() if lines else ""
    if len(token) < LEAST:
        raise BadConfiguration(
            f"--token-file {path}: the token has {len(token)} characters; use at least {LEAST}"
        )
    return token


class TokenAuth(AuthProvider):
    """Lets in who sent the token once. A cookie then stands for it, until this process ends."""

    def __init__(self, token: str) -> None:
        self._pass = hmac.new(secrets.token_bytes(32), b"viewer", sha256).hexdigest()
        self._login = _login(token, self._pass)
        super().__init__()

    @property
    def get_user(self) -> Callable[[RequestHandler], str | None]:
        """Who asks: someone with the cookie, or nobody."""

        def user(request: RequestHandler) -> str | None:
            given = request.get_cookie(_COOKIE, "")
            return "viewer" if hmac.compare_digest(given.encode(), self._pass.encode()) else None

        return user

    @property
    def login_url(self) -> str:
        """Where everybody else is sent."""
        return _LOGIN

    @property
    def login_handler(self) -> type[RequestHandler]:
        """The form that takes the token."""
        return self._login

    get_user_async = get_login_url = logout_url = logout_handler = None


def _login(token: str, cookie: str) -> type[RequestHandler]:
    class Login(RequestHandler):
        """A form with one field."""

        def get(self) -> None:
            """Show the form."""
            self.write(_FORM % "")

        def post(self) -> None:
            """Let in who knows the token."""
            given = self.get_body_argument("token", "")
            if not hmac.compare_digest(given.encode(), token.encode()):
                self.set_status(403)
                self.write(_FORM % "That is not the token.")
                return
            self.set_cookie(_COOKIE, cookie, httponly=True, samesite="Strict")
            self.redirect(_inside(self.get_query_argument("next", "/")))

    return Login


def _inside(target: str) -> str:
    """Return where to go after the form: never to another site.

    Examples
    --------
    >>> _inside("/?feed=mail"), _inside("//evil.example"), _inside("https://evil.example")
    ('/?feed=mail', '/', '/')
    """
    return target if target == "/" or target.startswith("/?") else "/"
