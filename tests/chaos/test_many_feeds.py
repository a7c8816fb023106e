"""Fifty feeds in one process that is killed, paused, replaced and cut off: no byte changes."""

import os
import random
import signal
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from fault_redis import Server
from many_feeds import answer_alone, has_answered, settings
from processes import Process
from world import push, rows, wait_until

from workers.broker.store import Store

FEEDS, KINDS, COUNT, PARTS = 50, 5, 400, 8
LAGGING = {"refit_lag": 10, "replay_budget": 150}
OPTIONS = [
    *("--classes", "a,b", "--window", "60", "--refit-every", "20", "--refit-lag", "10"),
    *("--metrics-every", "10", "--gamma", "0.5", "--replay-budget", "150", "--lease", "1"),
    *("--refit-processes", "1", "--quiet"),
]


class Fleet:
    """Processes that answer the same fifty feeds, one of them at a time."""

    def __init__(self, url, log):
        self._url, self._log = url, log
        self.processes = []

    def start(self):
        command = [sys.executable, "-m", "workers.cli", "worker", "c-*", "--redis", self._url]
        with self._log.open("a") as log:
            self.processes.append(Process([*command, *OPTIONS], stderr=log, stdout=log))
        return self.processes[-1]

    def kill_all(self):
        for process in self.processes:
            process.kill()
            process.wait()


def children(process):
    """Return the process ids of the refit processes."""
    tasks = Path(f"/proc/{process.pid}/task").iterdir()
    return [int(pid) for task in tasks for pid in (task / "children").read_text().split()]


@pytest.mark.scale
@pytest.mark.timeout(600)
def test_fifty_feeds_have_the_digests_of_workers_of_their_own_whatever_happens(tmp_path):
    choose = random.Random(5)
    inputs = [rows(COUNT, seed) for seed in range(KINDS)]
    with ExitStack() as opened:
        server = Server(tmp_path / "redis")
        opened.callback(server.stop)
        fleet = Fleet(server.url, tmp_path / "log")
        opened.callback(fleet.kill_all)
        stores = [opened.enter_context(Store(server.url, f"c-{i}")) for i in range(FEEDS)]
        for store in stores:
            store.be_patient()
            store.register()
        step, done = COUNT // PARTS, 0

        def more():
            """Push the next part to every feed, in an order of its own."""
            nonlocal done
            for i in choose.sample(range(FEEDS), FEEDS):
                part = inputs[i % KINDS][done : done + step]
                push(stores[i], part, first=done + 1)
            done += step

        def answered(count=None, of=FEEDS):
            goal = done if count is None else count
            wait_until(
                lambda: sum(has_answered(store, goal) for store in stores) >= of, seconds=120.0
            )

        more()
        first = fleet.start()
        answered()
        more()
        answered(step + 5, of=10)
        first.kill()  # in the middle
        second = fleet.start()
        answered()
        more()
        answered(2 * step + 5, of=10)
        second.send_signal(signal.SIGSTOP)  # beyond its lease
        third = fleet.start()
        answered()
        second.send_signal(signal.SIGCONT)
        more()
        for pid in children(third):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        answered()
        more()
        answered(4 * step + 5, of=10)
        server.kill()
        time.sleep(2.0)
        server.start()
        answered()
        third.terminate()  # the second, which waits, takes over
        more()
        answered()
        assert third.wait() == 0, fleet._log.read_text()[-3000:]
        second.kill()
        last = fleet.start()
        more()
        answered(6 * step + 5, of=25)
        last.kill()
        more()
        fourth = fleet.start()
        answered()
        fourth.terminate()
        assert fourth.wait() == 0, fleet._log.read_text()[-3000:]
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
