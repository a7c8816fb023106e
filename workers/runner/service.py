"""Run a worker: a process that answers the feeds of a selection until a stop is requested.

Here is what comes before the slow imports: the server, the feeds that are named and the rights of
the user are checked, so that a wrong setting is told at once.
"""

import platform
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from workers.broker import permissions
from workers.broker.client import TIMEOUT
from workers.broker.connection import Connection
from workers.broker.feed_reader import FeedReader
from workers.broker.lease import is_held
from workers.broker.permissions import Checks
from workers.config.redis_servers import CLUSTER, kind_of
from workers.config.settings import WorkerSettings
from workers.errors import BadConfiguration, WorkerError
from workers.fast_imports import importing
from workers.feed.keys import FeedKeys
from workers.feed.selection import Selection
from workers.monitor.watch import WorkerWatch
from workers.refit import child as refit_child
from workers.refit.child import Child
from workers.runner.outages import HASTE, REPLY
from workers.runner.settled_settings import SettledSettings
from workers.session import preflight
from workers.session.durability import durability
from workers.session.known_feeds import KnownFeeds
from workers.session.opening import commands_of, open_store
from workers.stop import Stop

if TYPE_CHECKING:
    from workers.refit.pool import RefitPool
    from workers.session.answer import Outcome

log = structlog.get_logger("online_svm.worker")

LOOK = 5.0
"""Seconds between two looks at the list of feeds, and at whose share they are."""

SLICE = 256
"""Entries of one feed that are answered at once, at most."""

SettingsOf = Callable[[str], WorkerSettings]


@dataclass(frozen=True, slots=True)
class Link:
    """The connections of a process to Redis, and what it has checked there.

    Attributes
    ----------
    url : str
    stop : Stop
    commands, reads : Connection
    server : dict or None
        The fields of INFO; the server passed its checks. None where there are several servers.
    checks : Checks
        Of the rights of this user.
    known : KnownFeeds
    settled : SettledSettings
    accept_environment : bool
    permitted : set of str
        Feeds whose commands this user may run.
    """

    url: str
    stop: Stop
    commands: Connection
    reads: Connection
    server: dict[str, str] | None
    checks: Checks
    known: KnownFeeds
    settled: SettledSettings
    accept_environment: bool
    permitted: set[str]

    @property
    def is_cluster(self) -> bool:
        """Whether feeds are on several servers: each waits for its own, aside."""
        return kind_of(self.url) == CLUSTER

    def check_rights(self, feed: str, settings: WorkerSettings) -> None:
        """Raise AccessDenied unless this user may do all that a feed with these settings needs."""
        if feed not in self.permitted:
            self.checks.check(commands_of(self.url, FeedKeys(feed), settings))
            self.permitted.add(feed)


def run(
    selection: Selection,
    settings: WorkerSettings,
    url: str,
    stop: Stop,
    *,
    name: str | None = None,
    accept_environment: bool = False,
    settings_of: SettingsOf | None = None,
    observe: Callable[[str, "Outcome"], None] | None = None,
    watch: WorkerWatch | None = None,
    look: float = LOOK,
    pool: "RefitPool | None" = None,
    known: KnownFeeds | None = None,
) -> None:
    """Answer the selected feeds until the stop is requested; then leave snapshots.

    It may be called in any thread: it installs no handlers of signals.

    Parameters
    ----------
    selection : Selection
        Feeds that are listed, or have input, are taken up as they appear; feeds that it selects no
        more are given up, with a snapshot.
    settings : WorkerSettings
        Of the process, and of feeds for which `settings_of` gives no others. A setting that was
        not given has the value that a feed has stored; see `stored_settings.effective_settings`.
    url : str
        Of Redis, or of the embedded server.
    stop : Stop
    name : str, optional
        Stable name of this worker; default the host's name.
    accept_environment : bool
        Go on with another version of numba, if a replay gives the same bytes.
    settings_of : callable, optional
        Returns the settings of a feed.
    observe : callable, optional
        Called with the name of a feed and the outcome of each batch that was committed.
    watch : WorkerWatch, optional
        Is told what the process does.
    look : float
        Seconds between two looks at the list of feeds.
    pool : RefitPool, optional
        Computes the refits, where others use it too; by default one of its own does.
    known : KnownFeeds, optional
        Feeds that are not begun anew by themselves; default those that this process sees.

    Raises
    ------
    BadConfiguration
        If more feeds are named than `max_feeds`, or the server cannot be used.
    AccessDenied
        If this user may not read the list of feeds, and a pattern needs it.
    Unavailable
        If Redis does not answer in the first place, for longer than `wait_redis`.
    WorkerError
        If feeds are named and none of them can be answered: why the first one cannot.
    """
    if len(selection.names) > settings.max_feeds:
        raise BadConfiguration(
            f"{len(selection.names)} feeds are named, and max_feeds is {settings.max_feeds}: give "
            "--max-feeds more, or name fewer"
        )
    told = watch or WorkerWatch()
    of_feed: SettingsOf = settings_of or (lambda _feed: settings)
    with ExitStack() as opened:
        link = opened.enter_context(
            _linked(settings, url, stop, accept_environment, known or KnownFeeds(url))
        )
        told.connects((link.commands, link.reads), settings.lease)
        if selection.patterns:
            link.checks.check(permissions.of_patterns())
        is_urgent = _look_at_named(selection, of_feed, link)
        _be_patient(link)
        child = opened.enter_context(_begun_early(is_urgent and pool is None))
        # Imported here: what is wrong with the server or a feed is told without this delay, and a
        # standby is ready before it gets the lease.
        with importing():
            from workers.runner.hosting import hosting
            from workers.session.assembly import load_compiler

            load_compiler()
        writer = name or platform.node() or "worker"
        process = opened.enter_context(
            hosting(selection, settings, of_feed, link, writer, observe, told, pool, child)
        )
        process.serve(look)


def _look_at_named(selection: Selection, settings_of: SettingsOf, link: Link) -> bool:
    """Check the feeds that are named; return whether one of them needs refits at once.

    Raises
    ------
    WorkerError
        If none of them can be answered, and no pattern may bring others: why the first one cannot.
    """
    is_urgent, errors = False, []
    names = selection.of(())
    for feed in names:
        connections = (link.commands, link.reads)
        store = open_store(feed, settings_of(feed), link.url, connections=connections)
        try:
            found = preflight.find(store, link.server, link.known)
            used, ours = link.settled.of(settings_of(feed), feed, found.state)
            unread = preflight.Preflight("", found.state, ())  # a take-over reads the snapshots
            looked = preflight.check(store, ours, link.accept_environment, unread, found)
            link.check_rights(feed, used)
        except WorkerError as error:
            errors.append(error)
        else:
            is_urgent |= looked.is_behind and not is_held(store.call("GET", store.keys.lease))
    if errors and len(errors) == len(names) and not selection.patterns:
        raise errors[0]
    return is_urgent


def _be_patient(link: Link) -> None:
    """From now on a Redis that does not answer is waited for, in place or aside."""
    link.commands.patience = link.reads.patience = 0.0 if link.is_cluster else None
    link.commands.haste = link.reads.haste = HASTE if link.is_cluster else 0.0


@contextmanager
def _begun_early(is_urgent: bool) -> Iterator[Child | None]:
    """Start a refit process early if refits are needed at once, so that both import in parallel.

    Otherwise it would delay the first answer, or use memory beside a standby.
    """
    child = refit_child.begin() if is_urgent else None
    try:
        yield child
    finally:
        if child is not None:
            refit_child.end(child)


@contextmanager
def _linked(
    settings: WorkerSettings,
    url: str,
    stop: Stop,
    accept_environment: bool,
    known: KnownFeeds,
) -> Iterator[Link]:
    """Connect to the server, and check it."""
    is_cluster = kind_of(url) == CLUSTER
    # On a cluster a feed waits for its node aside, so that the feeds of other nodes go on.
    timeout, haste = (REPLY, HASTE) if is_cluster else (TIMEOUT, 0.0)
    commands = Connection(url, stop, settings.wait_redis, timeout)
    reads = Connection(url, stop, settings.wait_redis, timeout)
    try:
        with FeedReader(url, "any", connections=(commands, reads)) as any_feed:
            server = any_feed.server()
            preflight.check_server(server, url)
            for warning in durability(any_feed, server):
                log.warning(warning)
        with Checks(url, stop, settings.wait_redis, timeout, haste) as checks:
            yield Link(
                url, stop, commands, reads, None if is_cluster else server, checks, known,
                SettledSettings(SLICE), accept_environment, set(),
            )  # fmt: skip
    finally:
        commands.close()
        reads.close()
