"""Whether a worker lives and is ready, and if not, why: one line for each thing that fails.

A worker is *ready* while it answers its feed: Redis replies, the lease is renewed, refits work, and
the loop turns. It *lives* unless one of these has failed for longer than it takes a worker to get
over it, so that a restart may help. A standby, a replay and a feed that waits for its consumers
live: a restart would only begin them again.
"""

import time
from collections.abc import Iterator
from typing import Protocol

from workers.monitor.view import FeedWatch
from workers.monitor.worker_state import WorkerState
from workers.trouble import Trouble

READY_TURN = 15.0
"""Seconds that a turn of the loop may take, beyond the wait for input (`block_ms`), while the
worker counts as ready: a reply is waited for 5 s, and a batch or a refit takes less."""

LIVE = 330.0
"""Seconds of failure after which a restart may help: the refit process is given up as hung, and
replaced, after 300 s (`refit.process_refitter.PATIENCE`)."""


class Probes(Protocol):
    """What fails of a process, for those who ask from outside."""

    def unready(self) -> list[str]:
        """Return why it is not ready; empty if it is."""

    def dead(self) -> list[str]:
        """Return why it should be restarted; empty if it lives."""


class Health:
    """What fails of a worker.

    Parameters
    ----------
    state : WorkerState
    watch : FeedWatch
    live : float
        Seconds that a failure may last before the worker counts as dead.
    """

    def __init__(self, state: WorkerState, watch: FeedWatch, live: float = LIVE) -> None:
        self._state, self._watch, self._live = state, watch, live

    def unready(self) -> list[str]:
        """Return why the worker is not ready; empty if it is."""
        self._watch.look()
        reasons = [f"{part}: {trouble.reason}" for part, trouble in self._troubles()]
        return [*self._unfinished(), *reasons]

    def dead(self) -> list[str]:
        """Return why the worker should be restarted; empty if it lives."""
        now = time.monotonic()
        return [
            f"{part}: {trouble.reason} (for {now - trouble.since:.0f} s)"
            for part, trouble in self._troubles()
            if now - trouble.since > self._live
        ]

    def _unfinished(self) -> Iterator[str]:
        """Yield what the worker still does, or waits for, before it answers."""
        state = self._state
        if state.stage == "replaying":
            done, total = state.replay
            yield f"feed: replays, {done:,} of {total:,} entries are answered again"
        elif state.stage == "standby":
            yield "lease: another worker holds it, this one stands by"
        elif state.stage != "answering":
            yield f"feed: the worker is {state.stage}"
        if state.waiting is not None:
            yield f"feed: {state.waiting}"

    def _troubles(self) -> Iterator[tuple[str, Trouble]]:
        """Yield what fails."""
        state = self._state
        redis = (state.store and state.store.trouble) or self._watch.trouble
        if redis is not None:
            yield "redis", redis
        lease, now = state.lease, time.monotonic()
        if lease is not None and now - lease.renewed > lease.seconds:
            late = f"not renewed for {now - lease.renewed:.0f} s, it lasts {lease.seconds:g} s"
            yield "lease", Trouble(late, lease.renewed)
        if state.refits is not None:
            yield "refits", state.refits
        blocked = 0.0 if state.store is None else state.store.block_ms / 1000
        if state.is_at_work and now - state.turned > READY_TURN + blocked:
            still = f"no batch was finished for {now - state.turned:.0f} s"
            yield "feed", Trouble(still, state.turned)
