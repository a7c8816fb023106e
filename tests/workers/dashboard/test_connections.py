"""Clients that hold connections to the page do not keep others away, nor fill the log."""

import http.client
import json
import logging
import socket
import time
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pytest
from page_sockets import opened, socket_of, token_in
from processes import LIMIT, free_port, raise_limit
from structlog.testing import capture_logs
from world import Worker, wait_until

from workers import log
from workers.dashboard import connections
from workers.dashboard.connections import MAX_CONNECTIONS

IDLE = 1300
SLOW = 200


def get(port, path="/"):
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT)) as client:
        client.request("GET", path)
        reply = client.getresponse()
        return reply.status, reply.read().decode()


def is_there(port):
    try:
        return get(port)[0] == 200
    except ConnectionError:
        return False


def test_idle_and_slow_clients_keep_nobody_away_and_the_log_stays_small(embedded_url):
    raise_limit(2 * (IDLE + SLOW) + 500)
    port = free_port()
    with Worker("dashboard", "--redis", embedded_url, "--port", port) as page, ExitStack() as held:
        wait_until(lambda: is_there(port))

        def open_files():
            return len(list(Path(f"/proc/{page.pid}/fd").iterdir()))

        before = open_files()
        for i in range(IDLE + SLOW):
            client = held.enter_context(socket.create_connection(("127.0.0.1", port), LIMIT))
            if i >= IDLE:
                client.sendall(b"GET / HTTP/1.1\r\nX-Slow: ")
            if i % 300 == 0:
                assert get(port)[0] == 200
        for _ in range(20):
            status, text = get(port)
            assert (status, "online-svm" in text) == (200, True)
        wait_until(lambda: open_files() <= before + MAX_CONNECTIONS, why="the others are closed")
        lines = page.said.splitlines()
        assert page.poll() is None
    assert 2 <= len(lines) <= 15, lines
    assert any("too many connections" in line for line in lines)
    assert all(len(line) < 600 for line in lines)


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\n\r\n"])
def test_who_sends_no_head_in_time_is_disconnected(serve, monkeypatch, sent):
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.3)
    ask = serve()
    with socket.create_connection(("127.0.0.1", ask.page.port), LIMIT) as client:
        client.sendall(sent)
        while client.recv(1 << 16):
            pass


def test_websockets_count_and_one_too_many_is_refused(serve, monkeypatch):
    monkeypatch.setattr(connections, "MAX_SOCKETS", 2)
    ask = serve()
    tokens = [token_in(ask("GET", "/")[2]) for _ in range(4)]
    with opened(ask, tokens[0])[0], opened(ask, tokens[1])[0]:
        assert socket_of(ask, tokens[2]) == (503, False)
        assert ask("GET", "/")[0] == 200
    wait_until(lambda: socket_of(ask, tokens[3]) == (101, True), why="the places are free again")


def test_a_connection_beyond_the_limit_takes_the_place_of_an_idle_one(serve, monkeypatch):
    monkeypatch.setattr("workers.dashboard.server.MAX_CONNECTIONS", 3)
    ask = serve()
    with opened(ask, token_in(ask("GET", "/")[2]))[0] as browser, ExitStack() as held:
        idle = [
            held.enter_context(socket.create_connection(("127.0.0.1", ask.page.port), LIMIT))
            for _ in range(2)
        ]
        assert ask("GET", "/")[0] == 200
        assert idle[0].recv(1) == b"", "the oldest idle one is closed"
        assert is_open(browser)


def is_open(client):
    client.setblocking(False)
    with suppress(BlockingIOError):
        while client.recv(1 << 16):
            pass
        return False
    return True


def report(logger, times, error=None, *args):
    for _ in range(times):
        if error is None:
            logger.error("message of a library: %s", *args)
        else:
            try:
                raise error
            except type(error):
                logger.error("Exception in callback %s", "secret", exc_info=True)


def test_a_library_gets_a_line_for_each_cause_and_step(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    logger = logging.getLogger("of-a-test")
    log.one_line_a_cause("of-a-test")
    with capture_logs() as lines:
        report(logger, 1000, None, "a browser's text")
        report(logger, 1000, OSError(24, "a secret"))
    assert [one["reason"] for one in lines] == ["message of a library: %s", "OSError"]
    assert "secret" not in json.dumps(lines)
    with capture_logs() as lines:
        for _ in range(3600):
            report(logger, 10, None, "x")
            now[0] += 1
    assert len(lines) <= 20, "steps are doubled"
    assert sum(one["left_out"] or 0 for one in lines) > 30_000
    with capture_logs() as lines:
        for number in range(1000):
            logger.error(f"cause {number}")
    assert len(lines) <= 65
