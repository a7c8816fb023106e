"""A scorer: take requests, answer them with the newest state, write each answer once.

It keeps nothing that matters: if it ends at any instruction, its requests are taken over by another
scorer, or by itself after its next start.
"""

import time
from collections.abc import Callable, Sequence

from workers.broker.request_queue import Reply, Request, RequestQueue, Standing
from workers.config.settings import Limits
from workers.feed.publication import Publication
from workers.fleet.scorer.counts import ScorerCounts
from workers.fleet.scorer.newest_state import Held, NewestState
from workers.fleet.scorer.replies import MOST_DELIVERIES, answered, unavailable
from workers.fleet.scorer.settings import ScorerSettings
from workers.message.encode import encode_reply
from workers.stop import Stop

FRESH_MS = 1000
"""Milliseconds between the moment for which an answer states its staleness and its writing; more
where Redis takes longer than that again and again."""


class Scorer:
    """Answers the requests of one feed until a stop is requested.

    Parameters
    ----------
    queue : RequestQueue
    newest : NewestState
    settings : ScorerSettings
    stop : Stop
    clock : callable
        Seconds.
    counts : ScorerCounts, optional
        Where it notes what it does.
    """

    def __init__(
        self,
        queue: RequestQueue,
        newest: NewestState,
        settings: ScorerSettings,
        stop: Stop,
        clock: Callable[[], float] = time.monotonic,
        counts: ScorerCounts | None = None,
    ) -> None:
        self._queue, self._newest, self._settings = queue, newest, settings
        self._stop, self._clock = stop, clock
        self._next_claim = -float("inf")
        self.counts = counts or ScorerCounts()

    def run(self) -> None:
        """Answer requests until a stop is requested; then leave the group."""
        self._queue.begin()
        self.look()
        self.counts.is_at_work = True
        while not self._stop.requested:
            self.turn()
        self._queue.leave()

    def turn(self) -> int:
        """Answer the requests of one batch; return how many were written."""
        self.counts.turned = time.monotonic()
        requests = self._overdue() or self._queue.read()
        if requests:
            return self._answer(requests)
        self.look()  # so that the next request finds the newest state here
        return 0

    def look(self) -> None:
        """Read the newest state, if there is another one."""
        self._held(self._queue.standing())

    def _held(self, standing: Standing) -> Held | None:
        """Return the state to answer with, and note where it stands."""
        held, counts = self._newest.of(standing), self.counts
        counts.states, counts.trouble = self._newest.loaded, self._queue.trouble
        if held is None:
            counts.n, counts.stale = None, None
            return None
        used = held.publication
        counts.n, counts.behind = used.n, standing.behind(used)
        counts.age = standing.age(used) / 1000
        counts.stale = self._too_old(held, standing)
        return held

    def _overdue(self) -> list[Request]:
        """Return requests of scorers that do not answer, where it is time to look for them."""
        if self._clock() < self._next_claim:
            return []
        found = self._queue.claim(int(1000 * self._settings.claim_after))
        if not found:
            self._next_claim = self._clock() + self._settings.claim_after / 2
        self.counts.taken_over += len(found)
        return found

    def _answer(self, requests: Sequence[Request]) -> int:
        done, most = None, FRESH_MS
        while done is None:
            standing = self._queue.standing()
            replies, used, missing = self._replies(requests, standing)
            answers = [(reply, _written(reply, used, standing)) for reply in replies]
            done = self._queue.answer(answers, standing.now, most, self._settings.keep)
            # If this process was paused, what it knew is out of date: it looks again. If Redis is
            # that slow, the answers are written in the end.
            most *= 2
        self.counts.written += done
        self.counts.elsewhere += len(requests) - done
        self.counts.unavailable += missing
        return done

    def _replies(
        self, requests: Sequence[Request], standing: Standing
    ) -> tuple[list[Reply], Publication | None, int]:
        """Return the answers, the state they name, and how many say that there is none now."""
        held = self._held(standing)
        limits = Limits() if held is None else held.limits
        if held is None:
            none = unavailable(requests, limits, "no_state", "no state was published")
            return none, None, len(none)
        if self.counts.stale is not None:
            none = unavailable(requests, limits, "stale", self.counts.stale)
            return none, held.publication, len(none)
        fit = [request for request in requests if request.deliveries < MOST_DELIVERIES]
        unfit = [request for request in requests if request.deliveries >= MOST_DELIVERIES]
        tried = f"{MOST_DELIVERIES - 1} scorers ended, or were cut off, while they had it"
        given_up = unavailable(unfit, limits, "failed", tried)
        replies = answered(held.state, held.publication.seq, fit, limits) if fit else []
        return [*replies, *given_up], held.publication, len(given_up)

    def _too_old(self, held: Held, standing: Standing) -> str | None:
        """Return why a state may not answer any more; None while it may."""
        most, seconds = self._settings.max_stale, self._settings.max_age
        behind, age = standing.behind(held.publication), standing.age(held.publication) / 1000
        if most is not None and behind > most:
            return f"the newest state is {behind} examples old, the bound is {most}"
        if seconds is not None and age > seconds:
            return f"the newest state is {age:.1f} s old, the bound is {seconds:g} s"
        return None


def _written(reply: Reply, used: Publication | None, standing: Standing) -> bytes:
    """Return what is written for a request: its answer, and how old the state is."""
    if used is None:
        return encode_reply(reply.payload, None, None, None)
    return encode_reply(reply.payload, used.name, standing.behind(used), standing.age(used))
