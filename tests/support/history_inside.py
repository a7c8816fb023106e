"""One history of faults inside this process, on a real Redis behind a bad network."""

from history_faults import FAULTS, History
from history_modes import FEEDS, RETAINED, SECOND
from history_parts import Combination, Worker, fenced
from session_steps import advance, answer_batch

from workers.broker.store import Store
from workers.config.settings import WorkerSettings
from workers.session.session import Session

REFIT = 4.0
"""Seconds after which a refit process counts as hung."""


class Inside(History):
    """A history in this process."""

    STILL = (0.1,) * 9 + (None,)

    def __init__(self, seed, mode, server, proxy, count=110):
        super().__init__(seed, mode, server, proxy, count)
        self._damaged = set()
        self._worker = self._other = self._second = self._combination = None

    def _begin(self):
        self._worker = self._new_worker()
        self._begin_consumer()
        if "combine" in self.mode:
            self._second = Worker(self._url, FEEDS[1], WorkerSettings(**SECOND))
            self._combination = self._new_combination()

    def _round(self):
        count = self._choose.randint(6, 24)
        is_last = self._pushed[FEEDS[0]] + count >= len(self._entries[FEEDS[0]])
        for feed, entries in self._entries.items():
            self._push(feed, len(entries) if is_last else count)
        self._strike(CALM if self._is_all_there() else ALL, (0, 1, 2, 3))
        for _ in range(8 if self._is_all_there() else self._choose.randint(1, 4)):
            self._act(self._choose.choice((advance, advance, answer_batch)))
            if self._combination is not None:
                answer_batch(self._second.session)
                self._combination.advance()
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
        for part in (self._worker, self._other, self._second, self._combination):
            if part is not None:
                part.abandon()

    def _new_worker(self):
        pick = self._choose.choice
        settings = self.mode.settings(batch=pick((2, 5, 12, 40)), replay_budget=pick((5, 17, 60)))
        return Worker(self._url, FEEDS[0], settings, REFIT)

    def _refits(self):
        pid = self._worker.refit_pid
        return [] if pid is None else [pid]

    def _new_combination(self):
        return Combination(self._url, self._choose.choice((5, 12, 40)))

    # The faults: each returns False where there was nothing to do

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
        before = self._stores[FEEDS[0]].state()
        if not fenced(how, other.session):
            assert self._stores[FEEDS[0]].state() == before, "two workers wrote"
        other.abandon()
        return True

    def crash_the_combination(self):
        if self._combination is None:
            return False
        self._combination.abandon()
        self._combination = self._new_combination()
        return True

    def run_out_of_memory(self):
        """Writes are refused for a moment."""
        self._stores[FEEDS[0]].call("CONFIG", "SET", "maxmemory", "1")

        def end():
            with Store(self._server.url, FEEDS[0], patience=20.0) as another:
                another.call("CONFIG", "SET", "maxmemory", "0")

        self._later(0.05, end)

    def flush_the_scripts(self):
        self._stores[FEEDS[0]].call("SCRIPT", "FLUSH")

    def destroy_the_bookmark(self):
        store = self._stores[FEEDS[0]]
        if store.call("EXISTS", store.keys.input):
            store.call("XGROUP", "DESTROY", store.keys.input, "osvm")

    def damage_a_snapshot(self):
        """One of the two that are kept, so that the feed can go on."""
        store = self._stores[FEEDS[0]]
        kept = store.state().snapshots
        if len(kept) < 2 or self._damaged & {pointer.sha256 for pointer in kept}:
            return False
        pointer = self._choose.choice(kept)
        self._damaged.add(pointer.sha256)
        store.call("DEL", self._choose.choice(pointer.keys(store.keys)))
        return True


CALM = [Inside.crash, Inside.stop_in_order, Inside.resume, Inside.cut_a_reply]
ALL = [
    *FAULTS, Inside.crash, Inside.stop_in_order, Inside.pause, Inside.resume,
    Inside.crash_the_combination, Inside.run_out_of_memory, Inside.flush_the_scripts,
    Inside.destroy_the_bookmark, Inside.damage_a_snapshot,
]  # fmt: skip
