"""A feed that publishes states, worked step by step in this process."""

import json

import numpy as np
import world
from session_steps import answer_batch

from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from workers.message.encode import encode_block
from workers.session.publisher import Publisher

CONFIG = PredictorConfig(classes=("a", "b"), window=60, refit_every=20, metrics_every=10, gamma=0.5)


def examples(count, seed=0, first=0):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(first + count, 3)).round(6)
    y = np.where(X[:, 0] + generator.normal(size=len(X)) > 0, "b", "a")
    return [(x.tolist(), str(label)) for x, label in zip(X, y, strict=True)][first:]


def push(store, rows):
    store.append(store.keys.input, [(b"*", [b"x", json.dumps(x), b"y", y]) for x, y in rows])


def session(store, every=20, config=CONFIG, batch=10):
    """Return a session that publishes; its clock stands, so nothing is postponed."""
    publisher = Publisher(store, every, clock=lambda: 0.0, pause=0.0)
    return world.session(store, batch, config, publisher=publisher)


def work(running, count):
    """Let a session answer up to `count` entries, and know what became of its publications."""
    world.drain(running, count)
    answer_batch(running)


def predictor_at(rows, n):
    """Return a predictor that learned the first n examples: the worker's own at that n."""
    predictor = OnlinePredictor(CONFIG)
    schema = predictor.schema.of_features(None, len(rows[0][0]))
    X = np.array([x for x, _ in rows[:n]])
    predictor.step_many(X, [y for _, y in rows[:n]], schema=schema)
    return predictor


def own_answer(rows, n, x, id):
    """Return the payload of the worker's own answer to an entry without a label at that n."""
    block = predictor_at(rows, n).step_many(np.array([x]), [None])[0]
    return encode_block(block, [n], [id])[0]
