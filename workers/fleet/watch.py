"""What a process of many feeds tells of them: to metrics, to probes, and to people."""

import time
from collections import Counter
from collections.abc import Callable
from typing import Literal

import orjson
from typing_extensions import override

from workers.broker.connection import Connection
from workers.config.settings import WorkerSettings
from workers.engine.telemetry import Stage
from workers.feed.commit import Commit
from workers.monitor.feed_alarms import AlarmTelemetry, FeedAlarms
from workers.monitor.webhook import Webhooks
from workers.trouble import Trouble

Duration = Literal["batch", "commit", "refit", "refit_wait", "replay"]

Observe = Callable[[Duration, float], None]
"""Is given the seconds of one duration, of any feed."""


class FeedRecord(AlarmTelemetry):
    """What one feed told; a few numbers, for there may be a thousand.

    Parameters
    ----------
    observe : Observe
    posts : FeedAlarms, optional
        Is told when there are alarms to post.

    Attributes
    ----------
    stage : Stage or "aside"
    answers, reports, snapshots, replayed : int
        Committed, or answered again, since this process has the feed.
    rejected, alarms : Counter of str
        The same by reason code, and by kind.
    replay : (int, int)
        Entries answered again, and how many there are, of the last replay.
    answered_at : float
        Seconds since 1970 of the last commit with answers; 0 before.
    reason : str or None
        Why it is set aside.
    waiting : str or None
        Why it waits, although it could go on.
    refits : Trouble or None
        Why its refits fail.
    """

    def __init__(self, observe: Observe, posts: FeedAlarms | None = None) -> None:
        self._observe, self.posts = observe, posts
        self.stage: Stage | Literal["aside"] = "standby"
        self.answers = self.reports = self.snapshots = self.replayed_entries = 0
        self.rejected: Counter[str] = Counter()
        self.alarms: Counter[str] = Counter()
        self.replay = (0, 0)
        self.answered_at = 0.0
        self.reason: str | None = None
        self.waiting: str | None = None
        self.refits: Trouble | None = None

    def told(self) -> str:
        """Return the stage, or why the feed is set aside.

        Examples
        --------
        >>> FeedRecord(lambda duration, seconds: None).told()
        'standby'
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
        self._observe("replay", seconds)
        self.replayed_entries += self.replay[0]

    @override
    def answered(self, seconds: float) -> None:
        self._observe("batch", seconds)

    @override
    def committed(self, commit: Commit, seconds: float) -> None:
        super().committed(commit, seconds)
        self._observe("commit", seconds)
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

    @override
    def waits(self, reason: str | None) -> None:
        self.waiting = reason

    @override
    def refitted(self, seconds: float, waited: float) -> None:
        self._observe("refit", seconds)
        self._observe("refit_wait", waited)

    @override
    def refits_fail(self, trouble: Trouble | None) -> None:
        self.refits = trouble

    @override
    def fails(self, reason: str) -> None:
        super().fails(reason)
        self.stage, self.reason = "aside", reason


class FleetWatch:
    """The state of a process of many feeds. Its thread writes it; others only read.

    Parameters
    ----------
    observe : Observe, optional
    webhooks : Webhooks, optional
        Where alarms are posted that the settings of a feed want posted.

    Attributes
    ----------
    stage : Stage
    feeds : dict of str to FeedRecord
    turned : float
        When the loop last began a turn, by `time.monotonic`.
    renewed : float or None
        When the leases were last renewed, likewise; None before any was held.
    lease : float
        Seconds that a lease lasts.
    connections : sequence of Connection
        To Redis.
    """

    def __init__(self, observe: Observe | None = None, webhooks: Webhooks | None = None) -> None:
        self._observe, self._webhooks = observe or _ignore, webhooks
        self.stage: Stage = "starting"
        self.feeds: dict[str, FeedRecord] = {}
        self.turned = time.monotonic()
        self.renewed: float | None = None
        self.lease = 0.0
        self.connections: tuple[Connection, ...] = ()

    def begins(self, connections: tuple[Connection, ...], lease: float) -> None:
        """Note that the loop begins, over these connections, with leases of so many seconds."""
        self.connections, self.lease, self.stage = connections, lease, "answering"

    def turns(self, renewed: float | None) -> None:
        """Note that the loop begins another turn, and when the leases were last renewed."""
        self.turned, self.renewed = time.monotonic(), renewed

    def takes(self, feed: str, settings: WorkerSettings) -> FeedRecord:
        """Return what a feed that is taken up tells its work to."""
        posts = None if self._webhooks is None else self._webhooks.add(feed, settings)
        self.feeds[feed] = FeedRecord(self._observe, posts)
        return self.feeds[feed]

    def gives_up(self, feed: str) -> None:
        """Note that a feed is another process's now."""
        posts = self.feeds.pop(feed).posts
        if posts is not None and self._webhooks is not None:
            self._webhooks.remove(posts)

    def ends(self) -> None:
        """Note that the process stops."""
        self.stage = "stopping"

    def aside(self) -> dict[str, str]:
        """Return the reasons of the feeds that are set aside, by feed."""
        found = {feed: record.reason for feed, record in list(self.feeds.items())}
        return {feed: reason for feed, reason in found.items() if reason is not None}


def _ignore(_duration: Duration, _seconds: float) -> None:
    """Observe nothing."""
