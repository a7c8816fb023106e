"""One history of whole processes: workers, their refit processes, a combination, Redis, a network.

In each round some input comes and up to three of them are killed, frozen or cut off at once; what
has ended is started again. What comes out is compared as in a history inside one process.
"""

import json
import random
import signal
import threading
import time
from collections import Counter, deque
from contextlib import suppress
from pathlib import Path

from history_inside import signalled
from history_modes import FEEDS, JOIN_WINDOW, SECOND, TARGET, entries_of
from history_parts import Consumer
from history_results import found_in
from world import flags_of, push

from workers.broker.store import Store
from workers.errors import WorkerError

SECONDS = 150.0
"""After which a history counts as stuck."""

LEASE, REPLY, PAUSE = "0.5", 1.0, 0.03
"""Seconds of a lease, for one reply, and between two looks."""

OK, UNAVAILABLE, FENCED, KILLED = 0, 2, 3, -signal.SIGKILL


class Part:
    """One writer of a feed, started again whenever it has ended.

    Parameters
    ----------
    begin : callable without arguments
        Starts the process.
    log : Path
        Where it says why it ended.
    """

    def __init__(self, begin, log):
        self._begin, self._log = begin, log
        self.process, self._is_paused, self._allowed = begin(), False, set()

    def signal(self, number):
        """Kill or freeze it; a frozen one may find itself replaced."""
        self._allowed |= {signal.SIGKILL: {KILLED}, signal.SIGSTOP: {FENCED}}.get(number, set())
        with suppress(ProcessLookupError):
            self.process.send_signal(number)

    def tend(self, also=()):
        """Start it again if it ended; it must have had a reason."""
        code = self.process.poll()
        if code is None:
            return
        allowed = self._allowed | set(also)
        assert code in allowed, f"ended with {code}: {self._log.read_text()[-2000:]}"
        self.process, self._allowed = self._begin(), set()

    def end(self, also=()):
        """Stop it in order."""
        self.signal(signal.SIGCONT)
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(30)
        allowed = {OK, *self._allowed, *also}
        if FENCED in allowed:  # it may be ending as this strikes, and no more handle the signal
            allowed.add(-signal.SIGTERM)
        assert code in allowed, f"ended with {code}: {self._log.read_text()[-2000:]}"


class Processes:
    """A history of whole processes.

    Parameters
    ----------
    seed : int
    mode : Mode
    server, proxy : as for `Inside`
    nursery : Nursery
        Starts the processes.
    count : int
        Entries of the feed.

    Attributes
    ----------
    faults : Counter of the faults that struck
    """

    def __init__(self, seed, mode, server, proxy, nursery, count=150):
        self.mode, self.faults = mode, Counter()
        self._choose, self._server, self._proxy = random.Random(seed), server, proxy
        self._nursery, self._log = nursery, Path(f"{nursery.log}.{seed}")
        self._url = f"redis://127.0.0.1:{proxy.port}/0"
        self._entries = entries_of(mode, seed, count)
        self._waiting = {feed: deque(enumerate(e, 1)) for feed, e in self._entries.items()}
        self._under_way, self._parts = [], {}
        self._stores = {
            feed: Store(server.url, feed, patience=20.0) for feed in [*self._entries, TARGET]
        }
        self._consumer = None
        self._deadline = time.monotonic() + SECONDS

    def run(self):
        """Return what came out; see `found_in`."""
        try:
            self._begin()
            while not self._is_done():
                self._round()
            for name, part in self._parts.items():
                part.end(self._ends(name))
            self._consume(1000)
            read = self._consumer and self._consumer.answers
            return found_in(self._server.url, self.mode, read)
        finally:
            self._close()

    def _begin(self):
        for name in ("worker", "standby") if "two" in self.mode else ("worker",):
            self._start(name, self._worker_of(FEEDS[0], self.mode.options))
        if "combine" in self.mode:
            self._start("second", self._worker_of(FEEDS[1], SECOND))
        for feed in self._entries:
            self._wait_until(lambda feed=feed: self._seq(feed) >= 0)
        if "block" in self.mode:
            consumer = Consumer(self._server.url, FEEDS[0])
            consumer.begin()
            self._consumer = consumer
        if "combine" in self.mode:
            options = ["--into", TARGET, "--redis", self._url, "--batch", "7"]
            options += ["--join-window", str(JOIN_WINDOW)]
            self._start("combination", lambda: ["combine", *FEEDS, *options])

    def _start(self, name, arguments):
        log = self._log.with_name(f"{self._log.name}.{name}")

        def begin():
            return self._nursery.run(arguments(), log, timeout=REPLY)

        self._parts[name] = Part(begin, log)

    def _worker_of(self, feed, options):
        def arguments():
            choose = self._choose
            changing = {
                "batch": choose.choice((1, 4, 20)),
                "replay_budget": choose.choice((9, 40)),
            }
            flags = flags_of(options | changing | {"lease": LEASE})
            return ["worker", feed, "--redis", self._url, "--wait-redis", "30", *flags]

        return arguments

    def _round(self):
        goal = self._seq(FEEDS[0]) + self._choose.randint(1, 12)
        for feed in self._entries:
            self._push(feed, self._choose.randint(15, 30))
        goal = min(goal, len(self._entries[FEEDS[0]]))
        possible = FAULTS if self._waiting[FEEDS[0]] else []
        count = min(len(possible), self._choose.choice((1, 2, 3)))
        for fault in self._choose.sample(possible, count):
            if fault(self) is not False:
                self.faults[fault.__name__] += 1
        for thread in self._under_way:
            thread.join()
        self._under_way.clear()
        self._wait_until(lambda: self._seq(FEEDS[0]) >= goal)

    def _push(self, feed, count):
        waiting = self._waiting[feed]
        for _ in range(min(count, len(waiting))):
            number, entry = waiting.popleft()
            push(self._stores[feed], [entry], number)

    def _wait_until(self, is_true):
        while not is_true():
            assert time.monotonic() < self._deadline, f"stuck at {self._positions()}"
            self._tend()
            self._consume(20)
            time.sleep(PAUSE)

    def _tend(self):
        for name, part in self._parts.items():
            part.tend(self._ends(name))

    def _ends(self, name):
        """Return the exit codes that a part may have at any time.

        Either of two workers may take over from the other; a combination that starts while Redis
        is away does not wait for it.
        """
        pair = {FENCED} if "two" in self.mode else set()
        return {"worker": pair, "standby": pair, "combination": {UNAVAILABLE}}.get(name, set())

    def _consume(self, count):
        if self._consumer is None:
            return
        self._consumer.read(count)
        if "combine" not in self.mode:
            self._consumer.acknowledge()
        elif (state := self._stores[TARGET].state()) is not None:
            self._consumer.acknowledge(state.position.cursor)

    def _is_done(self):
        if any(self._waiting.values()):
            return False
        goals = {feed: len(entries) for feed, entries in self._entries.items()}
        if "combine" in self.mode:
            goals[TARGET] = goals[FEEDS[0]]
        self._wait_until(lambda: all(self._seq(feed) == goal for feed, goal in goals.items()))
        return True

    def _seq(self, feed):
        state = self._stores[feed].state()
        return state.position.seq if state else -1

    def _positions(self):
        found = {}
        for feed in self._stores:
            with suppress(WorkerError):
                found[feed] = self._seq(feed)
        return found

    def _close(self):
        for thread in self._under_way:
            thread.join()
        for part in self._parts.values():
            signalled(part.process.pid, signal.SIGCONT)
            part.process.kill()
        for store in (*self._stores.values(), self._consumer):
            if store is not None:
                store.close()

    # The faults: each returns False where there was nothing to do

    def kill_a_worker(self):
        self._holder().signal(signal.SIGKILL)

    def freeze_a_worker(self):
        """For a moment, or past its lease: where there are two, the other one takes over."""
        part = self._holder()
        part.signal(signal.SIGSTOP)
        self._later(self._choose.choice((0.05, 0.3, 1.0)), lambda: part.signal(signal.SIGCONT))

    def kill_the_refits(self):
        return self._signal_refits(signal.SIGKILL)

    def freeze_the_refits(self):
        pids = self._refits()
        if not self._signal_refits(signal.SIGSTOP):
            return False
        for pid in pids:
            self._later(0.5, lambda pid=pid: signalled(pid, signal.SIGCONT))
        return True

    def kill_the_combination(self):
        if "combination" not in self._parts:
            return False
        self._parts["combination"].signal(signal.SIGKILL)
        return True

    def freeze_the_combination(self):
        if "combination" not in self._parts:
            return False
        part = self._parts["combination"]
        part.signal(signal.SIGSTOP)
        self._later(self._choose.choice((0.05, 0.5)), lambda: part.signal(signal.SIGCONT))
        return True

    def kill_redis(self):
        def restart():
            self._server.kill()
            time.sleep(0.1)
            self._server.start()

        self._later(self._choose.random() * 0.1, restart)

    def freeze_redis(self):
        process = self._server._process
        process.send_signal(signal.SIGSTOP)
        self._later(
            self._choose.choice((0.05, 0.5, 1.3)), lambda: signalled(process.pid, signal.SIGCONT)
        )

    def cut_a_reply(self):
        self._proxy.cuts.append(self._choose.choice((b"EVALSHA", b"XREAD", b"XRANGE")))

    def cut_every_line(self):
        self._proxy.forget()

    def lose_everything_for_a_moment(self):
        self._proxy.is_black_hole = True

        def end():
            self._proxy.is_black_hole = False

        self._later(self._choose.choice((0.05, 0.5)), end)

    def _holder(self):
        """Return the worker that has the feed, or the only one."""
        if "standby" not in self._parts:
            return self._parts["worker"]
        store = self._stores[FEEDS[0]]
        lease = json.loads(store.call("GET", store.keys.lease) or b"{}")
        standby = self._parts["standby"]
        return standby if lease.get("pid") == standby.process.pid else self._parts["worker"]

    def _refits(self):
        return children_of(self._holder().process.pid)

    def _signal_refits(self, number):
        pids = self._refits()
        for pid in pids:
            signalled(pid, number)
        return bool(pids)

    def _later(self, seconds, act):
        def wait():
            time.sleep(seconds)
            act()

        self._under_way.append(threading.Thread(target=wait))
        self._under_way[-1].start()


FAULTS = [
    Processes.kill_a_worker, Processes.freeze_a_worker, Processes.kill_the_refits,
    Processes.freeze_the_refits, Processes.kill_the_combination, Processes.freeze_the_combination,
    Processes.kill_redis, Processes.freeze_redis, Processes.cut_a_reply, Processes.cut_every_line,
    Processes.lose_everything_for_a_moment,
]  # fmt: skip


def children_of(pid):
    """Return the process ids of the children of a process (Linux)."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            found += map(int, task.read_text().split())
    return found
