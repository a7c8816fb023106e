"""Readiness and liveness of a worker, with one line for each failure.

A worker is *ready* while it answers its feeds: Redis replies, the leases are renewed, refits work,
and the loop turns. It is *live* until one of these has failed for longer than a worker takes to
recover, so that a restart may help. Standby, replay and waiting for consumers count as live: a
restart would only repeat them. A worker with a parked feed stays ready while it has others;
`online_svm_stage`, the log and `events` report the parked feed.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from workers.broker.connection import Connection
from workers.broker.feed_reader import FeedReader
from workers.errors import Trouble, WorkerError, still
from workers.monitor.watch import FeedRecord, WorkerWatch
from workers.reading.status import FeedStatus, check_readable, read_many
from workers.stop import Stop

READY_TURN_SECONDS = 15.0
"""Longest turn of the loop of a ready worker: a wait for a reply ends after 5 s, and the work of a
turn takes less."""

LIVE_SECONDS = 330.0
"""Duration of a failure after which a restart may help. It exceeds the 300 s after which a hung
refit process is replaced (`refit.pool.REPLY_TIMEOUT`)."""

_MAX_NAMED_FEEDS = 3  # feeds that are named with their reasons

TIMEOUT_SECONDS = 1.0
"""Timeout of one reply of Redis; the scrape timeout of Prometheus is ten times as long."""

FRESH_SECONDS = 0.5
"""Age up to which a cached status is used: any number of scrapes costs Redis two a second."""

Sampled = TypeVar("Sampled")


class StatusCache:
    """Reads the status of a worker's feeds, at most twice a second; for any thread.

    It has its own connections with a timeout of one second, so that scrapes and probes are answered
    even while the worker is busy.
    """

    def __init__(self, url: str) -> None:
        # Separate connections and locks: no probe waits for a scrape, which reads more.
        self._samples, self._probes = (
            Connection(url, Stop(), timeout=TIMEOUT_SECONDS) for _ in range(2)
        )
        self._sampling, self._probing = threading.Lock(), threading.Lock()
        self._sampled_at = self._probed_at = float("-inf")
        self._seen: dict[str, FeedStatus] = {}
        self.trouble: Trouble | None = None  # why the last sample failed

    def get(self, feeds: Sequence[str], in_detail: bool) -> Mapping[str, FeedStatus]:
        """Return the status of each feed, see `read_many`; empty if Redis does not answer."""
        with self._sampling:
            if time.monotonic() - self._sampled_at >= FRESH_SECONDS:
                readers = [self._reader(self._samples, feed) for feed in feeds]
                self._seen = self._tried(lambda: read_many(readers, in_detail)) or {}
                self._sampled_at = time.monotonic()
            return self._seen

    def probe(self, feed: str) -> None:
        """Read the status of a feed, and set `trouble` to the reason if that fails."""
        with self._probing:
            if time.monotonic() - self._probed_at >= FRESH_SECONDS:
                self._tried(lambda: check_readable(self._reader(self._probes, feed)))
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
    """The failures of a worker. It is dead once a failure lasts more than `live` seconds.

    The cache probes Redis, because an idle worker may not notice that Redis is down.
    """

    def __init__(
        self, watch: WorkerWatch, cache: StatusCache | None = None, live: float = LIVE_SECONDS
    ) -> None:
        self._watch, self._cache, self._live = watch, cache, live

    def unready(self) -> list[str]:
        """Return the reasons why the worker is not ready; empty if it is."""
        first = next(iter(list(self._watch.feeds)), None)
        if self._cache is not None and first is not None:
            self._cache.probe(first)
        reasons = [f"{part}: {trouble.reason}" for part, trouble in self._troubles()]
        return [*self._unfinished(), *reasons]

    def dead(self) -> list[str]:
        """Return the reasons to restart the worker; empty if it is live."""
        now = time.monotonic()
        return [
            f"{part}: {trouble.reason} (for {now - trouble.since:.0f} s)"
            for part, trouble in self._troubles()
            if now - trouble.since > self._live
        ]

    def _unfinished(self) -> Iterator[str]:
        """Yield the reasons why the worker answers none of its feeds yet."""
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
        """Yield each failing part of the worker, and its failure."""
        watch, now = self._watch, time.monotonic()
        redis = watch.trouble or (None if self._cache is None else self._cache.trouble)
        if redis is not None:
            yield "redis", redis
        if watch.renewed is not None and now - watch.renewed > watch.lease:
            reason = f"not renewed for {now - watch.renewed:.0f} s, it lasts {watch.lease:g} s"
            yield "lease", Trouble(reason, watch.renewed)
        failing = [(feed, one.refits) for feed, one in list(watch.feeds.items()) if one.refits]
        for feed, trouble in failing[:1]:
            more = f" ({len(failing)} feeds)" if len(failing) > 1 else ""
            yield "refits", Trouble(f"of {feed}: {trouble.reason}{more}", trouble.since)
        if watch.is_turning and now - watch.turned > READY_TURN_SECONDS:
            reason = f"the loop has not turned for {now - watch.turned:.0f} s"
            yield "feeds", Trouble(reason, watch.turned)


def _unanswered(record: FeedRecord) -> str | None:
    """Return the reason why a feed is not answered now; None if it is answered or parked."""
    if record.stage == "replaying":
        done, total = record.replay
        return f"replays, {done:,} of {total:,} entries are answered again"
    if record.stage == "standby":
        return "another worker holds the lease, this one stands by"
    if record.stage in ("starting", "stopping"):
        return f"the worker is {record.stage}"
    return record.waiting
