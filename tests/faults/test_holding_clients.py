"""Clients that hold places: their places are free within the client limit; others are served."""

import http.client
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from processes import LIMIT
from system_tools import package

package("starlette", "pip install 'online-svm[http]'")
package("uvicorn", "pip install 'online-svm[http]'")

from served_gateway import gateway_process, serving  # noqa: E402
from structlog.testing import capture_logs  # noqa: E402
from world import wait_until  # noqa: E402

from workers.gateway import feed as gateway_feed  # noqa: E402
from workers.gateway import limits  # noqa: E402
from workers.gateway.feed import FRESH_SECONDS  # noqa: E402

pytestmark = pytest.mark.servers("embedded")

BODY = b'{"x":[1,2,3]}'
LARGE = 8 << 20
"""Bytes of an answer that no buffer between gateway and client takes."""

CLIENT_SECONDS = 0.6
PLACES = 20


def request(client, method, path, *more):
    lines = (f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{client.port}", *more, "", "")
    return "\r\n".join(lines).encode()


def example(client, feed, timeout, *more):
    """Return a request that waits so many seconds for its answer."""
    path = f"/feeds/{feed}/examples?timeout={timeout}"
    more = ("Content-Type: application/json", f"Content-Length: {len(BODY)}", *more)
    return request(client, "POST", path, *more) + BODY


@pytest.fixture
def connect():
    """Open connections that send something, and whose answers nobody reads."""
    with ExitStack() as opened:

        def connect(client, sent, count=PLACES):
            lines = []
            for _ in range(count):
                line = opened.enter_context(socket.socket())
                line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                line.settimeout(LIMIT)
                line.connect(("127.0.0.1", client.port))
                line.sendall(sent)
                lines.append(line)
                time.sleep(0.02)  # of those that come at once, more than have a place are refused
            return lines

        yield connect


@pytest.fixture
def client(world, monkeypatch, request):
    """A client of a gateway of `PLACES` connections, and of a feed that nobody answers."""
    monkeypatch.setattr(limits, "CLIENT_SECONDS", getattr(request, "param", CLIENT_SECONDS))
    with serving(world.url, world.feed, connections=PLACES) as client:
        wait_until(
            lambda: client.post(f"/feeds/{world.feed}/examples?timeout=0", BODY).status == 202
        )
        yield client


def is_served(client, status=200):
    return client.get("/v2/health/live").status == status


def hang_up(lines):
    for line in lines:
        line.close()


@pytest.mark.parametrize("count", [1, 2])
def test_who_asks_and_hangs_up_is_forgotten(world, connect, count):
    """Of a second request, sent before the first is answered, the gateway reads nothing."""
    options, store = ("--connections", PLACES), world.store
    with gateway_process(world.url, world.feed, options=options) as (_, client):
        for wave in range(1, 7):  # those of three waves before may not be forgotten yet
            lines = connect(client, example(client, world.feed, 60) * count, PLACES // 4)
            pushed = wave * PLACES // 4
            wait_until(lambda pushed=pushed: store.length(store.keys.input) == pushed)
            hang_up(lines)
        wait_until(lambda: is_served(client), seconds=30)
        ((entry, _),) = store.call("XREVRANGE", store.keys.input, "+", "-", "COUNT", 1)
        path = f"/feeds/{world.feed}/answers/{entry.decode()}?timeout=60"
        for _ in range(6):
            lines = connect(client, request(client, "GET", path) * count, PLACES // 4)
            assert is_served(client), "it came after them"
            hang_up(lines)
        wait_until(lambda: is_served(client), seconds=30)


@pytest.mark.parametrize("client", [LIMIT], indirect=True)
@pytest.mark.parametrize("is_split", [False, True])
def test_who_asks_in_advance_gets_one_answer_and_the_end(world, client, connect, is_split):
    sent = example(client, world.feed, 4)
    before = world.store.length(world.store.keys.input)
    first = len(sent) - len(BODY) if is_split else 0
    lines = connect(client, sent[:first])
    for line in lines:
        line.sendall(sent[first:] + sent * 50)
    wait_until(lambda: is_served(client, 503))
    wait_until(lambda: is_served(client))
    assert world.store.length(world.store.keys.input) == before + PLACES
    read_and_closed(lines[0], 202)


def read_and_closed(line, status):
    """Read one response, after which the gateway closes; return its body."""
    reply = http.client.HTTPResponse(line)
    reply.begin()
    assert (reply.status, reply.headers["Connection"]) == (status, "close")
    body = reply.read()
    assert rest(line) == b""
    return body


@pytest.mark.parametrize("count", [1, 3])
def test_who_reads_nothing_is_disconnected_within_the_limit(world, client, connect, count):
    lines = connect(client, ask_for_large(world, client) * count, PLACES)
    wait_until(lambda: not held(client))
    for line in lines:
        got = rest(line)
        assert got.startswith(b"HTTP/1.1 200")
        assert len(got) < LARGE


def held(client):
    """Return how many connections of its clients the gateway has open (Linux)."""
    local = f"0100007F:{client.port:04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
    return sum(row[1] == local and row[3] == "01" for row in rows)


def ask_for_large(world, client):
    """Let an entry have an answer that is large; return a request for it."""
    answer = b'{"v":2,"status":"ok","filler":"%s"}' % (b"x" * LARGE)
    world.store.call("XADD", world.store.keys.out, "1-0", "p", answer)
    return request(client, "GET", f"/feeds/{world.feed}/answers/1-0")


def rest(line):
    got = b""
    try:
        while more := line.recv(1 << 20):
            got += more
    except ConnectionError:
        pass
    return got


@pytest.mark.parametrize("client", [3.0], indirect=True)
def test_who_reads_slowly_gets_all(world, client, connect):
    (line,) = connect(client, ask_for_large(world, client), 1)
    got, began = b"", time.monotonic()
    while time.monotonic() - began < 6.0:
        got += line.recv(1 << 16)
        time.sleep(0.05)
    assert len(got + rest(line)) > LARGE


def test_a_request_in_pieces_has_a_limit_though_each_piece_is_in_time(client, connect):
    (line,) = connect(client, b"GET /v2/health/live HTTP/1.1\r\nX: ", 1)
    wait_until(lambda: not takes(line), pause=CLIENT_SECONDS / 10)


def takes(line):
    try:
        line.sendall(b"x")
    except ConnectionError:
        return False
    return True


def test_all_but_one_place_may_be_held(client, connect):
    connect(client, b"", PLACES - 1)
    for _ in range(3):
        assert is_served(client)


def test_a_body_that_breaks_off_is_no_fault(world, client, connect):
    with capture_logs() as logs:
        hang_up(connect(client, example(client, world.feed, 5)[:-1]))
        wait_until(lambda: is_served(client))
        time.sleep(CLIENT_SECONDS)
    assert logs == []


def test_a_length_beside_chunks_is_refused_and_the_connection_closed(world, client, connect):
    """What follows may be another request to a proxy that went by the length: RFC 9112, 6.1."""
    before = world.store.length(world.store.keys.input)
    chunked = example(client, world.feed, 0, "Transfer-Encoding: chunked").removesuffix(BODY)
    body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
    (line,) = connect(client, chunked + body + request(client, "GET", "/v2/health/live"), 1)
    assert b"Transfer-Encoding" in read_and_closed(line, 400)
    assert world.store.length(world.store.keys.input) == before


def test_a_status_that_takes_long_holds_up_no_example(world, monkeypatch):
    stop, path = threading.Event(), f"/feeds/{world.feed}/examples?timeout=0"
    monkeypatch.setattr(gateway_feed, "read_status", lambda _: stop.wait(LIMIT))
    with serving(world.url, world.feed) as client, ThreadPoolExecutor(PLACES) as threads:
        for _ in range(PLACES):
            threads.submit(client.get, f"/feeds/{world.feed}/status")
        try:
            wait_until(lambda: client.post(path, BODY).status == 202)
            time.sleep(2 * FRESH_SECONDS)
            began = time.monotonic()
            assert client.post(path, BODY).status == 202
            assert time.monotonic() - began < LIMIT / 2
        finally:
            stop.set()
