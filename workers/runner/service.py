"""Run a worker: a process that answers the selected feeds until a stop is requested.

The server, the named feeds and the user's permissions are checked before the slow imports, so that
errors are reported at once.
"""

import platform
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workers.broker import permissions
from workers.config.settings import WorkerSettings
from workers.errors import BadConfiguration, WorkerError
from workers.feed.selection import Selection
from workers.log import Logger
from workers.monitor.watch import WorkerWatch
from workers.python_process import importing
from workers.refit import process as refit_process
from workers.refit.process import Child
from workers.runner.feed_task import FeedFactory, FeedOpening
from workers.runner.redis_context import RedisContext, redis_context
from workers.session.preflight import KnownFeeds
from workers.stop import Stop

if TYPE_CHECKING:
    from workers.refit.pool import RefitPool
    from workers.session.answer import Outcome

log = Logger("online_svm.worker")

POLL_SECONDS = 5.0  # seconds between two checks of which feeds exist and belong to this process

SettingsOf = Callable[[str], WorkerSettings]


@dataclass(frozen=True, slots=True)
class Worker:
    """A process that answers the selected feeds until the stop is requested.

    Feeds with a state or with input are served as they appear. A feed that is no longer
    selected gets a snapshot and is dropped. A setting that is not given has the value stored by the
    feed; see `stored_settings.effective_settings`.
    """

    selection: Selection
    settings: WorkerSettings  # of the process, and of its feeds without `settings_of`
    url: str  # of Redis, or of the embedded server
    stop: Stop
    name: str | None = None  # of this worker, stable over restarts; default the host's name
    settings_of: SettingsOf | None = None
    observe: "Callable[[str, Outcome], None] | None" = None  # called with each committed batch
    watch: WorkerWatch | None = None
    poll_seconds: float = POLL_SECONDS
    pool: "RefitPool | None" = None  # shared with other workers; by default its own
    known: KnownFeeds | None = None  # must not start anew; default: seen by this process

    def run(self) -> None:
        """Answer the feeds; then take snapshots.

        It installs no signal handlers, so any thread may call it. Raises BadConfiguration if more
        feeds are named than `max_feeds`, or the server cannot be used; AccessDenied if a pattern
        needs the list of feeds and this user may not read it; Unavailable if Redis does not answer
        within `wait_redis` at the start; WorkerError, the error of the first feed, if only names
        are selected and none of their feeds can be answered.
        """
        selection, settings = self.selection, self.settings
        if len(selection.names) > settings.max_feeds:
            raise BadConfiguration(
                f"{len(selection.names)} feeds are named, and max_feeds is {settings.max_feeds}: "
                "give --max-feeds more, or name fewer"
            )
        watch = self.watch or WorkerWatch()
        with ExitStack() as opened:
            known = self.known or KnownFeeds(self.url)
            redis = opened.enter_context(redis_context(settings, self.url, self.stop, known))
            watch.connects((redis.commands, redis.reads), settings.lease)
            if selection.patterns:
                redis.checks.check(permissions.of_patterns())
            is_urgent = _check_named(selection, self._open, redis)
            redis.retry_forever()
            child = opened.enter_context(_started_early(is_urgent and self.pool is None))
            # Imported here: errors of the server or a feed are reported without this delay, and a
            # standby is ready before it gets the lease.
            with importing():
                from workers.runner.loop import feed_supervisor, worker_context

            writer = self.name or platform.node() or "worker"
            context = opened.enter_context(
                worker_context(redis, settings, writer, self.observe, self.pool, child)
            )
            supervisor = opened.enter_context(
                feed_supervisor(selection, settings, self._open, context, watch)
            )
            supervisor.serve(self.poll_seconds)

    def _open(self, feed: str, redis: RedisContext) -> FeedOpening:
        settings = self.settings if self.settings_of is None else self.settings_of(feed)
        return FeedOpening(feed, settings, redis)


def _check_named(selection: Selection, feed_factory: FeedFactory, redis: RedisContext) -> bool:
    """Check the named feeds; return whether one of them needs refits at once.

    Raises the error of the first feed if none can be answered and there are no patterns.
    """
    is_urgent, errors = False, []
    names = selection.of(())
    for feed in names:
        try:
            is_urgent |= feed_factory(feed, redis).check()
        except WorkerError as error:
            errors.append(error)
    if errors and len(errors) == len(names) and not selection.patterns:
        raise errors[0]
    return is_urgent


@contextmanager
def _started_early(is_urgent: bool) -> Iterator[Child | None]:
    """Start a refit process early if refits are needed at once, so that both import in parallel.

    Otherwise it would delay the first answer, or use memory in a standby.
    """
    child = refit_process.start() if is_urgent else None
    try:
        yield child
    finally:
        if child is not None:
            refit_process.end(child)
