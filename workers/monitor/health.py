"""Health of a worker: whether it is ready, and whether it lives; one line for each failure.

A worker is *ready* while it answers its feeds: Redis replies, the leases are renewed, refits work,
and the loop turns. It *lives* until one of these has failed for longer than a worker takes to
recover, so that a restart may help. A standby, a replay and a feed that waits for its consumers
live: a restart would only begin them again. A worker with a parked feed stays ready while it has
others; `online_svm_stage`, the log and `events` report the parked one.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from workers.broker.connection import Connection
from workers.broker.feed_reader import FeedReader
from workers.errors import Trouble, WorkerError, still
from workers.monitor.watch import FeedRecord, WorkerWatch
from workers.reading.status import FeedStatus, check_counts, of_many
from workers.stop import Stop

READY_TURN_SECONDS = 15.0
"""Time that a turn of the loop may take while the worker counts as ready: a wait for a reply ends
after 5 s, and a slice takes less."""

LIVE_SECONDS = 330.0
"""Failure after which a restart may help: the refit process is given up as hung, and replaced,
after 300 s (`refit.pool.REPLY_TIMEOUT`)."""

_MAX_NAMED_FEEDS = 3
"""Feeds whose reasons are given."""

TIMEOUT_SECONDS = 1.0
"""Wait for one reply of Redis: an order of magnitude less than Prometheus gives a scrape."""

FRESH_SECONDS = 0.5
"""Time for which a sample is given again: many scrapes cost Redis as much as two a second."""

Sampled = TypeVar("Sampled")


class StatusCache:
    """Samples a worker's feeds for metrics and probes, at most twice a second, from any thread.

    The connections are separate from the worker's, and wait one second at most for a reply: each
    scrape and probe gets an answer, and never waits for the worker.
    """

    def __init__(self, url: str) -> None:
        # Two of each: a scrape reads much, and no probe waits for it.
        self._samples, self._probes = (
            Connection(url, Stop(), timeout=TIMEOUT_SECONDS) for _ in range(2)
        )
        self._sampling, self._probing = threading.Lock(), threading.Lock()
        self._sampled_at = self._probed_at = float("-inf")
        self._seen: dict[str, FeedStatus] = {}
        self.trouble: Trouble | None = None  # why the last sample failed

    def get(self, sources: Mapping[str, str | None], in_detail: bool) -> Mapping[str, FeedStatus]:
        """Return the status of each feed, see `of_many`; empty if Redis does not answer."""
        with self._sampling:
            if time.monotonic() - self._sampled_at >= FRESH_SECONDS:
                readers = [self._reader(self._samples, feed) for feed in sources]
                self._seen = self._tried(lambda: of_many(readers, sources, in_detail)) or {}
                self._sampled_at = time.monotonic()
            return self._seen

    def probe(self, feed: str, source: str | None = None) -> None:
        """Set `trouble` by whether Redis gives the status of this feed."""
        with self._probing:
            if time.monotonic() - self._probed_at >= FRESH_SECONDS:
                self._tried(lambda: check_counts(self._reader(self._probes, feed), source))
                self._probed_at = time.monotonic()

    def close(self) -> None:
        """Close the connections."""
        with self._sampling, self._probing:
            self._samples.close()
            self._probes.close()

    def _tried(self, sample: Callable[[], Sampled]) -> Sampled | None:
        try:
            found = sample()
        except WorkerError as error:
            self.trouble = still(self.trouble, str(error))
            return None
        self.trouble = None
        return found

    @staticmethod
    def _reader(shared: Connection, feed: str) -> FeedReader:
        return FeedReader(shared.url, feed, connections=(shared, shared))


class Health:
    """The failures of a worker, which is dead once one of them lasts more than `live` seconds.

    The cache probes Redis, which the worker itself may not have used for long.
    """

    def __init__(
        self, watch: WorkerWatch, cache: StatusCache | None = None, live: float = LIVE_SECONDS
    ) -> None:
        self._watch, self._cache, self._live = watch, cache, live

    def unready(self) -> list[str]:
        """Return why the worker is not ready; empty if it is."""
        first = next(iter(list(self._watch.feeds.items())), None)
        if self._cache is not None and first is not None:
            self._cache.probe(first[0], first[1].source)
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
        """Yield why the worker does not answer any feed yet."""
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
            yield from reasons[:_MAX_NAMED_FEEDS]

    def _troubles(self) -> Iterator[tuple[str, Trouble]]:
        """Yield each failing part of the worker."""
        watch, now = self._watch, time.monotonic()
        probed = None if self._cache is None else self._cache.trouble
        redis = watch.trouble or probed
        if redis is not None:
            yield "redis", redis
        if watch.renewed is not None and now - watch.renewed > watch.lease:
            late = f"not renewed for {now - watch.renewed:.0f} s, it lasts {watch.lease:g} s"
            yield "lease", Trouble(late, watch.renewed)
        failing = {feed: one.refits for feed, one in list(watch.feeds.items()) if one.refits}
        for feed, trouble in list(failing.items())[:1]:
            more = f" ({len(failing)} feeds)" if len(failing) > 1 else ""
            yield "refits", Trouble(f"of {feed}: {trouble.reason}{more}", trouble.since)
        if watch.is_turning and now - watch.turned > READY_TURN_SECONDS:
            still = f"the loop has not turned for {now - watch.turned:.0f} s"
            yield "feeds", Trouble(still, watch.turned)


def _unanswered(record: FeedRecord) -> str | None:
    """Return why a feed is not answered now; None if it is, or is parked."""
    if record.stage == "replaying":
        done, total = record.replay
        return f"replays, {done:,} of {total:,} entries are answered again"
    if record.stage == "standby":
        return "another worker holds the lease, this one stands by"
    if record.stage in ("starting", "stopping"):
        return f"the worker is {record.stage}"
    return record.waiting
