"""A small feed with a worker in this process, for tests of what is measured of it."""

import json
from contextlib import contextmanager

import numpy as np
from session_steps import answer_batch, refitter

from workers.config.settings import WorkerSettings
from workers.session.assembly import assemble
from workers.stop import Stop

COUNT = 120

SETTINGS = {
    "classes": ("a", "b"),
    "window": 60,
    "refit_every": 20,
    "refit_lag": 0,
    "metrics_every": 10,
    "committee": "single",
    "replay_budget": 50,
}


def push(store, count=COUNT, first=1, milliseconds=None):
    """Fill a feed; every twentieth entry is rejected."""
    generator = np.random.default_rng(first)
    X = generator.normal(size=(count, 3)).round(6)
    for i, x in enumerate(X):
        text = "[1,2]" if i % 20 == 7 else json.dumps(x.tolist())
        name = f"{milliseconds}-{first + i}" if milliseconds else f"{first + i}-0"
        store.call("XADD", store.keys.input, name, "x", text, "y", "b" if x[0] > 0 else "a")


@contextmanager
def working(store, telemetry, stop=None, **settings):
    """Yield a session that has taken over the feed."""
    chosen, stop = WorkerSettings(**(SETTINGS | settings)), stop or Stop()
    with refitter(chosen, stop, telemetry) as refits:
        yield assemble(store, chosen, refits, stop, "test", telemetry=telemetry)


def work(store, telemetry, upto=COUNT, leaves_snapshot=True, **settings):
    """Answer a feed; return the digest."""
    with working(store, telemetry, **settings) as session:
        while session.position.seq < upto:
            answer_batch(session)
        if leaves_snapshot:
            session.snapshot()
        return session.position.digest
