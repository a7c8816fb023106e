"""What a worker said of itself last: what it does, what it waits for, what fails."""

import time

from typing_extensions import override

from workers.broker.feed_reader import FeedReader
from workers.broker.lease import Lease
from workers.engine.telemetry import Stage
from workers.monitor.feed_alarms import AT_WORK, AlarmTelemetry
from workers.trouble import Trouble


class WorkerState(AlarmTelemetry):
    """The state of one worker. Its thread writes it; others only read.

    Attributes
    ----------
    stage : Stage
    turned : float
        When the loop last began a turn, or a page of a replay ended, by `time.monotonic`.
    replay : (int, int)
        Entries answered again, and how many there are, of the last replay.
    waiting : str or None
        Why the feed waits, although it could go on.
    refits : Trouble or None
        Why refits fail.
    store : FeedReader or None
    lease : Lease or None
    """

    def __init__(self) -> None:
        self.stage: Stage = "starting"
        self.turned = time.monotonic()
        self.replay = (0, 0)
        self.waiting: str | None = None
        self.refits: Trouble | None = None
        self.store: FeedReader | None = None
        self.lease: Lease | None = None

    @property
    def is_at_work(self) -> bool:
        """Whether this worker has the feed."""
        return self.stage in AT_WORK

    @override
    def opened(self, store: FeedReader) -> None:
        self.store = store

    @override
    def holds(self, lease: Lease) -> None:
        self.lease = lease

    @override
    def enter(self, stage: Stage) -> None:
        super().enter(stage)
        self.stage, self.turned = stage, time.monotonic()

    @override
    def replaying(self, done: int, total: int) -> None:
        self.replay, self.turned = (done, total), time.monotonic()

    @override
    def turns(self) -> None:
        self.turned = time.monotonic()

    @override
    def waits(self, reason: str | None) -> None:
        self.waiting = reason

    @override
    def refits_fail(self, trouble: Trouble | None) -> None:
        self.refits = trouble
