"""State of a worker and of its feeds, as it tells metrics, probes and people."""

import time
from collections.abc import Mapping
from typing import Protocol

from workers.config.settings import WorkerSettings
from workers.monitor.feed_record import FeedRecord
from workers.monitor.webhook import Webhooks
from workers.session.telemetry import Stage
from workers.trouble import Trouble


class RedisLink(Protocol):
    """A connection to Redis, as far as it tells how it is."""

    @property
    def trouble(self) -> Trouble | None:
        """Why it fails now; None where it works."""

    @property
    def retries(self) -> Mapping[str, int]:
        """Failures so far, by kind."""


class WorkerWatch:
    """The state of a worker. The thread of its loop writes it; others only read.

    Parameters
    ----------
    webhooks : Webhooks, optional
        Where alarms are posted that the settings of a feed want posted.

    Attributes
    ----------
    feeds : dict of str to FeedRecord
    turned : float
        When the loop last began a turn, by `time.monotonic`.
    renewed : float or None
        When the leases were last renewed, likewise; None before any was asked for.
    lease : float
        Seconds that a lease lasts.
    connections : sequence of RedisLink
        To Redis.
    """

    def __init__(self, webhooks: Webhooks | None = None) -> None:
        self._webhooks = webhooks
        self._process: Stage = "starting"
        self.feeds: dict[str, FeedRecord] = {}
        self.turned = time.monotonic()
        self.renewed: float | None = None
        self.lease = 0.0
        self.connections: tuple[RedisLink, ...] = ()

    @property
    def stage(self) -> Stage:
        """What the process does: answers, unless no feed gets as far yet.

        Examples
        --------
        >>> WorkerWatch().stage
        'starting'
        """
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
        """Why the first connection that fails does; None where all work."""
        found = (connection.trouble for connection in self.connections)
        return next((trouble for trouble in found if trouble is not None), None)

    def connects(self, connections: tuple[RedisLink, ...], lease: float) -> None:
        """Note the connections of the process, and how many seconds its leases last."""
        self.connections, self.lease = connections, lease

    def begins(self) -> None:
        """Note that the loop begins."""
        self._process, self.turned = "answering", time.monotonic()

    def turns(self, renewed: float | None) -> None:
        """Note that the loop begins another turn, and when the leases were last renewed."""
        self.turned, self.renewed = time.monotonic(), renewed

    def takes(
        self, feed: str, settings: WorkerSettings | None = None, source: str | None = None
    ) -> FeedRecord:
        """Return what a feed that is taken up tells its work to.

        Parameters
        ----------
        feed : str
        settings : WorkerSettings, optional
            Say where its alarms are posted; without them none is.
        source : str, optional
            For a combination: the feed whose answers it answers in order.
        """
        posts = None
        if settings is not None and self._webhooks is not None:
            posts = self._webhooks.add(feed, settings)
        self.feeds[feed] = FeedRecord(posts, source)
        return self.feeds[feed]

    def gives_up(self, feed: str) -> None:
        """Note that a feed is another process's now."""
        posts = self.feeds.pop(feed).posts
        if posts is not None and self._webhooks is not None:
            self._webhooks.remove(posts)

    def ends(self) -> None:
        """Note that the process stops."""
        self._process = "stopping"
