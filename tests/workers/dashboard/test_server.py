"""Where the page listens, and who may see it: without a browser."""

import pytest
from bokeh.util.token import generate_jwt_token, generate_session_id
from page_sockets import socket_of, texts, token_in
from structlog.testing import capture_logs

from workers.dashboard import server
from workers.dashboard.handlers import read_token
from workers.dashboard.server import Dashboard
from workers.errors import BadConfiguration

TOKEN = "correct horse battery"


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "192.0.2.7"])
def test_an_address_that_others_reach_needs_a_token(address):
    with pytest.raises(BadConfiguration, match="--token-file"):
        Dashboard("redis://localhost/0", address=address)


def test_an_address_that_is_none_and_a_port_that_is_taken_are_named(embedded_url):
    with pytest.raises(BadConfiguration, match=r"'example\.org': expected an IP address"):
        Dashboard("redis://localhost/0", address="example.org", token=TOKEN)
    first = Dashboard(embedded_url, port=0)
    with pytest.raises(BadConfiguration, match=f"port {first.port}: .*choose another --port"):
        Dashboard(embedded_url, port=first.port)
    first._socket.close()


def test_a_page_without_a_token_is_there_at_once_and_escapes_its_address(serve):
    ask = serve()
    status, _, text = ask("GET", "/?feed=mail")
    assert (status, "<title>mail - online-svm</title>" in text) == (200, True)
    _, _, text = ask("GET", "/?feed=%3C/title%3E%3Cscript%3E&theme=%22%3E%3Cscript%3E")
    assert "&lt;/title&gt;&lt;script&gt;" in text
    assert "</title><script>" not in text
    assert 'data-theme="auto"' in text
    status, _, text = ask("GET", "/help")
    assert (status, "onitoring" in text) == (200, True)


def test_nothing_is_shown_to_who_has_no_token_and_the_cookie_opens_all(serve):
    ask = serve(token=TOKEN)
    for path in ("/?feed=mail", "/metadata"):
        status, headers, text = ask("GET", path)
        assert (status, headers["Location"].split("?")[0], text) == (302, "/login", "")
    assert ask("POST", "/login", "token=wrong")[0] == 403
    status, headers, _ = ask("POST", "/login?next=//evil.example", f"token={TOKEN}")
    assert (status, headers["Location"]) == (302, "/")
    cookie = headers["Set-Cookie"]
    assert {"HttpOnly", "SameSite=Strict"} <= {part.strip() for part in cookie.split(";")}
    assert TOKEN not in cookie
    assert ask("GET", "/?feed=mail", Cookie=cookie.split(";")[0])[0] == 200


def test_a_page_of_another_site_may_open_no_connection(serve):
    ask = serve()
    asked = {
        "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Origin": "http://evil.example",
    }  # fmt: skip
    assert ask("GET", "/ws", **asked)[0] == 403


def test_a_request_begins_no_session_and_its_websocket_begins_one(serve):
    """Any web site can make a browser send the request."""
    ask = serve()
    pages = [ask("GET", "/?feed=mail")[2] for _ in range(20)]
    assert texts(ask) == []
    assert socket_of(ask, token_in(pages[0])) == (101, True)
    (session,) = ask.page._tornado.get_sessions("/")
    assert session.document.title == "mail - online-svm"


def test_more_sessions_than_there_may_be_say_so_and_cost_nothing(serve, monkeypatch):
    monkeypatch.setattr(server, "MAX_SESSIONS", 2)
    ask = serve()
    for _ in range(4):
        socket_of(ask, token_in(ask("GET", "/")[2]))
    told = [text for text in texts(ask) if "2 browsers look at this page already" in text]
    assert (len(told), len(texts(ask))) == (2, 4)
    assert ask("GET", "/?feed=mail")[0] == 200


def too_old(ask):
    signing = {"secret_key": ask.page._tornado.secret_key, "signed": True}
    return generate_jwt_token(generate_session_id(**signing), **signing, expiration=-1)


TOKENS = ["", "no-token", "e30.x", "bnVsbA.x", "\u00fc.x", too_old]


@pytest.mark.parametrize("token", TOKENS, ids=lambda token: getattr(token, "__name__", None))
def test_a_websocket_with_an_unknown_or_expired_token_is_refused(serve, token):
    ask = serve()
    assert ask("GET", "/")[0] == 200
    with capture_logs() as lines:
        assert socket_of(ask, token if isinstance(token, str) else token(ask)) == (403, False)
    assert (texts(ask), lines) == ([], [])


def test_a_websocket_without_the_cookie_is_refused_and_leaves_no_line(serve):
    ask = serve(token=TOKEN)
    cookie = ask("POST", "/login", f"token={TOKEN}")[1]["Set-Cookie"].split(";")[0]
    token = token_in(ask("GET", "/", Cookie=cookie)[2])
    with capture_logs() as lines:
        assert socket_of(ask, token) == (403, False)
    assert (texts(ask), lines) == ([], [])
    assert socket_of(ask, token, cookie) == (101, True)


def test_a_token_is_the_first_line_of_its_file_and_no_short_one(tmp_path):
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\nmore\n")
    assert read_token(path) == TOKEN
    path.write_text("short\n")
    with pytest.raises(BadConfiguration, match="5 characters; use at least 16"):
        read_token(path)
    with pytest.raises(BadConfiguration, match="cannot be read: No such file"):
        read_token(tmp_path / "none")


@pytest.mark.parametrize(
    "path", ["/autoload.js", "/autoload.js?bokeh-autoload-element=x", "/metadata", "/ws"]
)
def test_no_path_tells_anything_without_the_token_and_none_fails(serve, path):
    ask = serve(token=TOKEN)
    with capture_logs() as lines:
        status, _, body = ask("GET", path)
    assert status in (302, 400, 403, 404)
    assert TOKEN not in body
    assert lines == []
