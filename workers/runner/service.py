"""Run a worker: a process that answers the feeds of a selection until a stop is requested.

Here is what comes before the slow imports: the server, the feeds that are named and the rights of
the user are checked, so that a wrong setting is told at once.
"""

import platform
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from workers.broker import permissions
from workers.config.settings import WorkerSettings
from workers.errors import BadConfiguration, WorkerError
from workers.fast_imports import importing
from workers.feed.selection import Selection
from workers.log import Logger
from workers.monitor.watch import WorkerWatch
from workers.refit import child as refit_child
from workers.refit.child import Child
from workers.runner.link import Link, linked
from workers.runner.opening import Opens, OwnInput
from workers.session.known_feeds import KnownFeeds
from workers.stop import Stop

if TYPE_CHECKING:
    from workers.refit.pool import RefitPool
    from workers.session.answer import Outcome

log = Logger("online_svm.worker")

LOOK = 5.0
"""Seconds between two looks at the list of feeds, and at whose share they are."""

SettingsOf = Callable[[str], WorkerSettings]


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
    opens: Opens | None = None,
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
    opens : callable, optional
        Returns the opening of a feed; by default it has input of its own.

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
    opened_by: Opens = opens or (lambda feed, link: OwnInput(feed, of_feed(feed), link))
    with ExitStack() as opened:
        link = opened.enter_context(
            linked(settings, url, stop, accept_environment, known or KnownFeeds(url))
        )
        told.connects((link.commands, link.reads), settings.lease)
        if selection.patterns:
            link.checks.check(permissions.of_patterns())
        is_urgent = _look_at_named(selection, opened_by, link)
        link.be_patient(is_one_feed=opens is not None)  # a combination reads several nodes
        child = opened.enter_context(_begun_early(is_urgent and pool is None))
        # Imported here: what is wrong with the server or a feed is told without this delay, and a
        # standby is ready before it gets the lease.
        with importing():
            from workers.runner.hosting import hosting

            if opens is None:
                from workers.session.assembly import load_compiler

                load_compiler()
        writer = name or platform.node() or "worker"
        process = opened.enter_context(
            hosting(selection, settings, opened_by, link, writer, observe, told, pool, child)
        )
        process.serve(look)


def _look_at_named(selection: Selection, opens: Opens, link: Link) -> bool:
    """Check the feeds that are named; return whether one of them needs refits at once.

    Raises
    ------
    WorkerError
        If none of them can be answered, and no pattern may bring others: why the first one cannot.
    """
    is_urgent, errors = False, []
    names = selection.of(())
    for feed in names:
        try:
            is_urgent |= opens(feed, link).look()
        except WorkerError as error:
            errors.append(error)
    if errors and len(errors) == len(names) and not selection.patterns:
        raise errors[0]
    return is_urgent


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
