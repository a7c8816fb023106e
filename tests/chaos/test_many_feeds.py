"""Fifty feeds in one process that is killed, paused, replaced and cut off: no byte changes."""

import random
import signal
import time
from contextlib import ExitStack

import pytest
from fault_redis import Server
from history_faults import children_of, signalled
from many_feeds import answer_alone, has_answered, settings
from world import SETTINGS, Worker, flags_of, push, rows, wait_until

from workers.broker.store import Store

FEEDS, KINDS, COUNT, PARTS = 50, 5, 400, 8
STEP = COUNT // PARTS
LAGGING = {"replay_budget": 150}
OPTIONS = flags_of(SETTINGS | LAGGING | {"lease": 1, "refit_processes": 1, "quiet": True})


@pytest.mark.scale
@pytest.mark.timeout(600)
def test_fifty_feeds_have_the_digests_of_workers_of_their_own_whatever_happens(tmp_path, lagging):
    choose = random.Random(5)
    inputs = [rows(COUNT, seed) for seed in range(KINDS)]
    with ExitStack() as opened:
        server = Server(tmp_path / "redis")
        opened.callback(server.stop)
        stores = [opened.enter_context(Store(server.url, f"c-{i}")) for i in range(FEEDS)]
        for store in stores:
            store.retry_forever()
            store.register()
        done = 0

        def start():
            return opened.enter_context(Worker("worker", "c-*", "--redis", server.url, *OPTIONS))

        def more():
            """Push the next part to every feed, in an order of its own."""
            nonlocal done
            for i in choose.sample(range(FEEDS), FEEDS):
                push(stores[i], inputs[i % KINDS][done : done + STEP], first=done + 1)
            done += STEP

        def answered(goal=None, of=FEEDS):
            goal = goal or done
            wait_until(lambda: sum(has_answered(store, goal) for store in stores) >= of, 120.0)

        def in_the_middle(of=10):
            """Push the next part, and wait until some of it is answered by some feeds."""
            more()
            answered(done - STEP + 5, of)

        more()
        first = start()
        answered()
        in_the_middle()
        first.kill()
        second = start()
        answered()
        in_the_middle()
        second.send_signal(signal.SIGSTOP)  # beyond its lease
        third = start()
        answered()
        second.send_signal(signal.SIGCONT)
        more()
        for pid in children_of(third.pid):
            signalled(pid, signal.SIGKILL)
        answered()
        in_the_middle()
        server.kill()
        time.sleep(2.0)
        server.start()
        answered()
        third.terminate()  # the second, which waits, takes over
        more()
        answered()
        assert third.wait() == 0, third.said
        second.kill()
        last = start()
        in_the_middle(of=25)
        last.kill()
        more()
        fourth = start()
        answered()
        fourth.stopped(60.0)
        assert done == COUNT
        expected = []
        for kind in range(KINDS):
            alone = opened.enter_context(Store(server.url, f"alone-{kind}"))
            push(alone, inputs[kind])
            answer_alone(alone, COUNT, settings(**LAGGING))
            expected.append(alone.state().position)
        assert [store.state().position for store in stores] == [
            expected[i % KINDS] for i in range(FEEDS)
        ]
        assert all(store.length(store.keys.out) == COUNT for store in stores)
