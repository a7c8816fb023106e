"""One history of whole processes: workers, their refit processes, a combination, Redis, a network.

What has ended is started again.
"""

import json
import signal
import time
from contextlib import suppress
from pathlib import Path

from history_faults import FAULTS, History, signalled
from history_modes import FEEDS, JOIN_WINDOW, SECOND, TARGET
from world import flags_of, seq_of

LEASE, REPLY, PAUSE = "0.5", 1.0, 0.03
"""Seconds of a lease, for one reply, and between two looks."""

OK, UNAVAILABLE, FENCED, KILLED = 0, 2, 3, -signal.SIGKILL


class Part:
    """One writer of a feed, started by `begin` again whenever it has ended."""

    def __init__(self, begin):
        self._begin, self.process, self._allowed = begin, begin(), set()

    def signal(self, number):
        """Kill or freeze it; a frozen one may find itself replaced."""
        self._allowed |= {signal.SIGKILL: {KILLED}, signal.SIGSTOP: {FENCED}}.get(number, set())
        with suppress(ProcessLookupError):
            self.process.send_signal(number)

    def tend(self, also=()):
        """Start it again if it ended; it must have had a reason."""
        code = self.process.poll()
        if code is not None:
            self._check(code, {*self._allowed, *also})
            self.process, self._allowed = self._begin(), set()

    def end(self, also=()):
        """Stop it in order."""
        self.signal(signal.SIGCONT)
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(30)
        allowed = {OK, *self._allowed, *also}
        if FENCED in allowed:  # it may be ending as this strikes, and no more handle the signal
            allowed.add(-signal.SIGTERM)
        self._check(code, allowed)

    def _check(self, code, allowed):
        assert code in allowed, f"ended with {code}: {self.process.said[-2000:]}"


class Processes(History):
    """A history of whole processes, which a nursery starts."""

    SECONDS = 150.0
    FROZEN, DARK, KILLED = (0.05, 0.5, 1.3), (0.05, 0.5), 0.1

    def __init__(self, seed, mode, server, proxy, nursery, count=150):
        super().__init__(seed, mode, server, proxy, count)
        self._nursery, self._log = nursery, Path(f"{nursery.log}.{seed}")
        self._parts = {}

    def _begin(self):
        for name in ("worker", "standby") if "two" in self.mode else ("worker",):
            self._start(name, self._worker_of(FEEDS[0], self.mode.options))
        if "combine" in self.mode:
            self._start("second", self._worker_of(FEEDS[1], SECOND))
        self._wait_until(lambda: all(self._stores[feed].state() for feed in self._entries))
        self._begin_consumer()
        if "combine" in self.mode:
            options = ["--into", TARGET, "--redis", self._url, "--batch", "7"]
            options += ["--join-window", str(JOIN_WINDOW)]
            self._start("combination", lambda: ["combine", *FEEDS, *options])

    def _start(self, name, arguments):
        log = self._log.with_name(f"{self._log.name}.{name}")

        self._parts[name] = Part(lambda: self._nursery.run(arguments(), log, timeout=REPLY))

    def _worker_of(self, feed, options):
        def arguments():
            pick = self._choose.choice
            changing = {"batch": pick((1, 4, 20)), "replay_budget": pick((9, 40))}
            flags = flags_of(options | changing | {"lease": LEASE})
            return ["worker", feed, "--redis", self._url, "--wait-redis", "30", *flags]

        return arguments

    def _round(self):
        goal = seq_of(self._stores[FEEDS[0]]) + self._choose.randint(1, 12)
        for feed in self._entries:
            self._push(feed, self._choose.randint(15, 30))
        if self._is_all_there():
            goal = len(self._entries[FEEDS[0]])
        else:
            self._strike(ALL, (1, 2, 3))
        self._rest()
        self._wait_until(lambda: seq_of(self._stores[FEEDS[0]]) >= goal)

    def _wait_until(self, is_true):
        while not is_true():
            self._check_time()
            for name, part in self._parts.items():
                part.tend(self._ends(name))
            self._consume(20)
            time.sleep(PAUSE)

    def _ends(self, name):
        """Return the exit codes that a part may have at any time.

        Either of two workers may take over from the other; a combination that starts while Redis
        is away does not wait for it.
        """
        pair = {FENCED} if "two" in self.mode else set()
        return {"worker": pair, "standby": pair, "combination": {UNAVAILABLE}}.get(name, set())

    def _is_done(self):
        if not all(map(self._is_all_there, self._entries)):
            return False
        self._wait_until(super()._is_done)
        return True

    def _end(self):
        for name, part in self._parts.items():
            part.end(self._ends(name))

    def _close(self):
        for part in self._parts.values():
            signalled(part.process.pid, signal.SIGCONT)
            part.process.kill()

    # The faults: each returns False where there was nothing to do

    def kill_a_worker(self):
        self._holder().signal(signal.SIGKILL)

    def freeze_a_worker(self):
        """For a moment, or past its lease: where there are two, the other one takes over."""
        self._freeze_part(self._holder(), (0.05, 0.3, 1.0))

    def kill_the_combination(self):
        part = self._parts.get("combination")
        return part is not None and part.signal(signal.SIGKILL)

    def freeze_the_combination(self):
        part = self._parts.get("combination")
        return part is not None and self._freeze_part(part, (0.05, 0.5))

    def _freeze_part(self, part, seconds):
        part.signal(signal.SIGSTOP)
        self._later(self._choose.choice(seconds), lambda: part.signal(signal.SIGCONT))

    def _refits(self):
        return children_of(self._holder().process.pid)

    def _holder(self):
        """Return the worker that has the feed, or the only one."""
        if "standby" not in self._parts:
            return self._parts["worker"]
        store = self._stores[FEEDS[0]]
        lease = json.loads(store.call("GET", store.keys.lease) or b"{}")
        standby = self._parts["standby"]
        return standby if lease.get("pid") == standby.process.pid else self._parts["worker"]


ALL = [
    *FAULTS, Processes.kill_a_worker, Processes.freeze_a_worker, Processes.kill_the_combination,
    Processes.freeze_the_combination,
]  # fmt: skip


def children_of(pid):
    """Return the process ids of the children of a process (Linux)."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            found += map(int, task.read_text().split())
    return found
