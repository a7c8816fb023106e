"""Build what answers one feed from its parts; it imports the predictor, which is slow to load."""

from functools import cache
from typing import Any

import numpy as np
from numba.core import event
from typing_extensions import override

from online_svm.compiled.kernels import Kernel
from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.refit.task import Refitter
from online_svm.svm.kernel_model import KernelModel
from workers.broker.lease import HeldLease
from workers.broker.store import Store
from workers.config.settings import WorkerSettings
from workers.feed.agreement import agreement
from workers.feed.output_retention import DOWNSTREAM
from workers.feed.state import Agreement
from workers.log import Logger
from workers.refit.pooled_refitter import PooledRefitter
from workers.session.downstream import SECONDS, AcknowledgedGate, Gate, OpenGate
from workers.session.feed_session import Observer
from workers.session.pace import OwnPace, Pace
from workers.session.publisher import Publisher
from workers.session.recovery import Recovery
from workers.session.replay import Fetched, none_fetched
from workers.session.session import Session
from workers.session.telemetry import Telemetry
from workers.stop import Stop

log = Logger("online_svm.worker")

_TEXT = "compiling the numerical kernels, once: the first answers wait, for a minute or more"


class _Told(event.Listener):
    """Tells of the first kernel that this process compiles."""

    has_told = False

    @override
    def on_start(self, event: Any) -> None:
        if not self.has_told:
            self.has_told = True
            log.info(_TEXT)

    @override
    def on_end(self, event: Any) -> None:
        """Do nothing: the next line of progress says that it is over."""


@cache
def tell_of_compiling() -> None:
    """From now on tell of the first kernel that is compiled, in a line of the log."""
    event.register("numba:compile", _Told())  # type: ignore[no-untyped-call]  # numba has no types


def load_compiler() -> None:
    """Make numba load what it loads at the first call of compiled code.

    Like an import this creates tens of thousands of objects that stay; see `importing`.
    """
    tell_of_compiling()
    nothing = np.zeros((1, 1))
    KernelModel.build(Kernel("rbf"), nothing, nothing, np.zeros(1)).scores(nothing)


def assemble(
    store: Store,
    settings: WorkerSettings,
    refits: Refitter,
    stop: Stop,
    writer: str,
    lease: HeldLease | None = None,
    observe: Observer | None = None,
    accept_environment: bool = False,
    begins: bool = True,
    telemetry: Telemetry | None = None,
    pace: Pace | None = None,
    ours: Agreement | None = None,
    fetched: Fetched | None = None,
) -> Session:
    """Return a session that has taken over the feed of `store`; see `Session` and `Recovery`.

    With a pace, one that shares its process: it has still to take the feed over, in steps. `ours`
    is the agreement of these settings, where it is known; for `fetched` see `Recovery`.
    """
    told = telemetry or Telemetry()
    config, limits = settings.predictor, settings.limits
    recovery = Recovery(
        store,
        ours or agreement(config, limits),
        limits,
        lambda: _fresh(config, refits),
        writer,
        stop,
        accept_environment,
        told,
        pace or OwnPace(),
        fetched or none_fetched,
    )
    return Session(
        store,
        recovery,
        limits,
        batch=settings.batch,
        snapshot_every=settings.snapshot_every,
        keep_input=settings.keep_input,
        lease=lease,
        observe=observe,
        begins=begins,
        gate=_gate(store, settings, stop, told, seconds=SECONDS if pace is None else 0.0),
        refits=refits if isinstance(refits, PooledRefitter) else None,
        telemetry=told,
        publisher=Publisher(store, settings.publish_every),
        in_steps=pace is not None,
    )


def _gate(
    store: Store, settings: WorkerSettings, stop: Stop, telemetry: Telemetry, seconds: float
) -> Gate:
    if settings.downstream == "trim":
        return OpenGate()
    return AcknowledgedGate(store, DOWNSTREAM, stop, seconds, telemetry)


def _fresh(config: PredictorConfig, refits: Refitter) -> OnlinePredictor:
    refits.reset(None)
    return OnlinePredictor(config, refits)
