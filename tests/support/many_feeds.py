"""Feeds for tests of a process of many: their input, what each gives alone, and such a process."""

import json
import threading
import time
from contextlib import contextmanager, nullcontext

import numpy as np
from session_steps import advance, refitter, shared_pool

from online_svm.refit.inline import InlineRefitter
from workers.config.settings import WorkerSettings
from workers.feed.selection import Selection
from workers.runner import service
from workers.session.assembly import assemble
from workers.stop import Stop

SETTINGS = {
    "classes": ("a", "b"), "window": 60, "refit_every": 20, "refit_lag": 0, "metrics_every": 10,
    "gamma": 0.5, "replay_budget": 50, "lease": 1.0,
}  # fmt: skip
"""Each refit takes effect at once: the answer that follows waits for it."""


def settings(**changed):
    return WorkerSettings(**(SETTINGS | changed))


def entries(count, seed):
    """Return the fields of entries of two noisy classes, one in fifty of them bad."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(count, 3)).round(6)
    y = np.where(X[:, 0] + generator.normal(size=count) > 0, "b", "a")
    texts = ["[1,2]" if i % 50 == 7 else json.dumps(x.tolist()) for i, x in enumerate(X)]
    return [("x", text, "y", str(label)) for text, label in zip(texts, y, strict=True)]


def push(store, fields, first=1):
    """Add entries under the IDs first-0, (first + 1)-0, ..."""
    for i, each in enumerate(fields):
        store.call("XADD", store.keys.input, f"{first + i}-0", *each)


def contents(store):
    """Return the digest, and every entry of the output streams, by stream."""
    keys = store.keys
    streams = {
        key.rpartition(":")[2]: [entry for page in store.pages(key, b"0-0") for entry in page]
        for key in keys.outputs
    }
    return store.state().position, streams


def wait_until(is_true, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.005)


def has_answered(store, count):
    state = store.state()
    return state is not None and state.position.seq >= count


class Running:
    """A process of many feeds, in a thread; with `pool=None` it has refit processes of its own."""

    def __init__(self, patterns, url, **options):
        self.stop = Stop(grace=options.pop("grace", 10.0))
        given = options.pop("settings", None) or settings()
        selection = options.pop("selection", None) or Selection(patterns)
        self.error = None
        options.setdefault("look", 0.1)
        options.setdefault("pool", shared_pool())

        def work():
            try:
                service.run(selection, given, url, self.stop, **options)
            except BaseException as error:
                self.error = error

        self._thread = threading.Thread(target=work, daemon=True)
        self._thread.start()

    def end(self):
        self.stop.request()
        self._thread.join(30.0)
        assert not self._thread.is_alive(), "it did not stop"
        if self.error is not None:
            raise self.error


@contextmanager
def running(patterns, url, **options):
    """Run a process of many feeds within the block."""
    process = Running(patterns, url, **options)
    try:
        yield process
    finally:
        process.end()


def answer_alone(store, count, given, *, inline=False):
    """Let a session of its own answer a feed, as a worker with one feed does.

    With `inline` its refits are computed in this process, whatever the settings say.
    """
    stop = Stop()
    refits = nullcontext(InlineRefitter(given.predictor)) if inline else refitter(given, stop)
    with refits as used:
        session = assemble(store, given, used, stop, "alone")
        while session.position.seq < count:
            advance(session)
            session.finish_commit()
        session.snapshot()
