"""Record of one feed's work: a few numbers, for a process may have a thousand feeds."""

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from typing import Literal, get_args

import orjson
from typing_extensions import override

from workers.feed.commit import Commit
from workers.monitor.feed_alarms import FeedAlarms
from workers.session.telemetry import Stage, Telemetry
from workers.trouble import Trouble

SECONDS = (
    *(1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0),
)
"""Bounds of the buckets: a batch takes milliseconds, a replay may take minutes."""


class Durations:
    """A histogram of durations; one thread writes it, others read.

    Attributes
    ----------
    counts : list of int
        Of durations up to each of `SECONDS` and above the one before; the last of longer ones.
    total : float
        Sum of the durations.

    Examples
    --------
    >>> found = Durations()
    >>> found.observe(0.02)
    >>> found.buckets()[6:8], found.total
    ([('0.01', 0), ('0.025', 1)], 0.02)
    """

    def __init__(self) -> None:
        self.counts = [0] * (len(SECONDS) + 1)
        self.total = 0.0

    def observe(self, seconds: float) -> None:
        """Count a duration."""
        self.counts[bisect_left(SECONDS, seconds)] += 1
        self.total += seconds

    def buckets(self) -> list[tuple[str, float]]:
        """Return bound and cumulative count of each bucket, as Prometheus has them."""
        bounds = [*map(str, SECONDS), "+Inf"]
        return list(zip(bounds, accumulate(self.counts), strict=True))

    @classmethod
    def summed(cls, parts: Sequence["Durations"]) -> "Durations":
        """Return the histogram of all durations."""
        whole = cls()
        for part in parts:
            whole.total += part.total
            whole.counts = [a + b for a, b in zip(whole.counts, part.counts, strict=True)]
        return whole


Duration = Literal["batch", "commit", "refit", "refit_wait", "replay"]


AT_WORK: tuple[Stage, ...] = ("replaying", "answering")
"""Stages in which a worker has the feed; a standby leaves the alarms to the other."""


class FeedRecord(Telemetry):
    """Counts what a feed tells, and tells the webhook when there are alarms to post.

    The thread of the loop writes it; others only read.

    Parameters
    ----------
    posts : FeedAlarms, optional
        Delivers its alarms.
    source : str, optional
        For a combination: the feed whose answers it answers in order.

    Attributes
    ----------
    stage : Stage or "aside"
    answers, reports, snapshots, replayed_entries : int
        Committed, or answered again, since this process has the feed.
    rejected, alarms : Counter of str
        The same by reason code, and by kind.
    replay : (int, int)
        Entries answered again, and how many there are, of the last replay.
    snapshot_bytes : int
        Of the last snapshot; 0 before.
    answered_at, snapshot_at : float
        Seconds since 1970 of the last commit with answers, and with a snapshot; 0 before.
    durations : dict of Duration to Durations
    reason : str or None
        Why it is set aside.
    waiting : str or None
        Why it waits, although it could go on.
    refits : Trouble or None
        Why its refits fail.
    """

    def __init__(self, posts: FeedAlarms | None = None, source: str | None = None) -> None:
        self.posts, self.source = posts, source
        self.stage: Stage | Literal["aside"] = "starting"
        self.answers = self.reports = self.snapshots = self.replayed_entries = 0
        self.rejected: Counter[str] = Counter()
        self.alarms: Counter[str] = Counter()
        self.replay = (0, 0)
        self.snapshot_bytes = 0
        self.answered_at = self.snapshot_at = 0.0
        self.durations: dict[Duration, Durations] = {
            name: Durations() for name in get_args(Duration)
        }
        self.reason: str | None = None
        self.waiting: str | None = None
        self.refits: Trouble | None = None

    def told(self) -> str:
        """Return the stage, or why the feed is set aside.

        Examples
        --------
        >>> FeedRecord().told()
        'starting'
        """
        return self.stage if self.reason is None else f"set aside: {self.reason}"

    @override
    def enter(self, stage: Stage) -> None:
        self.stage, self.reason = stage, None
        if self.posts is not None and stage not in AT_WORK:
            self.posts.ends()

    @override
    def fenced(self, cursor: bytes) -> None:
        if self.posts is not None:
            self.posts.begins(cursor)

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
            self.posts.ends()
