"""HTTP handlers of the page, and the websocket of its session.

Bokeh's own handler of the page begins a session for each request, which any web site can make a
browser send; so does its script for pages of others. Here a request gives out a signed token, and
the session begins with the websocket, which no page of another site can open.
"""

import time
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from typing import Any

from bokeh.core.templates import get_env
from bokeh.embed.bundle import bundle_for_objs_and_resources
from bokeh.embed.elements import html_page_for_render_items
from bokeh.embed.util import RenderItem
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
from tornado.web import ErrorHandler, authenticated

from workers.dashboard.card import ASSETS, TABS_SCRIPT
from workers.dashboard.excerpt import Choice


class PageHandler(AuthRequestHandler):
    """The frame of the page, with the token of a session that does not exist yet."""

    application: BokehTornado

    @authenticated
    def get(self) -> None:
        """Write the page that the address asks for."""
        asked = self.request.query_arguments
        choice = Choice.of({name: self.get_query_argument(name) for name in asked})
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
    """The websocket of a session, only for who has a token that was given out here."""

    async def get(self, *args: Any, **kwargs: Any) -> None:
        """Open it, or refuse."""
        if self.current_user is None or not self._has_token():
            self.send_error(403)
            return
        await super().get(*args, **kwargs)

    def _has_token(self) -> bool:
        """Return whether a token was offered that was given out here, not too long ago."""
        app, found = self.application, False
        token = self.request.headers.get("Sec-WebSocket-Protocol", "").split(",")[-1].strip()
        with suppress(ValueError, KeyError, TypeError):  # it is no token at all
            found = check_token_signature(
                token, secret_key=app.secret_key, signed=app.sign_sessions
            ) and bool(get_token_payload(token)["session_expiry"] > time.time())
        return found


def add_handlers(tornado: BokehTornado, context: ApplicationContext) -> None:
    """Put these handlers before those of Bokeh. Nothing embeds the page, so that script goes."""
    told = {"application_context": context, "bokeh_websocket_path": "/ws"}
    tornado.add_handlers(".*", [
        ("/", PageHandler),
        ("/ws", SocketHandler, told),
        ("/autoload.js", ErrorHandler, {"status_code": 404}),
    ])  # fmt: skip


def _rendered(choice: Choice, token: str, app: BokehTornado) -> str:
    links = [("all feeds", choice.address(feed=""))] if choice.feed else []
    links += [
        (name, choice.address(theme=name))
        for name in ("auto", "light", "dark")
        if name != choice.theme
    ]
    template, style = _template()
    page: str = html_page_for_render_items(
        bundle_for_objs_and_resources(None, app.resources()),
        {},
        [RenderItem(token=token, elementid="page", use_for_title=True)],
        choice.title,
        template=template,
        template_variables={
            "links": links,
            "theme": choice.theme,
            "style": style,
            "script": TABS_SCRIPT,
        },
    )
    return page


@cache
def _template() -> tuple[Any, str]:
    text = (ASSETS / "page.html").read_text("utf-8")
    return get_env().from_string(text), (ASSETS / "page.css").read_text("utf-8")
