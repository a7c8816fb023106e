"""A history of faults: rounds of input, faults and work, inside this process or with whole ones.

In each round some input comes and up to three faults strike at once. The payloads are compared
with the answers of an uninterrupted worker.
"""

import json
import os
import random
import signal
import threading
import time
from collections import Counter, deque
from contextlib import suppress
from pathlib import Path

from history_modes import FEED, RETAINED, rows
from history_parts import Consumer, Worker, fenced, found_in
from session_steps import advance, answer_batch
from world import flags_of, push, seq_of

from workers.broker.store import Store
from workers.errors import WorkerError
from workers.session.session import Session

REFIT = 4.0
"""Seconds after which a refit process counts as hung, inside this process."""

LEASE, REPLY, PAUSE = "0.5", 1.0, 0.03
"""Of whole processes: seconds of a lease, for one reply, and between two looks."""

OK, FENCED, KILLED = 0, 3, -signal.SIGKILL

FAULTS = (
    "kill_redis", "freeze_redis", "cut_a_reply", "cut_every_line", "lose_everything_for_a_moment",
    "kill_the_refits", "freeze_the_refits",
)  # fmt: skip
"""Faults of every history; each kind adds its own. A fault with nothing to do returns False."""


class History:
    """The steps of every history; a subclass has the participants.

    It has `_begin`, `_round`, `_end`, `_close`, and `_refits`: the pids of the refit processes.
    The feed has `count` entries; no other history uses the server, or the proxy in front of it.
    `faults` counts the faults that struck.
    """

    SECONDS = 270.0
    """After which a history counts as stuck."""

    FROZEN, DARK, KILLED = (0.02, 0.05, 0.2), (0.01, 0.05), 0.01
    """Seconds that Redis is frozen, and the network swallows all; within which Redis is killed."""

    STILL = (0.5,)
    """Seconds that a refit process is frozen; None is until it is taken for hung and replaced."""

    def __init__(self, seed, mode, server, proxy, count):
        self.mode, self.faults = mode, Counter()
        self._choose, self._server, self._proxy = random.Random(seed), server, proxy
        self._entries, self._pushed = rows(mode, seed, count), 0
        self._url = f"redis://127.0.0.1:{proxy.port}/0"
        self._store = Store(server.url, FEED, retry_timeout=20.0)
        self._under_way, self._consumer = [], None
        self._deadline = time.monotonic() + self.SECONDS

    def run(self):
        """Return what came out; see `found_in`."""
        try:
            self._begin()
            while not self._is_done():
                self._check_time()
                self._round()
            self._end()
            self._consume(1000)
            read = self._consumer and self._consumer.answers
            return found_in(self._server.url, read)
        finally:
            self._rest()
            self._close()
            for store in (self._store, self._consumer):
                if store is not None:
                    store.close()

    # Parts of a round

    def _begin_consumer(self):
        if "block" in self.mode:
            self._consumer = Consumer(self._server.url, FEED)

    def _push(self, count):
        first = self._pushed
        self._pushed = min(first + count, len(self._entries))
        push(self._store, self._entries[first : self._pushed], first + 1)

    def _is_all_there(self):
        return self._pushed == len(self._entries)

    def _strike(self, possible, counts):
        """Let some of the possible faults strike; their number is drawn from `counts`."""
        count = min(self._choose.choice(counts), len(possible))
        for fault in self._choose.sample(possible, count):
            if getattr(self, fault)() is not False:
                self.faults[fault] += 1

    def _rest(self):
        """Wait until what the faults began is over."""
        for thread in self._under_way:
            thread.join()
        self._under_way.clear()

    def _consume(self, count):
        """Read answers of a blocked feed."""
        if self._consumer is not None:
            self._consumer.read(count)
            self._consumer.acknowledge()

    def _is_done(self):
        return self._is_all_there() and seq_of(self._store) == len(self._entries)

    def _check_time(self):
        if time.monotonic() > self._deadline:
            found = None
            with suppress(WorkerError):
                found = seq_of(self._store)
            raise AssertionError(f"stuck at {found}")

    # Faults of Redis, the network and refit processes

    def kill_redis(self):
        """Kill it at once; it comes back with the content of its file."""

        def restart():
            self._server.kill()
            self._server.start()

        self._later(self._choose.random() * self.KILLED, restart)

    def freeze_redis(self):
        self._freeze(self._server.process.pid, self.FROZEN)

    def cut_a_reply(self):
        self._proxy.cuts.append(self._choose.choice((b"EVALSHA", b"XREAD", b"XRANGE")))

    def cut_every_line(self):
        """The lines are half-open: nothing comes back."""
        self._proxy.forget()

    def lose_everything_for_a_moment(self):
        self._proxy.is_black_hole = True
        self._later(
            self._choose.choice(self.DARK), lambda: setattr(self._proxy, "is_black_hole", False)
        )

    def kill_the_refits(self):
        return self._each_refit(lambda pid: signalled(pid, signal.SIGKILL))

    def freeze_the_refits(self):
        return self._each_refit(lambda pid: self._freeze(pid, self.STILL))

    def _each_refit(self, act):
        pids = self._refits()
        for pid in pids:
            act(pid)
        return bool(pids)

    def _freeze(self, pid, times):
        signalled(pid, signal.SIGSTOP)
        seconds = self._choose.choice(times)
        if seconds is not None:
            self._later(seconds, lambda: signalled(pid, signal.SIGCONT))

    def _later(self, seconds, act):
        """Do something in the middle of what the workers do then."""

        def wait():
            time.sleep(seconds)
            act()

        self._under_way.append(threading.Thread(target=wait))
        self._under_way[-1].start()


class Inside(History):
    STILL = (0.1,) * 9 + (None,)
    CALM = ("crash", "stop_in_order", "resume", "cut_a_reply")
    ALL = (
        *FAULTS, "crash", "stop_in_order", "pause", "resume",
        "run_out_of_memory", "flush_the_scripts", "destroy_the_bookmark", "damage_a_snapshot",
    )  # fmt: skip

    def __init__(self, seed, mode, server, proxy, count=110):
        super().__init__(seed, mode, server, proxy, count)
        self._damaged = set()
        self._worker = self._other = None

    def _begin(self):
        self._worker = self._new_worker()
        self._begin_consumer()

    def _round(self):
        count = self._choose.randint(6, 24)
        self._push(count)
        self._strike(self.CALM if self._is_all_there() else self.ALL, (0, 1, 2, 3))
        for _ in range(8 if self._is_all_there() else self._choose.randint(1, 4)):
            self._act(self._choose.choice((advance, advance, answer_batch)))
        self._rest()
        self._consume(self._choose.choice((3, 20, RETAINED)))

    def _act(self, how):
        """Let the worker do something; in a pair, now and then the other one takes over."""
        if self._other is not None and self._choose.random() < 0.3:
            self.resume()
            if "two" in self.mode:
                self.pause()
        assert not fenced(how, self._worker.session), "the newest worker was refused"

    def _end(self):
        self._worker.session.finish_commit()

    def _close(self):
        for part in (self._worker, self._other):
            if part is not None:
                part.abandon()

    def _new_worker(self):
        pick = self._choose.choice
        settings = self.mode.settings(batch=pick((2, 5, 12, 40)), replay_budget=pick((5, 17, 60)))
        return Worker(self._url, FEED, settings, REFIT)

    def _refits(self):
        pid = self._worker.refit_pid
        return [] if pid is None else [pid]

    # Its faults

    def crash(self):
        """The worker is killed, with what it has under way."""
        self._worker.abandon()
        self._worker = self._new_worker()

    def stop_in_order(self):
        self._worker.session.snapshot()
        self.crash()

    def pause(self):
        """Another worker takes over; what the paused one has in mind stays in its mind."""
        if self._other is not None:
            return False
        self._other, self._worker = self._worker, None
        self._worker = self._new_worker()
        return True

    def resume(self):
        """The paused worker goes on, and finds itself replaced."""
        if self._other is None:
            return False
        other, self._other = self._other, None
        how = self._choose.choice((Session.snapshot, answer_batch, Session.finish_commit))
        newest = self._worker.session
        assert not fenced(Session.finish_commit, newest), "the newest worker was refused"
        before = self._store.state()
        if not fenced(how, other.session):
            assert self._store.state() == before, "two workers wrote"
        other.abandon()
        return True

    def run_out_of_memory(self):
        self._store.call("CONFIG", "SET", "maxmemory", "1")

        def end():
            with Store(self._server.url, FEED, retry_timeout=20.0) as another:
                another.call("CONFIG", "SET", "maxmemory", "0")

        self._later(0.05, end)

    def flush_the_scripts(self):
        self._store.call("SCRIPT", "FLUSH")

    def destroy_the_bookmark(self):
        store = self._store
        if store.call("EXISTS", store.keys.input):
            store.call("XGROUP", "DESTROY", store.keys.input, "osvm")

    def damage_a_snapshot(self):
        """One of the two that are kept, so that the feed can go on."""
        store = self._store
        kept = store.state().snapshots
        if len(kept) < 2 or self._damaged & {pointer.sha256 for pointer in kept}:
            return False
        pointer = self._choose.choice(kept)
        self._damaged.add(pointer.sha256)
        store.call("DEL", self._choose.choice(pointer.keys(store.keys)))
        return True


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
        self.signal(signal.SIGCONT)
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait()
        allowed = {OK, *self._allowed, *also}
        if FENCED in allowed:  # it may be ending as this strikes, and no more handle the signal
            allowed.add(-signal.SIGTERM)
        self._check(code, allowed)

    def _check(self, code, allowed):
        assert code in allowed, f"ended with {code}: {self.process.said[-2000:]}"


class Processes(History):
    SECONDS = 270.0
    FROZEN, DARK, KILLED = (0.05, 0.5, 1.3), (0.05, 0.5), 0.1

    FINISHED = 5.0
    """Seconds within which a refit is finished that nothing strikes."""

    ALL = (*FAULTS, "kill_a_worker", "freeze_a_worker")

    def __init__(self, seed, mode, server, proxy, nursery, count=150):
        super().__init__(seed, mode, server, proxy, count)
        self._nursery, self._log = nursery, Path(f"{nursery.log}.{seed}")
        self._parts, self._kills = {}, deque([-self.FINISHED] * 2, maxlen=2)

    def _begin(self):
        for name in ("worker", "standby") if "two" in self.mode else ("worker",):
            self._start(name)
        self._wait_until(self._store.state)
        self._begin_consumer()

    def _start(self, name):
        log = self._log.with_name(f"{self._log.name}.{name}")

        self._parts[name] = Part(lambda: self._nursery.run(self._arguments(), log, timeout=REPLY))

    def _arguments(self):
        pick = self._choose.choice
        changing = {"batch": pick((1, 4, 20)), "replay_budget": pick((9, 40))}
        flags = flags_of(self.mode.options | changing | {"lease": LEASE})
        return ["worker", FEED, "--redis", self._url, "--wait-redis", "30", *flags]

    def _round(self):
        goal = seq_of(self._store) + self._choose.randint(1, 12)
        self._push(self._choose.randint(15, 30))
        if self._is_all_there():
            goal = len(self._entries)
        else:
            self._strike(self.ALL, (1, 2, 3))
        self._rest()
        self._wait_until(lambda: seq_of(self._store) >= goal)

    def _wait_until(self, is_true):
        while not is_true():
            self._check_time()
            for part in self._parts.values():
                part.tend(self._ends)
            self._consume(20)
            time.sleep(PAUSE)

    @property
    def _ends(self):
        """The exit codes that a part may have at any time: of two workers, either takes over."""
        return {FENCED} if "two" in self.mode else set()

    def _is_done(self):
        if not self._is_all_there():
            return False
        self._wait_until(super()._is_done)
        return True

    def _end(self):
        for part in self._parts.values():
            part.end(self._ends)

    def _close(self):
        for part in self._parts.values():
            signalled(part.process.pid, signal.SIGCONT)
            part.process.kill()

    # Its faults

    def kill_a_worker(self):
        self._holder().signal(signal.SIGKILL)

    def freeze_a_worker(self):
        """For a moment, or past its lease: where there are two, the other one takes over."""
        self._freeze_part(self._holder(), (0.05, 0.3, 1.0))

    def _freeze_part(self, part, seconds):
        part.signal(signal.SIGSTOP)
        self._later(self._choose.choice(seconds), lambda: part.signal(signal.SIGCONT))

    def kill_the_refits(self):
        """Not the third in a row: a worker gives a refit up that failed in three processes."""
        now = time.monotonic()
        if now - self._kills[0] < self.FINISHED or not super().kill_the_refits():
            return False
        self._kills.append(now)
        return True

    def _refits(self):
        return children_of(self._holder().process.pid)

    def _holder(self):
        """Return the worker that has the feed, or the only one."""
        if "standby" not in self._parts:
            return self._parts["worker"]
        store = self._store
        lease = json.loads(store.call("GET", store.keys.lease) or b"{}")
        standby = self._parts["standby"]
        return standby if lease.get("pid") == standby.process.pid else self._parts["worker"]


def signalled(pid, number):
    """Send a signal to a process that may be gone."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def children_of(pid):
    """Return the process ids of the children of a process (Linux)."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            found += map(int, task.read_text().split())
    return found
