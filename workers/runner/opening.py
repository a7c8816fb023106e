"""Opening of a feed: the checks before it is answered, and the creation of its session."""

from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workers.broker.commit_script import RetainedOutputs
from workers.broker.large_replies import SnapshotReader
from workers.broker.leases import FeedLease, is_held
from workers.broker.store import Store
from workers.config.settings import WorkerSettings
from workers.errors import WorkerError
from workers.feed.keys import FeedKeys
from workers.feed.retention import Retention, changes
from workers.feed.state import FeedState
from workers.log import Logger
from workers.runner.redis_context import SLICE_ENTRIES, EffectiveSettings, RedisContext
from workers.session import preflight, snapshots
from workers.session.preflight import Preflight, open_store
from workers.session.snapshots import Fetched, ReplayBudget
from workers.session.telemetry import Telemetry
from workers.stop import Stop

if TYPE_CHECKING:
    from workers.refit.refitter import PooledRefitter
    from workers.session.answer import Outcome
    from workers.session.session import Session


log = Logger("online_svm.worker")


class SnapshotFetcher:
    """Reads the snapshots of feeds that are about to be taken over, in another thread.

    A start mostly reads and hashes snapshots of a megabyte and more, and restores predictors.
    Reading and hashing release the GIL, so they overlap with restoring. `wake` is called after each
    snapshot.
    """

    def __init__(self, url: str, wake: Callable[[], None]) -> None:
        self._reader, self._wake = SnapshotReader(url), wake
        self._threads = ThreadPoolExecutor(1, "snapshots")

    def fetch(self, feed: str) -> "Future[Fetched]":
        """Start to fetch the newest snapshot of a feed; after a failure the result is empty.

        If the result is empty or outdated, the feed reads the snapshot itself.
        """
        found = self._threads.submit(self._fetched, feed)
        found.add_done_callback(lambda _found: self._wake())
        return found

    def close(self) -> None:
        """Stop fetching."""
        self._reader.close()
        # The queued fetches fail at once; then the thread disconnects.
        self._threads.submit(self._reader.disconnect)
        self._threads.shutdown(wait=False)

    def _fetched(self, feed: str) -> Fetched:
        found = self._reader.newest(FeedKeys(feed))
        if found is not None:
            pointer, config_hash, data, chunks = found
            with suppress(ValueError, WorkerError):  # the feed meets and reports the same error
                decoded = snapshots.decode(data, pointer, feed, config_hash, chunks)
                return {(pointer, config_hash): decoded}
        return {}


Refits = Callable[[WorkerSettings, Telemetry], "PooledRefitter"]
"""Returns the refitter of a feed with these settings."""


@dataclass(frozen=True, slots=True)
class WorkerContext:
    """Resources that the feeds of a process share."""

    redis: RedisContext
    writer: str  # name of this worker, for people
    refits: Refits
    observe: "Callable[[str, Outcome], None]"  # called with each committed batch
    replays: ReplayBudget
    fetcher: SnapshotFetcher

    @property
    def stop(self) -> Stop:
        """The stop request of the process."""
        return self.redis.stop


class FeedOpening:
    """How one feed is checked and taken over; `settings` as given, see `effective_settings`."""

    def __init__(self, feed: str, settings: WorkerSettings, redis: RedisContext) -> None:
        self._feed, self.settings, self._redis = feed, settings, redis
        self.store: Store = open_store(
            feed, settings, redis.url, connections=(redis.commands, redis.reads)
        )

    def check(self) -> bool:
        """Raise WorkerError unless the feed can be answered; return whether it needs refits now."""
        result, _ = self._check()
        return result.is_behind and not is_held(self.store.lease_value())

    def session(
        self,
        context: WorkerContext,
        lease: FeedLease | None,
        observe: "Callable[[Outcome], None]",
        telemetry: Telemetry,
        opened: ExitStack,
    ) -> "Generator[None, None, Session]":
        """Check the feed, whose lease is held, and create its session, in steps.

        `opened` closes the resources of the session.
        """
        from workers.session.flow_control import Pace
        from workers.session.recovery import Recovery
        from workers.session.session import assemble

        fetched = context.fetcher.fetch(self._feed)
        result, (used, pinned) = self._check()
        for warning in result.warnings:
            log.warning(warning, feed=self._feed)
        self._apply_retention(used, result.state, context.writer)
        self.store.register()
        yield
        refits = opened.enter_context(context.refits(used, telemetry))
        while not fetched.done():
            yield
        recovery = Recovery(
            self.store, pinned, used.predictor, used.limits, Pace(refits, SLICE_ENTRIES),
            context.writer, context.stop, telemetry,
            fetched.result(), used.retention, may_create=result.state is None,
        )  # fmt: skip
        return assemble(recovery, used, lease, observe)

    def _apply_retention(self, used: WorkerSettings, state: FeedState | None, writer: str) -> None:
        """Set the retention of commits; report a change."""
        self.store.retained = RetainedOutputs(Retention.of(used))
        before = None if state is None else state.retention
        changed = "" if before is None else changes(before, used.retention)
        if changed:
            log.warning("what is kept of the feed changes", feed=self._feed, change=changed)
            self.store.note("retention", changed, writer)

    def _check(self) -> tuple[Preflight, EffectiveSettings]:
        redis = self._redis
        found = preflight.find(self.store, redis.server, redis.known)
        effective = redis.settings_cache.effective(self.settings, self._feed, found.state)
        result = preflight.check(self.store, effective.pinned, found, is_take_over=True)
        redis.check_rights(self._feed, effective.settings)
        return result, effective


FeedFactory = Callable[[str, RedisContext], FeedOpening]  # returns the opening of a feed
