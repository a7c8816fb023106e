"""What falls over: the worker, Redis, a client. Each request is answered, or knows its entry."""

import http.client
import json
import re
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing

import pytest
from fault_redis import Proxy
from processes import free_port, raise_limit
from served_gateway import serving
from world import COUNT, wait_until

pytestmark = pytest.mark.servers("embedded")

X = [0.5, 1, -2]


@pytest.fixture
def post(world):
    """Send an example to a gateway that reaches Redis through a bad network, `post.proxy`."""
    port = free_port()
    world.store.call("CONFIG", "SET", "port", port)
    with (
        closing(Proxy(port)) as proxy,
        serving(f"redis://127.0.0.1:{proxy.port}/0", world.feed) as client,
    ):

        def send(timeout=0):
            return client.post(f"/feeds/{world.feed}/examples?timeout={timeout}", {"x": X})

        send.proxy, send.client = proxy, client
        wait_until(lambda: send().status == 202)
        yield send


def added(world):
    """Return how many entries the input has."""
    return world.store.length(world.store.keys.input)


@pytest.mark.slow
def test_a_worker_killed_under_load_loses_no_request(world):
    """Each is answered, or 202 names the entry by which the answer is there afterwards."""
    path, stop, replies = f"/feeds/{world.feed}/examples?timeout=2", threading.Event(), []

    def ask(client, number):
        i = 0
        while not stop.is_set():
            body = {"x": [number, i, 1.0], "y": "ab"[i % 2], "id": f"{number}-{i}"}
            replies.append((body["id"], client.post(path, body)))
            i += 1

    world.push()
    with serving(world.url, world.feed) as client, ThreadPoolExecutor(4) as threads:
        with world.worker("--lease", "0.5", "--keep-input") as worker:
            worker.wait_for(world.store, COUNT)
            asked = [threads.submit(ask, client, number) for number in range(4)]
            wait_until(lambda: len(replies) > 100)
            worker.kill()
        wait_until(lambda: any(reply.status == 202 for _, reply in list(replies)))
        with world.worker("--lease", "0.5", "--keep-input") as again:
            wait_until(lambda: replies[-1][1].status == 200)
            stop.set()
            for one in asked:
                one.result()
            entries = added(world)
            again.wait_for(world.store, entries)
        assert {reply.status for _, reply in replies} == {200, 202}
        assert entries == COUNT + len(replies), "each request added one entry"
        for sent, reply in replies:
            if reply.status == 202:
                (entry,) = reply.json["ids"]
                reply = client.get(f"/feeds/{world.feed}/answers/{entry}")
            assert (reply.status, reply.json["id"]) == (200, sent)


@pytest.mark.parametrize("count", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_many_connections_wait_at_once_and_all_are_answered(world, count):
    """All requests are open before the worker begins; it then answers them all."""
    raise_limit(2 * count + 500)
    request = json.dumps({"x": X}).encode()
    head = (
        f"POST /feeds/{world.feed}/examples?timeout=60 HTTP/1.1\r\nHost: {{}}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(request)}\r\n\r\n"
    )
    with serving(world.url, world.feed, high_water=0) as client, ExitStack() as opened:
        wait_until(lambda: client.get(f"/feeds/{world.feed}/alarms").status == 200)
        lines = []
        for _ in range(count):
            line = socket.create_connection(("127.0.0.1", client.port), timeout=60)
            lines.append(opened.enter_context(line))
            line.sendall(head.format(f"127.0.0.1:{client.port}").encode() + request)
        wait_until(lambda: added(world) == count)
        opened.enter_context(world.worker())
        seqs = set()
        for line in lines:
            reply = http.client.HTTPResponse(line)
            reply.begin()
            answer = json.load(reply)
            assert (reply.status, answer["status"]) == (200, "warming")
            seqs.add(answer["seq"])
        assert seqs == set(range(count))


@pytest.mark.servers("embedded", "oldest", "cluster", "sentinel")
def test_on_every_kind_of_server_who_waits_is_answered(world):
    with serving(world.url, world.feed) as client, ThreadPoolExecutor(1) as thread:
        path = f"/feeds/{world.feed}/examples?timeout="
        wait_until(lambda: client.post(path + "0", {"x": X}).status == 202)
        length = added(world)
        asked = thread.submit(client.post, path + "60", [{"x": X, "y": "a"}, {"x": X}])
        wait_until(lambda: added(world) == length + 2)
        world.answer(length + 2)
        reply = asked.result()
        assert reply.status == 200
        assert [answer["n"] for answer in reply.json] == [0, 1]
        assert client.get(f"/feeds/{world.feed}/status").json["seq"] == length + 2


def test_who_asks_for_an_entry_of_the_future_holds_up_nobody(world):
    """Answers are followed from the first entry on that somebody waits for."""
    with serving(world.url, world.feed) as client, ThreadPoolExecutor(1) as thread:
        address = f"/feeds/{world.feed}/answers/18446744073709551615-5?timeout=1"
        wait_until(lambda: client.get(address).status == 404)
        asked = thread.submit(client.post, f"/feeds/{world.feed}/examples?timeout=30", {"x": X})
        wait_until(lambda: added(world) == 1)
        world.answer(1)
        assert asked.result().status == 200


@pytest.mark.parametrize("view", [None, *(pytest.param(one, marks=pytest.mark.slow)
                                          for one in ("status", "alarms"))])  # fmt: skip
def test_while_redis_does_not_answer_all_requests_wait_together(post, world, view):
    path = f"/feeds/{world.feed}/{view}"
    wait_until(lambda: view is None or post.client.get(path).status == 200)
    post.proxy.is_black_hole = True
    began = time.monotonic()
    with ThreadPoolExecutor(20) as threads:
        ask = post if view is None else lambda: post.client.get(path)
        replies = list(threads.map(lambda _: ask(), range(20)))
    assert {reply.status for reply in replies} == {503}
    assert time.monotonic() - began < 50, "some five seconds of silence, once or twice for all"


def test_while_redis_is_away_requests_get_503_at_once_and_afterwards_answers(post, world):
    before, target = added(world), post.proxy.target
    post.proxy.target = 1  # nobody listens there
    for line in world.store.call("CLIENT", "LIST").decode().splitlines():  # as a server that ends
        (address,) = re.findall(r" addr=(\S+)", line)
        if address.startswith("127.0.0.1:"):
            world.store.call("CLIENT", "KILL", "ADDR", address)
    assert post().status == 503
    seconds = []
    for _ in range(5):
        began = time.monotonic()
        reply = post()
        seconds.append(time.monotonic() - began)
        assert (reply.status, reply.headers["Retry-After"]) == (503, "1")
        assert reply.json["code"] == "redis_unavailable"
        assert str(post.proxy.port) not in reply.body.decode(), "its address is for the log"
    assert min(seconds) < 4, "nobody waits the five seconds of a silent server"
    post.proxy.target = target
    wait_until(lambda: post().status == 202)
    assert added(world) == before + 1


def test_an_entry_whose_reply_was_lost_is_added_once_and_the_client_is_told(post, world):
    before = added(world)
    post.proxy.cuts[:] = [b"XADD"]
    reply = post()
    assert (reply.status, "may not have been added" in reply.json["error"]) == (503, True)
    assert post.proxy.cut == 1
    assert added(world) == before + 1, "it is not sent again"


def test_a_request_that_waits_is_answered_though_redis_was_away_meanwhile(post, world):
    with ThreadPoolExecutor(1) as thread:
        before = added(world)
        asked = thread.submit(post, 30)
        wait_until(lambda: added(world) == before + 1)
        post.proxy.forget()
        world.work(before + 1)
        reply = asked.result()
    assert (reply.status, reply.json["seq"]) == (200, before)
