"""Health of a worker: is it ready, does it live; one line for each thing that fails.

A worker is *ready* while it answers its feeds: Redis replies, the leases are renewed, refits work,
and the loop turns. It *lives* unless one of these has failed for longer than it takes a worker to
get over it, so that a restart may help. A standby, a replay and a feed that waits for its consumers
live: a restart would only begin them again. Nor is a worker unready for a feed that is set aside,
while it has others: that is told in `online_svm_stage`, in the log and in `events`.
"""

import time
from collections.abc import Iterator
from typing import Protocol

from workers.monitor.feed_record import FeedRecord
from workers.monitor.standings import Standings
from workers.monitor.watch import WorkerWatch
from workers.trouble import Trouble

READY_TURN = 15.0
"""Seconds that a turn of the loop may take while the worker counts as ready: a reply is waited for
5 s, and a slice takes less."""

LIVE = 330.0
"""Seconds of failure after which a restart may help: the refit process is given up as hung, and
replaced, after 300 s (`refit.pool_process.PATIENCE`)."""

_NAMED = 3
"""Feeds whose reasons are told."""


class Probes(Protocol):
    """What fails of a process, for those who ask from outside."""

    def unready(self) -> list[str]:
        """Return why it is not ready; empty if it is."""

    def dead(self) -> list[str]:
        """Return why it should be restarted; empty if it lives."""


class Health(Probes):
    """What fails of a worker.

    Parameters
    ----------
    watch : WorkerWatch
    standings : Standings, optional
        Asks Redis, where the worker itself may have had no reason to.
    live : float
        Seconds that a failure may last before the worker counts as dead.

    Examples
    --------
    >>> Health(WorkerWatch()).unready(), Health(WorkerWatch()).dead()
    (['feeds: the worker is starting'], [])
    """

    def __init__(
        self, watch: WorkerWatch, standings: Standings | None = None, live: float = LIVE
    ) -> None:
        self._watch, self._standings, self._live = watch, standings, live

    def unready(self) -> list[str]:
        """Return why the worker is not ready; empty if it is."""
        first = next(iter(list(self._watch.feeds.items())), None)
        if self._standings is not None and first is not None:
            self._standings.ask(first[0], first[1].source)
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
        """Yield what the worker still does, or waits for, before it answers any feed."""
        watch = self._watch
        if not watch.is_turning:
            yield f"feeds: the worker is {watch.stage}"
            return
        reasons = [
            f"{feed}: {reason}"
            for feed, record in list(watch.feeds.items())
            if (reason := _unanswered(record)) is not None
        ]
        if reasons and len(reasons) == len(watch.feeds):
            yield from reasons[:_NAMED]

    def _troubles(self) -> Iterator[tuple[str, Trouble]]:
        """Yield what fails."""
        watch, now = self._watch, time.monotonic()
        asked = None if self._standings is None else self._standings.trouble
        redis = watch.trouble or asked
        if redis is not None:
            yield "redis", redis
        if watch.renewed is not None and now - watch.renewed > watch.lease:
            late = f"not renewed for {now - watch.renewed:.0f} s, it lasts {watch.lease:g} s"
            yield "lease", Trouble(late, watch.renewed)
        failing = {feed: one.refits for feed, one in list(watch.feeds.items()) if one.refits}
        for feed, trouble in list(failing.items())[:1]:
            more = f" ({len(failing)} feeds)" if len(failing) > 1 else ""
            yield "refits", Trouble(f"of {feed}: {trouble.reason}{more}", trouble.since)
        if watch.is_turning and now - watch.turned > READY_TURN:
            still = f"the loop has not turned for {now - watch.turned:.0f} s"
            yield "feeds", Trouble(still, watch.turned)


def _unanswered(record: FeedRecord) -> str | None:
    """Return why a feed is not answered now; None where it is, or is set aside."""
    if record.stage == "replaying":
        done, total = record.replay
        return f"replays, {done:,} of {total:,} entries are answered again"
    if record.stage == "standby":
        return "another worker holds the lease, this one stands by"
    if record.stage in ("starting", "stopping"):
        return f"the worker is {record.stage}"
    return record.waiting
