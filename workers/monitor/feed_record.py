"""What one feed told of its work: a few numbers, for a process may have a thousand feeds."""

import time
from collections import Counter
from typing import Literal, get_args

import orjson
from typing_extensions import override

from workers.feed.commit import Commit
from workers.monitor.durations import Durations
from workers.monitor.feed_alarms import AlarmTelemetry, FeedAlarms
from workers.session.telemetry import Stage
from workers.trouble import Trouble

Duration = Literal["batch", "commit", "refit", "refit_wait", "replay"]


class FeedRecord(AlarmTelemetry):
    """Counts what a feed tells. The thread of the loop writes it; others only read.

    Parameters
    ----------
    posts : FeedAlarms, optional
        Is told when there are alarms to post.
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
        super().enter(stage)
        self.stage, self.reason = stage, None

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
        super().committed(commit, seconds)
        self.durations["commit"].observe(seconds)
        self.answers += len(commit.out)
        self.reports += len(commit.met)
        for letter in commit.dlq:
            self.rejected[letter.code] += 1
        for _, payload in commit.alarms:
            self.alarms.update(alarm["kind"] for alarm in orjson.loads(payload)["alarms"])
        if commit.out:
            self.answered_at = time.time()

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
        super().fails(reason)
        self.stage, self.reason = "aside", reason
