"""One history of faults inside this process, on a real Redis behind a bad network.

In each round some input comes, up to three faults strike at once, and the workers go on. What comes
out is compared with what an uninterrupted worker answers, payload by payload.
"""

import os
import random
import signal
import threading
import time
from collections import Counter
from contextlib import suppress

from history_modes import FEEDS, RETAINED, SECOND, TARGET, entries_of
from history_parts import Combination, Consumer, Worker, fenced
from history_results import found_in
from session_steps import advance, answer_batch
from world import push

from workers.broker.store import Store
from workers.config.settings import WorkerSettings
from workers.session.session import Session

SECONDS = 90.0
"""After which a history counts as stuck."""

REFIT = 4.0
"""Seconds after which a refit process counts as hung."""


class Inside:
    """A history in this process.

    Parameters
    ----------
    seed : int
    mode : Mode
    server : fault_redis.Server
    proxy : fault_proxy.Proxy
        In front of it; no other history uses either.
    count : int
        Entries of the feed.

    Attributes
    ----------
    faults : Counter of the faults that struck
    """

    def __init__(self, seed, mode, server, proxy, count=110):
        self.mode, self.faults = mode, Counter()
        self._choose, self._server, self._proxy = random.Random(seed), server, proxy
        self._entries = entries_of(mode, seed, count)
        self._url = f"redis://127.0.0.1:{proxy.port}/0"
        self._direct = {feed: Store(server.url, feed, patience=20.0) for feed in self._entries}
        self._pushed, self._under_way, self._damaged = 0, [], set()
        self._worker = self._other = self._second = self._combination = self._consumer = None
        self._deadline = time.monotonic() + SECONDS

    def run(self):
        """Return what came out; see `found_in`."""
        try:
            self._begin()
            while not self._is_done():
                assert time.monotonic() < self._deadline, f"stuck at {self._positions()}"
                self._round()
            return self._found()
        finally:
            self._close()

    # The rounds

    def _begin(self):
        self._worker = self._new_worker()
        if "block" in self.mode:
            self._consumer = Consumer(self._server.url, FEEDS[0])
            self._consumer.begin()
        if "combine" in self.mode:
            self._second = Worker(self._url, FEEDS[1], WorkerSettings(**SECOND))
            self._combination = self._new_combination()

    def _round(self):
        self._push(self._choose.randint(6, 24))
        faults = self._choose.sample(self._possible(), self._choose.choice((0, 1, 2, 3)))
        for fault in faults:
            if fault(self) is not False:
                self.faults[fault.__name__] += 1
        self._work()
        for thread in self._under_way:
            thread.join()
        self._under_way.clear()
        self._consume()

    def _possible(self):
        left = len(self._entries[FEEDS[0]]) - self._pushed
        return FAULTS if left else CALM

    def _push(self, count):
        total, first = len(self._entries[FEEDS[0]]), self._pushed
        self._pushed = min(first + count, total)
        for feed, entries in self._entries.items():
            last = self._pushed if self._pushed < total else len(entries)
            if first < total:
                push(self._direct[feed], entries[first:last], first + 1)

    def _work(self):
        is_all_there = self._pushed == len(self._entries[FEEDS[0]])
        for _ in range(8 if is_all_there else self._choose.randint(1, 4)):
            self._act(self._choose.choice((advance, advance, answer_batch)))
            if self._combination is not None:
                answer_batch(self._second.session)
                self._combination.advance()

    def _act(self, how):
        """Let the worker do something; in a pair, now and then the other one takes over."""
        if self._other is not None and self._choose.random() < 0.3:
            self.resume()
            if "two" in self.mode:
                self.pause()
        assert not fenced(how, self._worker.session), "the newest worker was refused"

    def _consume(self):
        if self._consumer is None:
            return
        self._consumer.read(self._choose.choice((3, 20, RETAINED)))
        if self._combination is None:
            self._consumer.acknowledge()
            return
        # What was not combined yet must stay.
        state = self._combination.target.state()
        self._consumer.acknowledge(state.position.cursor)

    def _is_done(self):
        return self._pushed == len(self._entries[FEEDS[0]]) and all(
            seq == len(self._entries.get(feed, self._entries[FEEDS[0]]))
            for feed, seq in self._positions().items()
        )

    def _positions(self):
        feeds = [*self._entries, *([TARGET] if self._combination is not None else [])]
        found = {}
        for feed in feeds:
            with Store(self._server.url, feed, patience=20.0) as store:
                state = store.state()
                found[feed] = state.position.seq if state else -1
        return found

    def _found(self):
        self._worker.session.finish_commit()
        if self._consumer is not None:
            self._consumer.read(1000)
        read = self._consumer and self._consumer.answers
        return found_in(self._server.url, self.mode, read)

    def _close(self):
        for thread in self._under_way:
            thread.join()
        parts = (self._worker, self._other, self._second, self._combination)
        for part in parts:
            if part is not None:
                part.abandon()
        for store in (*self._direct.values(), self._consumer):
            if store is not None:
                store.close()

    def _new_worker(self):
        choose = self._choose
        settings = self.mode.settings(
            batch=choose.choice((2, 5, 12, 40)),
            replay_budget=choose.choice((5, 17, 60)),
        )
        return Worker(self._url, FEEDS[0], settings, REFIT)

    def _new_combination(self):
        return Combination(self._url, self._choose.choice((5, 12, 40)))

    # The faults: each returns False where there was nothing to do

    def crash(self):
        """The worker is killed, with what it has under way."""
        self._worker.abandon()
        self._worker = self._new_worker()

    def stop_in_order(self):
        self._worker.session.snapshot()
        self._worker.abandon()
        self._worker = self._new_worker()

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
        before = self._direct[FEEDS[0]].state()
        if not fenced(how, other.session):
            assert self._direct[FEEDS[0]].state() == before, "two workers wrote"
        other.abandon()
        return True

    def kill_the_refits(self):
        return self._signal_refits(signal.SIGKILL)

    def freeze_the_refits(self):
        """For a moment, or until it is taken for hung and replaced."""
        pid = self._worker.refit_pid
        if not self._signal_refits(signal.SIGSTOP):
            return False
        if self._choose.random() < 0.9:
            self._later(0.1, lambda: signalled(pid, signal.SIGCONT))
        return True

    def crash_the_combination(self):
        if self._combination is None:
            return False
        self._combination.abandon()
        self._combination = self._new_combination()
        return True

    def kill_redis(self):
        """In the middle of whatever it does; it comes back with what its file holds."""

        def restart():
            self._server.kill()
            self._server.start()

        self._later(self._choose.random() * 0.01, restart)

    def freeze_redis(self):
        """For a moment, or for longer than a reply is waited for."""
        process = self._server._process
        process.send_signal(signal.SIGSTOP)
        self._later(
            self._choose.choice((0.02, 0.05, 0.2)), lambda: signalled(process.pid, signal.SIGCONT)
        )

    def cut_a_reply(self):
        name = self._choose.choice((b"EVALSHA", b"XREAD", b"XRANGE"))
        self._proxy.cuts.append(name)

    def cut_every_line(self):
        """The lines are half-open: nothing comes back."""
        self._proxy.forget()

    def lose_everything_for_a_moment(self):
        self._proxy.is_black_hole = True

        def end():
            self._proxy.is_black_hole = False

        self._later(self._choose.choice((0.01, 0.05)), end)

    def run_out_of_memory(self):
        """Writes are refused for a moment."""
        store = self._direct[FEEDS[0]]
        store.call("CONFIG", "SET", "maxmemory", "1")

        def end():
            with Store(self._server.url, FEEDS[0], patience=20.0) as another:
                another.call("CONFIG", "SET", "maxmemory", "0")

        self._later(0.05, end)

    def flush_the_scripts(self):
        self._direct[FEEDS[0]].call("SCRIPT", "FLUSH")

    def destroy_the_bookmark(self):
        store = self._direct[FEEDS[0]]
        if store.call("EXISTS", store.keys.input):
            store.call("XGROUP", "DESTROY", store.keys.input, "osvm")

    def damage_a_snapshot(self):
        """One of the two that are kept, so that the feed can go on."""
        store = self._direct[FEEDS[0]]
        state = store.state()
        kept = state.snapshots
        if len(kept) < 2 or self._damaged & {pointer.sha256 for pointer in kept}:
            return False
        pointer = self._choose.choice(kept)
        self._damaged.add(pointer.sha256)
        store.call("DEL", self._choose.choice(pointer.keys(store.keys)))
        return True

    def _signal_refits(self, number):
        pid = self._worker.refit_pid
        if pid is None:
            return False
        signalled(pid, number)
        return True

    def _later(self, seconds, act):
        """Do something in the middle of what the workers do then."""

        def wait():
            time.sleep(seconds)
            act()

        self._under_way.append(threading.Thread(target=wait))
        self._under_way[-1].start()


CALM = [Inside.crash, Inside.stop_in_order, Inside.resume, Inside.cut_a_reply]
FAULTS = [
    *CALM, Inside.pause, Inside.kill_the_refits, Inside.freeze_the_refits,
    Inside.crash_the_combination, Inside.kill_redis, Inside.freeze_redis, Inside.cut_every_line,
    Inside.lose_everything_for_a_moment, Inside.run_out_of_memory, Inside.flush_the_scripts,
    Inside.destroy_the_bookmark, Inside.damage_a_snapshot,
]  # fmt: skip


def signalled(pid, number):
    """Send a signal to a process that may be gone."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)
