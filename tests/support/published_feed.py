"""A feed that publishes states, worked step by step in this process."""

import json

import numpy as np
from session_steps import answer_batch

from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from workers.config.settings import Limits
from workers.feed.agreement import agreement
from workers.feed.position import Position
from workers.message.encode import encode_block
from workers.session.publisher import Publisher
from workers.session.recovery import Recovery
from workers.session.session import Session
from workers.stop import Stop

CONFIG = PredictorConfig(classes=("a", "b"), window=60, refit_every=20, metrics_every=10, gamma=0.5)


def examples(count, seed=0, first=0):
    """Return examples of two noisy classes."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(first + count, 3)).round(6)
    y = np.where(X[:, 0] + generator.normal(size=len(X)) > 0, "b", "a")
    return [(x.tolist(), str(label)) for x, label in zip(X, y, strict=True)][first:]


def push(store, rows):
    """Push examples, each as an entry."""
    store.append(store.keys.input, [(b"*", [b"x", json.dumps(x), b"y", y]) for x, y in rows])


def session(store, every=20, config=CONFIG, batch=10, **options):
    """Return a session that publishes; its clock stands, so nothing is postponed."""
    limits, stop = Limits(), Stop()
    recovery = Recovery(
        store, agreement(config, limits), limits, lambda: OnlinePredictor(config), "tester", stop
    )
    made = Publisher(store, every, clock=lambda: 0.0, pause=0.0, **options)
    return Session(store, recovery, limits, batch=batch, publisher=made)


def work(running, count):
    """Let a session answer up to `count` entries, and know what became of its publications."""
    while running.position.seq < count:
        answer_batch(running)
    answer_batch(running)


def predictor_at(rows, n, config=CONFIG):
    """Return a predictor that learned the first n examples: the worker's own at that n."""
    predictor = OnlinePredictor(config)
    schema = predictor.schema.of_features(None, len(rows[0][0]))
    X = np.array([x for x, _ in rows[:n]])
    predictor.step_many(X, [y for _, y in rows[:n]], schema=schema)
    return predictor


def own_answer(rows, n, x, id, config=CONFIG):
    """Return the payload of the worker's own answer to an entry without a label at that n."""
    block = predictor_at(rows, n, config).step_many(np.array([x]), [None])[0]
    return encode_block(block, [n], [id])[0]


def position(store):
    """Return the committed position."""
    found = store.state()
    return Position() if found is None else found.position
