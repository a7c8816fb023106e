"""A history of faults, whoever takes part in it: rounds of input, faults and work.

In each round some input comes and up to three faults strike at once. What comes out is compared
with what an uninterrupted worker answers, payload by payload.
"""

import os
import random
import signal
import threading
import time
from collections import Counter
from contextlib import suppress

from history_modes import FEEDS, TARGET, entries_of
from history_parts import Consumer, found_in
from world import push, seq_of

from workers.broker.store import Store
from workers.errors import WorkerError


class History:
    """What every history does; a subclass says what takes part.

    It has `_begin`, `_round`, `_end`, `_close`, and `_refits`: the pids of the refit processes.
    The feed has `count` entries; no other history uses the server, or the proxy in front of it.
    `faults` counts those that struck.
    """

    SECONDS = 90.0
    """After which a history counts as stuck."""

    FROZEN, DARK, KILLED = (0.02, 0.05, 0.2), (0.01, 0.05), 0.01
    """Seconds that Redis is frozen, and the network swallows all; within which Redis is killed."""

    STILL = (0.5,)
    """Seconds that a refit process is frozen; None is until it is taken for hung and replaced."""

    def __init__(self, seed, mode, server, proxy, count):
        self.mode, self.faults = mode, Counter()
        self._choose, self._server, self._proxy = random.Random(seed), server, proxy
        self._entries = entries_of(mode, seed, count)
        self._pushed = dict.fromkeys(self._entries, 0)
        self._url = f"redis://127.0.0.1:{proxy.port}/0"
        self._stores = {
            feed: Store(server.url, feed, patience=20.0) for feed in [*self._entries, TARGET]
        }
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
            return found_in(self._server.url, self.mode, read)
        finally:
            self._rest()
            self._close()
            for store in (*self._stores.values(), self._consumer):
                if store is not None:
                    store.close()

    # Parts of a round

    def _begin_consumer(self):
        """Create the group of a blocked feed, once the feed is there."""
        if "block" in self.mode:
            self._consumer = Consumer(self._server.url, FEEDS[0])

    def _push(self, feed, count):
        first, entries = self._pushed[feed], self._entries[feed]
        self._pushed[feed] = min(first + count, len(entries))
        push(self._stores[feed], entries[first : self._pushed[feed]], first + 1)

    def _is_all_there(self, feed=FEEDS[0]):
        return self._pushed[feed] == len(self._entries[feed])

    def _strike(self, possible, counts):
        """Let so many of the possible faults strike, as one of `counts` says."""
        count = min(self._choose.choice(counts), len(possible))
        for fault in self._choose.sample(possible, count):
            if fault(self) is not False:
                self.faults[fault.__name__] += 1

    def _rest(self):
        """Wait until what the faults began is over."""
        for thread in self._under_way:
            thread.join()
        self._under_way.clear()

    def _consume(self, count):
        """Read answers of a blocked feed; what was not combined yet must stay."""
        if self._consumer is None:
            return
        self._consumer.read(count)
        if "combine" not in self.mode:
            self._consumer.acknowledge()
        elif (state := self._stores[TARGET].state()) is not None:
            self._consumer.acknowledge(state.position.cursor)

    def _goals(self):
        """Return how many entries each feed must have answered in the end."""
        goals = {feed: len(entries) for feed, entries in self._entries.items()}
        return goals | ({TARGET: goals[FEEDS[0]]} if "combine" in self.mode else {})

    def _is_done(self):
        if not all(map(self._is_all_there, self._entries)):
            return False
        return all(seq_of(self._stores[feed]) == goal for feed, goal in self._goals().items())

    def _check_time(self):
        if time.monotonic() > self._deadline:
            found = {}
            for feed, store in self._stores.items():
                with suppress(WorkerError):
                    found[feed] = seq_of(store)
            raise AssertionError(f"stuck at {found}")

    # Faults of Redis and the network: each returns False where there was nothing to do

    def kill_redis(self):
        """In the middle of whatever it does; it comes back with what its file holds."""

        def restart():
            self._server.kill()
            self._server.start()

        self._later(self._choose.random() * self.KILLED, restart)

    def freeze_redis(self):
        """For a moment, or for longer than a reply is waited for."""
        self._freeze(self._server._process.pid, self.FROZEN)

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
        """Freeze a process for one of these times."""
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


FAULTS = (
    History.kill_redis, History.freeze_redis, History.cut_a_reply, History.cut_every_line,
    History.lose_everything_for_a_moment, History.kill_the_refits, History.freeze_the_refits,
)  # fmt: skip
"""What may strike any history; those of each kind are added to them."""


def signalled(pid, number):
    """Send a signal to a process that may be gone."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)
