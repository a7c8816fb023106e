"""A small feed for tests of faults: its examples, a session on it, and what it answered."""

import json
import time

import numpy as np
from session_steps import answer_batch

from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.refit.inline import InlineRefitter
from workers.config.settings import Limits
from workers.feed.agreement import agreement
from workers.refit.pooled_refitter import PooledRefitter
from workers.session.recovery import Recovery
from workers.session.session import Session
from workers.stop import Stop

CONFIG = PredictorConfig(
    classes=("a", "b"), window=60, refit_every=20, refit_lag=0, metrics_every=10, gamma=0.5
)


COUNT = 240
"""Entries of the feed in most tests."""


def rows(count=COUNT, seed=0):
    """Return the fields of input entries of two noisy classes, one in fifty of them bad."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(count, 3)).round(6)
    y = np.where(X[:, 0] + generator.normal(size=count) > 0, "b", "a")
    texts = ["[1,2]" if i % 50 == 7 else json.dumps(x.tolist()) for i, x in enumerate(X)]
    return [["x", text, "y", str(label)] for text, label in zip(texts, y, strict=True)]


def push(store, entries, first=1):
    """Add entries under the IDs first-0, (first + 1)-0, ..."""
    for i, fields in enumerate(entries):
        store.call("XADD", store.keys.input, f"{first + i}-0", *fields)


def session(store, batch=10, config=CONFIG, stop=None, refits=None, limits=None, **options):
    """Return a session that has taken the feed over."""
    limits, stop = limits or Limits(), stop or Stop()
    refits = refits or InlineRefitter(config)

    def fresh():
        refits.reset(None)
        return OnlinePredictor(config, refits)

    recovery = Recovery(store, agreement(config, limits), limits, fresh, "tester", stop)
    background = refits if isinstance(refits, PooledRefitter) else None
    return Session(store, recovery, limits, batch=batch, refits=background, **options)


def drain(running, count, seconds=150.0):
    """Let a session work until it has answered `count` entries; the first compiles it all."""
    deadline = time.monotonic() + seconds
    while running.position.seq < count:
        assert time.monotonic() < deadline, f"{running.position.seq} of {count} answered"
        answer_batch(running)


def payloads(store):
    """Return ID and payload of every entry of `out` and `met`."""
    return [
        [(entry[0], entry[1][1]) for page in store.pages(key, b"0-0") for entry in page]
        for key in (store.keys.out, store.keys.met)
    ]


def outcome(store):
    """Return all that must not depend on faults: the payloads and the committed position."""
    return payloads(store), store.state().position


def wait_until(is_true, seconds=30.0, why="it took too long"):
    """Wait for something to become true."""
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline, why
        time.sleep(0.005)


def finished(store, count, errors=(), seconds=30.0):
    """Wait until `count` entries are answered and return the outcome."""

    def is_done():
        assert not errors, errors
        state = store.state()
        return state is not None and state.position.seq == count

    wait_until(is_done, seconds, "the feed does not get on")
    return outcome(store)


def saved(store):
    """Return an image of all keys of a server: key, milliseconds left of it, content."""
    keys = sorted(store.call("KEYS", "*"))
    return [(key, max(0, store.call("PTTL", key)), store.call("DUMP", key)) for key in keys]


def restore(store, image):
    """Put a server back to what it was."""
    store.call("FLUSHDB")
    for key, left, content in image:
        store.call("RESTORE", key, left, content)
