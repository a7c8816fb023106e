"""Run a worker: a process that answers the feeds of a selection until a stop is requested.

This is what comes before the slow imports: the server, the named feeds and the user's rights are
checked, so that a wrong setting is reported at once.
"""

import platform
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
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
from workers.runner.opening import FeedFactory, StreamOpening
from workers.runner.redis_context import RedisContext, redis_context
from workers.session.known_feeds import KnownFeeds
from workers.stop import Stop

if TYPE_CHECKING:
    from workers.refit.pool import RefitPool
    from workers.session.answer import Outcome

log = Logger("online_svm.worker")

LOOK_SECONDS = 5.0
"""Seconds between two looks at the list of feeds, and at whose share they are."""

SettingsOf = Callable[[str], WorkerSettings]


@dataclass(frozen=True, slots=True)
class Worker:
    """A process that answers the selected feeds until the stop is requested.

    Feeds that are listed, or have input, are taken up as they appear; feeds that are selected no
    more are given up, with a snapshot. A setting that was not given has the value that a feed has
    stored; see `stored_settings.effective_settings`.
    """

    selection: Selection
    settings: WorkerSettings  # of the process, and of feeds that `settings_of` gives no others
    url: str  # of Redis, or of the embedded server
    stop: Stop
    name: str | None = None  # of this worker, the same after a restart; default the host's name
    settings_of: SettingsOf | None = None
    observe: "Callable[[str, Outcome], None] | None" = None  # gets each batch that was committed
    watch: WorkerWatch | None = None
    look: float = LOOK_SECONDS  # seconds between two looks at the list of feeds
    pool: "RefitPool | None" = None  # that others use too; by default one of its own
    known: KnownFeeds | None = None  # not begun again by themselves; default those seen here
    feed_factory: FeedFactory | None = None  # by default of feeds with input of their own

    def run(self) -> None:
        """Answer the feeds; then leave snapshots.

        It may be called in any thread: it installs no handlers of signals.

        Raises BadConfiguration if more feeds are named than `max_feeds`, or the server cannot be
        used. Raises AccessDenied if this user may not read the list of feeds, and a pattern needs
        it. Raises Unavailable if Redis does not answer in the first place, for longer than
        `wait_redis`. Raises WorkerError if feeds are named and none of them can be answered: why
        the first one cannot.
        """
        selection, settings = self.selection, self.settings
        if len(selection.names) > settings.max_feeds:
            raise BadConfiguration(
                f"{len(selection.names)} feeds are named, and max_feeds is {settings.max_feeds}: "
                "give --max-feeds more, or name fewer"
            )
        watch = self.watch or WorkerWatch()
        feed_factory = self.feed_factory or self._open_stream
        with ExitStack() as opened:
            known = self.known or KnownFeeds(self.url)
            redis = opened.enter_context(redis_context(settings, self.url, self.stop, known))
            watch.connects((redis.commands, redis.reads), settings.lease)
            if selection.patterns:
                redis.checks.check(permissions.of_patterns())
            is_urgent = _look_at_named(selection, feed_factory, redis)
            # A combination reads several nodes.
            redis.retry_forever(is_one_feed=self.feed_factory is not None)
            child = opened.enter_context(_started_early(is_urgent and self.pool is None))
            # Imported here: what is wrong with the server or a feed is reported without this
            # delay, and a standby is ready before it gets the lease.
            with importing():
                from workers.runner.feed_supervisor import feed_supervisor, worker_context

                if self.feed_factory is None:
                    import_module("workers.session.session")
            writer = self.name or platform.node() or "worker"
            context = opened.enter_context(
                worker_context(redis, settings, writer, self.observe, self.pool, child)
            )
            supervisor = opened.enter_context(
                feed_supervisor(selection, settings, feed_factory, context, watch)
            )
            supervisor.serve(self.look)

    def _open_stream(self, feed: str, redis: RedisContext) -> StreamOpening:
        settings = self.settings if self.settings_of is None else self.settings_of(feed)
        return StreamOpening(feed, settings, redis)


def _look_at_named(selection: Selection, feed_factory: FeedFactory, redis: RedisContext) -> bool:
    """Check the feeds that are named; return whether one of them needs refits at once.

    Raises WorkerError if none of them can be answered, and no pattern may bring others: why the
    first one cannot.
    """
    is_urgent, errors = False, []
    names = selection.of(())
    for feed in names:
        try:
            is_urgent |= feed_factory(feed, redis).look()
        except WorkerError as error:
            errors.append(error)
    if errors and len(errors) == len(names) and not selection.patterns:
        raise errors[0]
    return is_urgent


@contextmanager
def _started_early(is_urgent: bool) -> Iterator[Child | None]:
    """Start a refit process early if refits are needed at once, so that both import in parallel.

    If none is needed, the process would delay the first answer, or use memory in a standby.
    """
    child = refit_process.start() if is_urgent else None
    try:
        yield child
    finally:
        if child is not None:
            refit_process.end(child)
