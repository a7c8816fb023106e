"""Let a session work step by step, as the loop of a worker does; and refits for it."""

import atexit
import functools
import time
from contextlib import contextmanager, suppress

from online_svm.refit.inline import InlineRefitter
from workers.errors import Stopped
from workers.refit.pool import RefitPool


def advance(session):
    """Do one step: take a refit that is due, answer a batch, or confirm the last one."""
    if not session.may_answer():
        return
    if session.has_to_take_refit:
        session.take_refit()
    session.input.hand_in((), may_be_more=True)
    predictor = session._predictor
    most = predictor.until_wait if predictor.is_refitting else 0
    entries = session.next_now(most or 1 << 20)
    if entries:
        session.answer(entries)
    else:
        session.finish_commit()
        session.idle()


def answer_batch(session):
    """Answer one batch and wait for its commit; the session may have read ahead."""
    advance(session)
    session.finish_commit()


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
    """Yield the refits of a feed: in a pool, unless they take effect at once and nobody looks."""
    if settings.predictor.lag == 0 and telemetry is None:
        yield InlineRefitter(settings.predictor)
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

    def __init__(self, config, patience=60.0, stop=None, observer=None):
        self.pool = RefitPool(1, stop, patience=patience)
        self.refits = self.pool.refitter(config, observer)

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
