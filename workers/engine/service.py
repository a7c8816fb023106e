"""Run one worker: preflight, lease, recovery, the engine, a graceful stop."""

import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import structlog

from workers.broker import permissions
from workers.broker.lease import holding, is_held
from workers.broker.store import Store
from workers.config.settings import WorkerSettings
from workers.engine import preflight
from workers.engine.known_feeds import KnownFeeds
from workers.engine.preflight import Preflight
from workers.engine.telemetry import Telemetry
from workers.errors import WorkerError
from workers.fast_imports import importing
from workers.feed.agreement import agreement
from workers.feed.keys import FeedKeys
from workers.feed.retention import DOWNSTREAM, Retention
from workers.feed.stored_settings import effective_settings
from workers.refit import child as refit_child
from workers.refit.child import Child
from workers.stop import Stop, signals

if TYPE_CHECKING:
    from workers.session.answer import Outcome

log = structlog.get_logger("online_svm.worker")


def run(
    feed: str,
    settings: WorkerSettings,
    url: str,
    name: str | None = None,
    accept_environment: bool = False,
    observe: Callable[["Outcome"], None] | None = None,
    telemetry: Telemetry | None = None,
    known: KnownFeeds | None = None,
) -> None:
    """Answer a feed until SIGTERM or SIGINT; then leave a snapshot and release the lease.

    Parameters
    ----------
    feed : str
    settings : WorkerSettings
        A setting that was not given has the value that the feed has stored, if the feed exists;
        see `stored_settings.effective_settings`.
    url : str
        Of Redis, or of the embedded server.
    name : str, optional
        Stable name of this worker; default the host's name.
    accept_environment : bool
        Continue with another version of numba, if a replay gives the same bytes.
    observe : callable, optional
        Called with the outcome of each committed batch.
    telemetry : Telemetry, optional
        Is told what the worker does.
    known : KnownFeeds, optional
        Feeds that are not begun anew by themselves; default those that this process sees.

    Raises
    ------
    WorkerError
        Whose `exit_code` says how the command ends.
    """
    told, stop = telemetry or Telemetry(), Stop(settings.grace)
    writer = name or platform.node() or "worker"
    known = known or KnownFeeds(url)
    with signals(stop), open_store(feed, settings, url, stop) as store:
        told.opened(store)
        found, used = run_preflight(store, settings, accept_environment, known=known)
        for warning in found.warnings:
            log.warning(warning)
        check_permissions(store, settings, stop)
        store.be_patient()
        is_standby = is_held(store.call("GET", store.keys.lease))
        if is_standby:
            told.enter("standby")
        with _begun_early(used, found.is_behind and not is_standby) as child:
            # Imported here: errors of the server or the feed are reported without this delay, and
            # a standby is ready before it gets the lease.
            with importing():
                from workers.engine.assembly import assemble, load_compiler, refitter

                load_compiler()
            with holding(
                url, store.keys.lease, writer, settings.lease, stop, settings.wait_redis,
                look=lambda: known.look(store),
            ) as lease:  # fmt: skip
                told.holds(lease)
                # Check again: the previous holder of the lease may have changed the feed.
                before = None if lease.was_waited_for else found
                found, used = run_preflight(store, settings, accept_environment, before, known)
                store.register()
                with refitter(used, stop, child, telemetry) as refits:
                    engine = assemble(
                        store, used, refits, stop, writer, lease, observe, accept_environment,
                        begins=found.state is None, telemetry=told,
                    )  # fmt: skip
                    known.add(feed)
                    with _telling(store):
                        engine.run()
                    told.enter("stopping")


def run_preflight(
    store: Store,
    given: WorkerSettings,
    accept_environment: bool = False,
    before: Preflight | None = None,
    known: KnownFeeds | None = None,
) -> tuple[Preflight, WorkerSettings]:
    """Check whether a worker may begin; return what was found, and the settings in force.

    Raises
    ------
    BadConfiguration, StateLost
        As `preflight.check` and `stored.effective_settings`.
    """
    found = preflight.find(store, known=known)
    settings = effective_settings(given, store.keys.feed, found.state)
    ours = agreement(settings.predictor, settings.limits)
    return preflight.check(store, ours, accept_environment, before, found), settings


def open_store(feed: str, settings: WorkerSettings, url: str, stop: Stop | None = None) -> Store:
    """Return the store of a feed under these settings."""
    return Store(
        url,
        feed,
        stop,
        patience=settings.wait_redis,
        retention=Retention.of(settings),
        wait_replicas=settings.wait_replicas,
    )


def check_permissions(store: Store, settings: WorkerSettings, stop: Stop | None = None) -> None:
    """Raise AccessDenied unless this user may run every command of a worker.

    A Redis that does not answer is waited for as the settings say.
    """
    permissions.check(
        store.url, commands_of(store.url, store.keys, settings), stop, settings.wait_redis
    )


def commands_of(url: str, keys: FeedKeys, settings: WorkerSettings) -> list[permissions.Command]:
    """Return the commands of a worker with these settings."""
    group = DOWNSTREAM if settings.downstream == "block" else None
    commands = permissions.of_worker(keys, group)
    commands += permissions.of_replication(url, settings.wait_replicas)
    if settings.publish_every:
        commands += permissions.of_publisher(keys)
    if settings.alarm_url is not None:
        commands += permissions.of_webhook(keys)
    return commands


@contextmanager
def _telling(store: Store) -> Iterator[None]:
    """Note the error that ends the work, for those who look at the feed later."""
    try:
        yield
    except WorkerError as error:
        store.note("failed", f"{type(error).__name__}: {error}")
        raise


@contextmanager
def _begun_early(settings: WorkerSettings, is_urgent: bool) -> Iterator[Child | None]:
    """Start the refit process early if refits are needed at once, so that both import in parallel.

    Otherwise it would delay the first answer, or use memory beside a standby.
    """
    if settings.predictor.lag == 0 or not is_urgent:
        yield None
        return
    members = len(settings.predictor.members)
    child = refit_child.begin(refit_child.spread(members, settings.refit_processes))
    try:
        yield child
    finally:
        refit_child.end(child)
