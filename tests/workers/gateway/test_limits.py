"""Bounds of a request, of connections and of what waits; which hosts are ours; what is logged."""

import json
import socket

import pytest
from processes import LIMIT
from served_gateway import serving
from structlog.testing import capture_logs
from world import wait_until

from workers.gateway import limits

X = [0.5, 1, -2]


def test_on_loopback_another_host_is_refused_and_ours_are_not(gateway):
    ours = [f"127.0.0.1:{gateway.port}", f"localhost:{gateway.port}", f"LOCALHOST:{gateway.port}",
            f"[::1]:{gateway.port}"]  # fmt: skip
    for host in ours:
        assert gateway.get("/feeds/plain/status", Host=host).status == 200, host
    for host in ("evil.example", "127.0.0.1", f"evil.example:{gateway.port}", "", "localhost:1"):
        reply = gateway.get("/feeds/plain/status", Host=host)
        assert (reply.status, reply.json["error"].startswith("Host: ")) == (421, True), host


def test_no_response_lets_a_page_of_another_site_read_it(gateway):
    origin = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    for method, path in (("OPTIONS", "/feeds/plain/examples"), ("GET", "/feeds/plain/status")):
        reply = gateway.ask(method, path, **origin)
        assert not [name for name in reply.headers if name.lower().startswith("access-control")]


@pytest.mark.servers("embedded", "oldest")
def test_a_lagging_feed_is_429_and_nothing_is_added(world):
    with serving(world.url, world.feed, high_water=5) as client:
        path = f"/feeds/{world.feed}/examples?timeout=0"
        wait_until(lambda: client.post(path, {"x": X}).status == 202)
        wait_until(lambda: client.post(path, {"x": X}).status == 429)
        length = world.store.length(world.store.keys.input)
        reply = client.post(path, {"x": X})
        assert (reply.status, length >= 5) == (429, True)
        assert 1 <= int(reply.headers["Retry-After"]) <= 60
        assert world.store.length(world.store.keys.input) == length
        world.work(length)
        wait_until(lambda: client.post(path, {"x": X}).status == 202)


def test_a_warming_feed_is_503_on_request_and_adds_nothing(gateway, stores):
    keys = stores["named"].keys
    before = stores["named"].length(keys.input)
    reply = gateway.post("/feeds/named/examples?warming=refuse", {"x": {"age": 1}})
    assert (reply.status, "nothing was added" in reply.json["error"]) == (503, True)
    assert int(reply.headers["Retry-After"]) >= 1
    assert stores["named"].length(keys.input) == before
    assert gateway.post("/feeds/plain/examples?warming=refuse", {"x": X}).status == 200


def test_headers_that_are_too_large_are_refused(gateway):
    assert gateway.get("/feeds/plain/status", X_Filler="x" * 10_000).status == 200
    assert gateway.get("/feeds/plain/status", X_Filler="x" * 40_000).status in (400, 431)


def test_more_connections_than_allowed_are_refused_until_some_end(answered):
    with serving(answered, "plain", connections=20) as client:
        held = [socket.create_connection(("127.0.0.1", client.port)) for _ in range(20)]
        wait_until(lambda: client.get("/feeds/plain/status").status == 503)
        for line in held:
            line.close()
        wait_until(lambda: client.get("/feeds/plain/status").status == 200)


def head(client, *headers):
    """Return the head of a request for answers, as bytes."""
    lines = ["POST /feeds/plain/examples HTTP/1.1", f"Host: 127.0.0.1:{client.port}",
             "Content-Type: application/json", *headers, ""]  # fmt: skip
    return "\r\n".join(lines).encode()


def replied(client, sent):
    """Return the first line of what comes back for these bytes."""
    with socket.create_connection(("127.0.0.1", client.port), timeout=LIMIT) as line:
        line.sendall(sent)
        return line.recv(1000)[:12]


def test_a_client_that_does_not_get_on_is_disconnected(answered, monkeypatch):
    monkeypatch.setattr(limits, "CLIENT_SECONDS", 0.3)
    with serving(answered, "plain") as client:
        begun = head(client, "Content-Length: 100")
        for sent, status in ((b"", b""), (begun, b""), (begun + b"\r\n{", b"HTTP/1.1 408")):
            assert replied(client, sent) == status, sent


def test_a_length_that_lies_is_413_before_the_body_comes(gateway):
    sent = head(gateway, "Content-Length: 99999999999") + b"\r\n"
    assert replied(gateway, sent) == b"HTTP/1.1 413"


def test_a_body_in_chunks_is_bounded_too(answered):
    with serving(answered, "plain", max_body=1000) as client:
        sent = head(client, "Transfer-Encoding: chunked") + b"\r\n"
        assert replied(client, sent + 2 * (b"258\r\n%s\r\n" % (b"x" * 600))) == b"HTTP/1.1 413"


def test_no_log_line_has_what_a_client_sent(answered, capfd):
    secret = "geheim-geheim-geheim"
    with capture_logs() as logs, serving(answered, "plain") as client:
        sent = {"Authorization": f"Bearer {secret}", "Cookie": secret, "Idempotency-Key": secret}
        client.post(f"/feeds/plain/examples?k={secret}", {"x": X, "id": secret}, **sent)
        client.post("/feeds/plain/examples", {"x": secret, secret: 1}, **sent)
        client.post("/feeds/plain/examples", secret.encode(), **sent)
        with socket.create_connection(("127.0.0.1", client.port)) as line:
            line.sendall(f"{secret}\r\n\r\n".encode())
            line.recv(100)
    told = capfd.readouterr()
    assert secret not in json.dumps(logs) + told.out + told.err
