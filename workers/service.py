"""One worker, put together: preflight, lease, recovery, the engine, and a graceful stop."""

import platform
from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from online_svm.config import PredictorConfig
from online_svm.predictor import OnlinePredictor
from online_svm.refit import InlineRefitter, Refitter
from workers import permissions, preflight
from workers.agreement import agreement
from workers.commits import Retention
from workers.downstream import Acknowledged, Gate, Open
from workers.engine import Engine, Observer
from workers.lease import Lease
from workers.recovery import Recovery
from workers.refit_pool import ProcessRefitter
from workers.settings import WorkerSettings
from workers.stopping import Stop, signals
from workers.store import Store

log = structlog.get_logger("online_svm.worker")


def run(
    feed: str,
    settings: WorkerSettings,
    url: str,
    name: str | None = None,
    accept_environment: bool = False,
    observe: Observer | None = None,
) -> None:
    """Answer a feed until SIGTERM or SIGINT; then leave a snapshot and free the lease.

    Parameters
    ----------
    feed : str
    settings : WorkerSettings
    url : str
        Of Redis, or of the embedded server.
    name : str, optional
        Stable name of this worker; default the host's name.
    accept_environment : bool
        Go on after a change of libraries or processor, if a replay gives the same bytes.
    observe : callable, optional
        Called with the outcome of each committed batch.

    Raises
    ------
    WorkerError
        Whose `exit_code` says how the command ends.
    """
    stop = Stop(settings.grace)
    ours = agreement(settings.predictor, settings.limits)
    writer = name or platform.node() or "worker"
    with signals(stop), open_store(feed, settings, url, stop) as store:
        for warning in preflight.check(store, ours, accept_environment).warnings:
            log.warning(warning)
        check_permissions(store, settings)
        with (
            _leased(store, settings, url, writer, stop) as lease,
            refitter(settings, stop) as refits,
        ):
            # Again: what held the lease until now may have changed anything.
            found = preflight.check(store, ours, accept_environment)
            store.register()
            store.be_patient()
            engine = assemble(
                store, settings, refits, stop, writer, lease, observe, accept_environment,
                begins=found.state is None,
            )  # fmt: skip
            engine.run()


def assemble(
    store: Store,
    settings: WorkerSettings,
    refits: Refitter,
    stop: Stop,
    writer: str,
    lease: Lease | None = None,
    observe: Observer | None = None,
    accept_environment: bool = False,
    begins: bool = True,
) -> Engine:
    """Return an engine that has taken the feed of `store` over; see `Engine` and `Recovery`."""
    recovery = Recovery(
        store,
        agreement(settings.predictor, settings.limits),
        settings.limits,
        lambda: _fresh(settings.predictor, refits),
        writer,
        stop,
        accept_environment,
    )
    return Engine(
        store,
        recovery,
        settings.limits,
        stop,
        batch=settings.batch,
        snapshot_every=settings.snapshot_every,
        keep_input=settings.keep_input,
        lease=lease,
        observe=observe,
        begins=begins,
        batch_bytes=settings.batch_bytes,
        gate=_gate(store, settings, stop),
    )


def open_store(feed: str, settings: WorkerSettings, url: str, stop: Stop | None = None) -> Store:
    """Return the store of a feed under these settings."""
    return Store(
        url,
        feed,
        stop,
        patience=settings.wait_redis,
        retention=_retention(settings),
        block_ms=settings.block_ms,
    )


def check_permissions(store: Store, settings: WorkerSettings) -> None:
    """Raise AccessDenied unless Redis lets this user do all that a worker does."""
    group = settings.downstream_group if settings.downstream == "block" else None
    permissions.check(store.url, permissions.of_worker(store.keys, group))


def _retention(settings: WorkerSettings) -> Retention:
    """Return what commits trim: not `out`, where only the gate may."""
    out = settings.retain_out if settings.downstream == "trim" else 0
    return Retention(out, settings.retain_met, settings.retain_dlq)


def _gate(store: Store, settings: WorkerSettings, stop: Stop) -> Gate:
    if settings.downstream == "trim":
        return Open()
    return Acknowledged(store, settings.downstream_group, settings.retain_out, stop)


@contextmanager
def refitter(settings: WorkerSettings, stop: Stop | None = None) -> Iterator[Refitter]:
    """Give refits a process of their own where they may take their time, and end it after."""
    if settings.predictor.lag == 0:
        yield InlineRefitter(settings.predictor)
        return
    with ProcessRefitter(settings.predictor, stop=stop) as refits:
        yield refits


@contextmanager
def _leased(
    store: Store, settings: WorkerSettings, url: str, writer: str, stop: Stop
) -> Iterator[Lease]:
    """Hold the lease of the feed within the block."""
    lease = Lease(url, store.keys.lease, writer, settings.lease)
    lease.acquire(stop, settings.wait_redis)
    try:
        yield lease
    finally:
        lease.release()


def _fresh(config: PredictorConfig, refits: Refitter) -> OnlinePredictor:
    refits.reset(None)
    return OnlinePredictor(config, refits)
