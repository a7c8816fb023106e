"""The state of a worker and of its feeds, for metrics, probes and progress lines.

The worker's loop writes it; other threads only read.
"""

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from typing import Literal, get_args

import orjson
from typing_extensions import override

from workers.broker.connection import Connection
from workers.config.settings import WorkerSettings
from workers.errors import Trouble
from workers.feed.state import Commit
from workers.monitor.webhook import FeedAlarms, Webhooks
from workers.session.telemetry import Stage, Telemetry

Duration = Literal["batch", "commit", "refit", "refit_wait", "replay"]

_DELIVERING: tuple[Stage, ...] = ("replaying", "answering")
"""Stages in which this worker delivers a feed's alarms; a standby leaves that to the holder."""

BUCKET_SECONDS = (
    *(1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0),
)
"""Upper bounds of the buckets: a batch takes milliseconds, a replay may take minutes."""


class Durations:
    """A histogram of durations; one thread writes it, others read.

    Examples
    --------
    >>> found = Durations()
    >>> found.observe(0.02)
    >>> found.buckets()[6:8], found.total
    ([('0.01', 0), ('0.025', 1)], 0.02)
    """

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKET_SECONDS) + 1)  # by bucket; the last has no upper bound
        self.total = 0.0  # sum of the durations

    def observe(self, seconds: float) -> None:
        """Count a duration."""
        self.counts[bisect_left(BUCKET_SECONDS, seconds)] += 1
        self.total += seconds

    def buckets(self) -> list[tuple[str, float]]:
        """Return the bound and the cumulative count of each bucket, as Prometheus expects."""
        bounds = [*map(str, BUCKET_SECONDS), "+Inf"]
        return list(zip(bounds, accumulate(self.counts), strict=True))

    @classmethod
    def summed(cls, parts: Sequence["Durations"]) -> "Durations":
        """Return the sum of histograms."""
        whole = cls()
        for part in parts:
            whole.total += part.total
            whole.counts = [a + b for a, b in zip(whole.counts, part.counts, strict=True)]
        return whole


class FeedRecord(Telemetry):
    """Counts the work of a feed, and wakes the webhook when alarms were committed."""

    def __init__(self, posts: FeedAlarms | None = None) -> None:
        self.posts = posts  # delivers its alarms
        self.stage: Stage | Literal["aside"] = "starting"  # "aside": parked
        # Committed, or answered again, since this process opened the feed.
        self.answers = self.reports = self.snapshots = self.replayed_entries = 0
        self.rejected: Counter[str] = Counter()  # by reason code
        self.alarms: Counter[str] = Counter()  # by kind
        self.replay = (0, 0)  # entries of the last replay: answered again, and in all
        self.snapshot_bytes = 0  # of the last snapshot
        self.answered_at = self.snapshot_at = 0.0  # time of the last commit, seconds since 1970
        self.durations: dict[Duration, Durations] = {
            name: Durations() for name in get_args(Duration)
        }
        self.reason: str | None = None  # reason why the feed is parked
        self.waiting: str | None = None  # reason why the open feed answers nothing now
        self.refits: Trouble | None = None  # failure of its refits

    def described(self) -> str:
        """Return the stage, or the reason why the feed is parked."""
        return self.stage if self.reason is None else f"set aside: {self.reason}"

    @override
    def enter(self, stage: Stage) -> None:
        self.stage, self.reason = stage, None
        if self.posts is not None and stage not in _DELIVERING:
            self.posts.on_stopped()

    @override
    def fenced(self, cursor: bytes) -> None:
        if self.posts is not None:
            self.posts.on_started(cursor)

    @override
    def replaying(self, done: int, total: int) -> None:
        self.replay = done, total

    @override
    def replayed(self, seconds: float) -> None:
        self.durations["replay"].observe(seconds)
        self.replayed_entries += self.replay[0]

    @override
    def answered(self, seconds: float) -> None:
        self.durations["batch"].observe(seconds)

    @override
    def committed(self, commit: Commit, seconds: float) -> None:
        self.durations["commit"].observe(seconds)
        self.answers += len(commit.out)
        self.reports += len(commit.met)
        for letter in commit.dlq:
            self.rejected[letter.code] += 1
        for _, payload in commit.alarms:
            self.alarms.update(alarm["kind"] for alarm in orjson.loads(payload)["alarms"])
        if commit.out:
            self.answered_at = time.time()
        if self.posts is not None and commit.alarms:
            self.posts.raised()
        elif self.posts is not None and commit.met:
            self.posts.reported()

    @override
    def kept_snapshot(self, size: int) -> None:
        self.snapshots += 1
        self.snapshot_bytes, self.snapshot_at = size, time.time()

    @override
    def waits(self, reason: str | None) -> None:
        self.waiting = reason

    @override
    def refitted(self, seconds: float, waited: float) -> None:
        self.durations["refit"].observe(seconds)
        self.durations["refit_wait"].observe(waited)

    @override
    def refits_fail(self, trouble: Trouble | None) -> None:
        self.refits = trouble

    @override
    def fails(self, reason: str) -> None:
        self.stage, self.reason = "aside", reason
        if self.posts is not None:
            self.posts.on_stopped()


class WorkerWatch:
    """The state of a worker."""

    def __init__(self, webhooks: Webhooks | None = None) -> None:
        self._webhooks = webhooks
        self._process: Stage = "starting"
        self.feeds: dict[str, FeedRecord] = {}
        self.turned = time.monotonic()  # start of the loop's last turn
        self.renewed: float | None = None  # last renewal of the leases, by the same clock
        self.lease = 0.0  # seconds that a lease lasts
        self.connections: tuple[Connection, ...] = ()

    @property
    def stage(self) -> Stage:
        """The stage of the process: "answering" if any feed is answered or parked, or with none."""
        if self._process != "answering":
            return self._process
        found = {record.stage for record in list(self.feeds.values())}
        if not found or found & {"answering", "aside"}:
            return "answering"
        order: tuple[Stage, ...] = ("replaying", "starting", "stopping", "standby")
        return next(stage for stage in order if stage in found)

    @property
    def is_turning(self) -> bool:
        """Whether the loop serves feeds."""
        return self._process == "answering"

    @property
    def trouble(self) -> Trouble | None:
        """The failure of a connection; None if all connections work."""
        found = (connection.trouble for connection in self.connections)
        return next((trouble for trouble in found if trouble is not None), None)

    def connects(self, connections: tuple[Connection, ...], lease: float) -> None:
        """Record the connections of the process, and the seconds that its leases last."""
        self.connections, self.lease = connections, lease

    def on_started(self) -> None:
        """Record that the loop starts."""
        self._process, self.turned = "answering", time.monotonic()

    def on_tick(self, renewed: float | None) -> None:
        """Record the start of a turn of the loop, and the last renewal of the leases."""
        self.turned, self.renewed = time.monotonic(), renewed

    def on_feed_added(self, feed: str, settings: WorkerSettings | None = None) -> FeedRecord:
        """Return a new record of a feed; its alarms are posted if its settings have a URL."""
        posts = None
        if settings is not None and self._webhooks is not None:
            posts = self._webhooks.add(feed, settings)
        self.feeds[feed] = FeedRecord(posts)
        return self.feeds[feed]

    def on_feed_removed(self, feed: str) -> None:
        """Remove the record of a feed that this process no longer has."""
        posts = self.feeds.pop(feed).posts
        if posts is not None and self._webhooks is not None:
            self._webhooks.remove(posts)

    def on_stopped(self) -> None:
        """Record that the process stops."""
        self._process = "stopping"
