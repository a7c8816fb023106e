"""What falls over: the worker, Redis, a client. Each request is answered, or knows its entry."""

import asyncio
import http.client
import json
import re
import resource
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
import system_tools
from fault_proxy import Proxy
from system_tools import package

package("starlette", "pip install 'online-svm[http]'")
package("uvicorn", "pip install 'online-svm[http]'")

from served_gateway import serving  # noqa: E402
from world import COUNT, wait_until  # noqa: E402

from workers.broker.connection import Connection  # noqa: E402
from workers.gateway.awaited_connection import AwaitedConnection  # noqa: E402
from workers.gateway.waiting import AwaitedAnswers  # noqa: E402
from workers.stop import Stop  # noqa: E402

pytestmark = pytest.mark.servers("embedded")

X = [0.5, 1, -2]


@pytest.fixture
def proxied(world):
    """A client whose gateway reaches Redis through a bad network, and that network."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    world.store.call("CONFIG", "SET", "port", port)
    proxy = Proxy(port)
    try:
        with serving(f"redis://127.0.0.1:{proxy.port}/0", world.feed) as client:
            yield client, proxy
    finally:
        proxy.close()


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
        with world.worker("--lease", "0.5") as worker:
            worker.wait_for(world.store, COUNT)
            asked = [threads.submit(ask, client, number) for number in range(4)]
            wait_until(lambda: len(replies) > 100)
            worker.kill()
        wait_until(lambda: any(reply.status == 202 for _, reply in list(replies)))
        with world.worker("--lease", "0.5") as again:
            wait_until(lambda: replies[-1][1].status == 200)
            stop.set()
            for one in asked:
                one.result()
            entries = world.store.length(world.store.keys.input)
            again.wait_for(world.store, entries)
        assert {reply.status for _, reply in replies} == {200, 202}
        assert entries == COUNT + len(replies), "each request added one entry"
        for sent, reply in replies:
            if reply.status == 202:
                (entry,) = reply.json["ids"]
                reply = client.get(f"/feeds/{world.feed}/answers/{entry}")
            assert (reply.status, reply.json["id"]) == (200, sent)


def test_a_thousand_connections_wait_at_once_and_all_are_answered(world):
    """A thousand requests are open before the worker begins; it then answers them all."""
    count = 1000
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
        wait_until(lambda: world.store.length(world.store.keys.input) == count)
        opened.enter_context(world.worker())
        seqs = set()
        for line in lines:
            reply = http.client.HTTPResponse(line)
            reply.begin()
            answer = json.load(reply)
            assert (reply.status, answer["status"]) == (200, "warming")
            seqs.add(answer["seq"])
        assert seqs == set(range(count))


def raise_limit(wanted):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        if hard < wanted:
            system_tools.missing(f"needs {wanted} open files: ulimit -Hn {wanted}")
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


@pytest.mark.servers("embedded", "system", "cluster", "sentinel")
def test_on_every_kind_of_server_who_waits_is_answered(world):
    with serving(world.url, world.feed) as client, ThreadPoolExecutor(1) as thread:
        path = f"/feeds/{world.feed}/examples?timeout="
        wait_until(lambda: client.post(path + "0", {"x": X}).status == 202)
        length = world.store.length(world.store.keys.input)
        asked = thread.submit(client.post, path + "60", [{"x": X, "y": "a"}, {"x": X}])
        wait_until(lambda: world.store.length(world.store.keys.input) == length + 2)
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
        wait_until(lambda: world.store.length(world.store.keys.input) == 1)
        world.answer(1)
        assert asked.result().status == 200


def test_while_redis_does_not_answer_nobody_waits_for_each_of_the_others(proxied, world):
    client, proxy = proxied
    path = f"/feeds/{world.feed}/examples?timeout=0"
    wait_until(lambda: client.post(path, {"x": X}).status == 202)
    proxy.is_black_hole = True
    began = time.monotonic()
    with ThreadPoolExecutor(20) as threads:
        replies = list(threads.map(lambda _: client.post(path, {"x": X}), range(20)))
    assert {reply.status for reply in replies} == {503}
    assert time.monotonic() - began < 20, "some five seconds of silence, once or twice for all"


def test_while_redis_is_away_requests_get_503_at_once_and_afterwards_answers(proxied, world):
    client, proxy = proxied
    path = f"/feeds/{world.feed}/examples?timeout=0"
    wait_until(lambda: client.post(path, {"x": X}).status == 202)
    added = world.store.length(world.store.keys.input)
    target, proxy.target = proxy.target, 1  # nobody listens there
    cut(world.store)
    assert client.post(path, {"x": X}).status == 503
    began = time.monotonic()
    reply = client.post(path, {"x": X})
    assert (reply.status, reply.headers["Retry-After"]) == (503, "1")
    assert reply.json == {"error": "Redis does not answer"}, "its address is for the log"
    assert time.monotonic() - began < 4, "nobody waits the five seconds of a silent server"
    proxy.target = target
    wait_until(lambda: client.post(path, {"x": X}).status == 202)
    assert world.store.length(world.store.keys.input) == added + 1


def cut(store):
    """Close the connections that come over the network, as a server does that ends."""
    for line in store.call("CLIENT", "LIST").decode().splitlines():
        (address,) = re.findall(r" addr=(\S+)", line)
        if address.startswith("127.0.0.1:"):
            store.call("CLIENT", "KILL", "ADDR", address)


def test_an_entry_whose_reply_was_lost_is_added_once_and_the_client_is_told(proxied, world):
    client, proxy = proxied
    path = f"/feeds/{world.feed}/examples?timeout=0"
    wait_until(lambda: client.post(path, {"x": X}).status == 202)
    before = world.store.length(world.store.keys.input)
    proxy.cuts[:] = [b"XADD"]
    reply = client.post(path, {"x": X})
    assert (reply.status, "may not have been added" in reply.json["error"]) == (503, True)
    assert proxy.cut == 1
    assert world.store.length(world.store.keys.input) == before + 1, "it is not sent again"


def test_a_request_that_waits_is_answered_though_redis_was_away_meanwhile(proxied, world):
    client, proxy = proxied
    path = f"/feeds/{world.feed}/examples?timeout="
    wait_until(lambda: client.post(path + "0", {"x": X}).status == 202)
    with ThreadPoolExecutor(1) as thread:
        before = world.store.length(world.store.keys.input)
        asked = thread.submit(client.post, path + "30", {"x": X})
        wait_until(lambda: world.store.length(world.store.keys.input) == before + 1)
        proxy.forget()
        world.work(before + 1)
        reply = asked.result()
    assert (reply.status, reply.json["seq"]) == (200, before)


def test_a_client_that_goes_away_costs_nobody_anything(world):
    with serving(world.url, world.feed) as client:
        path = f"/feeds/{world.feed}/examples?timeout=60"
        wait_until(lambda: client.post(path[:-2] + "0", {"x": X}).status == 202)
        for _ in range(50):
            line = http.client.HTTPConnection("127.0.0.1", client.port, timeout=60)
            line.request("POST", path, b'{"x":[1,2,3]}', {"Content-Type": "application/json"})
            line.close()
        world.work(1)
        assert client.post(path[:-2] + "0", {"x": X}).status in (200, 202)


def awaiting(store, work):
    """Run some work on the awaited answers of a feed in an event loop of its own."""

    async def run():
        calls, reads = (
            AwaitedConnection(Connection(store.url, Stop(), timeout=5), store.keys.state)
            for _ in range(2)
        )
        answers = AwaitedAnswers(store.keys, reads, calls)
        await asyncio.gather(calls.connected(5), reads.connected(5))
        try:
            return await work(answers)
        finally:
            await answers.close()
            await calls.close()
            await reads.close()

    return asyncio.run(run())


def answer(store, *entries):
    for entry in entries:
        store.call("XADD", store.keys.out, entry, "p", f"answer {entry}")


def test_answers_are_found_whatever_was_read_before_them(store):
    """The reader may be beyond an entry, before it, far behind it, or at rest."""

    async def work(answers):
        answer(store, "5-0", "6-0", "6-1")
        found = [await answers.wait([b"6-0"], 5), await answers.wait([b"5-0", b"6-1"], 5)]
        answer(store, *(f"7-{i}" for i in range(500)))
        found.append(await answers.wait([b"7-499", b"7-0"], 5))
        found.append(await answers.wait([b"7-250", b"9-0"], 0.05))
        waiting = asyncio.create_task(answers.wait([b"9-0", b"8-0"], 5))
        await asyncio.sleep(0.05)
        answer(store, "8-0", "8-1", "9-0")
        return [*found, await waiting]

    expected = [["6-0"], ["5-0", "6-1"], ["7-499", "7-0"], ["7-250", None], ["9-0", "8-0"]]
    assert awaiting(store, work) == [
        [None if at is None else b"answer " + at.encode() for at in row] for row in expected
    ]


def test_two_that_wait_for_one_entry_both_get_its_answer_and_nobody_is_kept(store):
    async def work(answers):
        both = [asyncio.create_task(answers.wait([b"5-0"], 5)) for _ in range(2)]
        late = await answers.wait([b"4-0"], 0.02)
        answer(store, "5-0")
        return [late, *await asyncio.gather(*both), answers._waiting]

    assert awaiting(store, work) == [[None], [b"answer 5-0"], [b"answer 5-0"], {}]


def test_an_entry_of_another_program_holds_nobody_up(store):
    async def work(answers):
        waiting = asyncio.create_task(answers.wait([b"5-0", b"6-0"], 1))
        await asyncio.sleep(0.02)
        store.call("XADD", store.keys.out, "5-0", "q", "no answer")
        answer(store, "6-0")
        return await waiting

    assert awaiting(store, work) == [None, b"answer 6-0"]


def test_who_waits_when_it_closes_gets_nothing_at_once(store):
    async def work(answers):
        waiting = asyncio.create_task(answers.wait([b"5-0"], 60))
        await asyncio.sleep(0.02)
        await answers.close()
        return await waiting

    assert awaiting(store, work) == [None]
