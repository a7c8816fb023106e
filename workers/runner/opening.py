"""Opening of a feed: the checks before it is answered, and the making of its session.

A feed has input of its own (`StreamOpening`), or its input is a join (`combination`).
"""

from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

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
    from workers.session.feed_session import FeedSession


log = Logger("online_svm.worker")


class SnapshotFetcher:
    """Fetches snapshots of feeds that are about to be taken over, in another thread.

    Most of a start is reading and hashing snapshots of a megabyte and more, and restoring
    predictors from them. Reading and hashing release the GIL, so one core can do them while another
    restores predictors. `wake` is called after each snapshot.
    """

    def __init__(self, url: str, wake: Callable[[], None]) -> None:
        self._reader, self._wake = SnapshotReader(url), wake
        self._threads = ThreadPoolExecutor(1, "snapshots")

    def fetch(self, feed: str) -> "Future[Fetched]":
        """Begin to fetch the newest snapshot of a feed; the result is empty if that fails.

        If the result is empty or outdated, the feed reads its newest snapshot itself.
        """
        found = self._threads.submit(self._fetched, feed)
        found.add_done_callback(lambda _found: self._wake())
        return found

    def close(self) -> None:
        """Stop fetching."""
        self._reader.close()
        # The fetches still queued fail at once; then their thread disconnects.
        self._threads.submit(self._reader.disconnect)
        self._threads.shutdown(wait=False)

    def _fetched(self, feed: str) -> Fetched:
        found = self._reader.newest(FeedKeys(feed))
        if found is not None:
            pointer, config_hash, data = found
            with suppress(ValueError, WorkerError):  # the feed meets the error, too, and reports it
                decoded = snapshots.decode(data, pointer, feed, config_hash)
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
    observe: "Callable[[str, Outcome], None]"  # gets each committed batch
    replays: ReplayBudget
    fetcher: SnapshotFetcher

    @property
    def stop(self) -> Stop:
        """The stop request of the process."""
        return self.redis.stop


class FeedOpening(Protocol):
    """How one feed is checked and taken over."""

    settings: WorkerSettings  # given for the feed; see `effective_settings`
    source: str | None  # of a combination: its first feed, whose order of answers it keeps
    store: Store

    def look(self) -> bool:
        """Check whether the feed can be answered; return whether it needs refits at once.

        Raises WorkerError with the reason why it cannot.
        """

    def session(
        self,
        context: WorkerContext,
        lease: FeedLease | None,
        observe: "Callable[[Outcome], None]",
        telemetry: Telemetry,
        opened: ExitStack,
    ) -> "Generator[None, None, FeedSession[Any]]":
        """Check the feed and make its session, in steps. The lease is already held.

        Resources of the session are entered into `opened`, which closes them.
        """


FeedFactory = Callable[[str, RedisContext], FeedOpening]
"""Returns the opening of a feed."""


class StreamOpening:
    """The opening of a feed with input of its own."""

    source: str | None = None

    def __init__(self, feed: str, settings: WorkerSettings, redis: RedisContext) -> None:
        self._feed, self.settings, self._redis = feed, settings, redis
        self.store: Store = open_store(
            feed, settings, redis.url, connections=(redis.commands, redis.reads)
        )

    def look(self) -> bool:
        """Check whether the feed can be answered; return whether it needs refits at once."""
        looked, _ = self._checked()
        return looked.is_behind and not is_held(self.store.lease_value())

    def session(
        self,
        context: WorkerContext,
        lease: FeedLease | None,
        observe: "Callable[[Outcome], None]",
        telemetry: Telemetry,
        opened: ExitStack,
    ) -> "Generator[None, None, FeedSession[Any]]":
        """Check the feed and make its session; see `FeedOpening`."""
        from workers.session.flow_control import Pace
        from workers.session.recovery import Recovery
        from workers.session.session import assemble

        fetched = context.fetcher.fetch(self._feed)
        looked, (used, ours) = self._checked()
        for warning in looked.warnings:
            log.warning(warning, feed=self._feed)
        self._keep(used, looked.state, context.writer)
        self.store.register()
        yield
        refits = opened.enter_context(context.refits(used, telemetry))
        while not fetched.done():
            yield
        recovery = Recovery(
            self.store, ours, used.predictor, used.limits, Pace(refits, SLICE_ENTRIES),
            context.writer, context.stop, telemetry,
            fetched.result(), used.retention, may_create=looked.state is None,
        )  # fmt: skip
        return assemble(recovery, used, lease, observe)

    def _keep(self, used: WorkerSettings, state: FeedState | None, writer: str) -> None:
        """Apply the retention in force to commits; log and note a change of it."""
        self.store.retained = RetainedOutputs(Retention.of(used))
        before = None if state is None else state.retention
        changed = "" if before is None else changes(before, used.retention)
        if changed:
            log.warning("what is kept of the feed changes", feed=self._feed, change=changed)
            self.store.note("retention", changed, writer)

    def _checked(self) -> tuple[Preflight, EffectiveSettings]:
        """Return what the checks found, and the settings in force."""
        redis = self._redis
        found = preflight.find(self.store, redis.server, redis.known)
        settled = redis.settled.of(self.settings, self._feed, found.state)
        looked = preflight.check(self.store, settled.pinned, found, is_take_over=True)
        redis.check_rights(self._feed, settled.settings)
        return looked, settled
