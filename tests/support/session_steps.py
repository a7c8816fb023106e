"""Let a session work step by step, as the loop of a worker does; and refits for it."""

import atexit
import functools
import math
import time
from contextlib import contextmanager, suppress

from online_svm.refit.learner import InlineRefitter
from workers.errors import Stopped
from workers.feed.pinned_config import pinned_config
from workers.refit.pool import RefitPool
from workers.session.flow import Pace
from workers.session.recovery import Recovery
from workers.session.session import assemble
from workers.stop import Stop


class InlineRefits(InlineRefitter):
    """Refits that are computed here, when their result is asked for."""

    is_busy = is_deferring = False

    def begin(self):
        pass

    def pop_finished(self):
        return []


class Patient(Pace):
    """Waits for refits in place, so that no test depends on their speed."""

    def room(self, _predictor):
        return self.slice

    def waits(self, _predictor):
        return False

    def may_snapshot(self, _predictor):
        return True


def taken_over(session):
    while not session.recover_step():
        pass
    return session


def recovery(store, config, limits, refits=None, stop=None, slice=1 << 20, **options):
    """Return what takes a feed over; see `Recovery` for the other options.

    A replay leaves no snapshots, whose number would depend on the speed of the machine.
    """
    pace = Patient(refits or InlineRefits(config), slice)
    given = {"writer": "tester", "stop": stop or Stop(), "replay_snapshot_seconds": math.inf}
    given |= options
    return Recovery(store, pinned_config(config, limits), config, limits, pace, **given)


def assembled(store, settings, refits, stop=None, may_create=True, **options):
    """Return a session, as a worker makes it, that has taken its feed over."""
    taking = recovery(
        store, settings.predictor, settings.limits, refits, stop,
        retention=settings.retention, may_create=may_create, **options,
    )  # fmt: skip
    return taken_over(assemble(taking, settings))


def advance(session):
    """Do one step: take a refit that is due, answer a batch, or confirm the last one."""
    taken_over(session)
    if not session.may_answer():
        return
    if session.needs_refit:
        session.take_refit()
    session.input.put((), may_be_more=True)
    predictor = session._predictor
    most = predictor.until_wait if predictor.is_refitting else 0
    entries = session.next_now(most or 1 << 20)
    if entries:
        session.answer(entries)
    else:
        session.finish_commit()
        taken_over(session).idle()
    taken_over(session)


def answer_batch(session):
    """Answer one batch and wait for its commit; the session may have read ahead."""
    advance(session)
    session.finish_commit()
    taken_over(session)


def run(session, stop):
    """Let a session work until a stop is requested, then leave a snapshot where it can."""
    with suppress(Stopped):
        while not stop.requested:
            before = session.position
            advance(session)
            if session.position == before:
                time.sleep(0.001)
        session.snapshot()


@contextmanager
def refitter(settings, stop=None, telemetry=None):
    """Yield the refits of a feed: inline if they take effect at once and have no telemetry."""
    if settings.predictor.lag == 0 and telemetry is None:
        yield InlineRefits(settings.predictor)
        return
    with shared_pool().refitter(settings.predictor, telemetry, stop) as refits:
        yield refits


@functools.cache
def shared_pool():
    """Return a pool of refits for all tests of this process: its own would take a second each."""
    pool = RefitPool(processes=1)
    atexit.register(pool.close)
    return pool


class OwnRefits:
    """Refits in a process of their own, until it is closed."""

    def __init__(self, config, timeout=60.0, stop=None):
        self.pool = RefitPool(1, stop, timeout=timeout)
        self.refits = self.pool.refitter(config)

    def __enter__(self):
        return self.refits

    def __exit__(self, *_):
        self.close()

    @property
    def pid(self):
        return self.pool.pids[0] if self.pool.pids else None

    def close(self):
        self.refits.close()
        self.pool.close()
