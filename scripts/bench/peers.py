"""Peers of a worker's rate: each does a part of its work, and nothing else."""

import statistics
import time
from typing import Any

import numpy as np
import redis
from river import linear_model, preprocessing

from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.refit.inline import InlineRefitter
from online_svm.refit.task import RefitResult
from scripts.bench.feed import WARM_UP, Pairs, push, rate
from scripts.bench.null import GROUP, answer_next
from workers.broker.store import Store
from workers.config.settings import WorkerSettings
from workers.feed.agreement import agreement
from workers.feed.commit import Commit
from workers.feed.position import Position

_REPORT_EVERY = 100

RIVER: dict[str, Any] = {  # Any: river ships no types
    "LogisticRegression": linear_model.LogisticRegression,
    "PAClassifier": linear_model.PAClassifier,
}


def null_worker(url: str, examples: Pairs, batch: int, length: int) -> float:
    """Return the examples a second of a worker that only moves messages.

    It does what any worker on Redis Streams must do: XREADGROUP, then in one MULTI pipeline of
    redis-py one XADD an example, of a payload as long as ours, and XACK.
    """
    payload = b"x" * length
    with Store(url, "bench-null") as store, redis.Redis.from_url(url, protocol=2) as client:
        keys = store.keys
        client.delete(keys.input, keys.out)
        push(store, examples)
        client.xgroup_create(keys.input, GROUP, "0")

        def drain(count: int) -> None:
            while store.length(keys.out) < count:
                answer_next(client, keys, payload, batch)

        drain(WARM_UP)
        left = len(examples) - store.length(keys.out)
        return rate(left, lambda: drain(len(examples)))


def bare_commits(url: str, settings: WorkerSettings, examples: Pairs, length: int) -> float:
    """Return the examples a second of reads and commits, with payloads that nothing computed.

    The reads, the script, its checks and its arguments are the worker's.
    """
    payload = b"x" * length
    ours = agreement(settings.predictor, settings.limits)
    with Store(url, "bench-bare") as store:
        push(store, examples)
        state = store.fence("bench", ours)
        position = state.position

        def drain(count: int) -> None:
            nonlocal position
            while position.seq < count:
                entries = store.receive_read(store.send_read(position.cursor, settings.batch))
                ids = [entry_id for entry_id, _ in entries]
                seq = position.seq + len(ids)
                after = Position(ids[-1], seq, seq, position.digest)
                reports = [(i, payload) for i in ids[_REPORT_EVERY - 1 :: _REPORT_EVERY]]
                out = [payload] * len(ids)
                store.commit(Commit(state.epoch, position, after, ids, out, reports))
                position = after

        drain(WARM_UP)
        left = len(examples) - position.seq
        return rate(left, lambda: drain(len(examples)))


def river_in_process(name: str, examples: Pairs) -> float:
    """Return the examples a second of river's scaler and a classifier, predict then learn."""
    rows = [(dict(enumerate(x)), label == "b") for x, label in examples]
    model = preprocessing.StandardScaler() | RIVER[name]()

    def learn(some: list[tuple[dict[int, float], bool]]) -> None:
        for x, y in some:
            model.predict_one(x)
            model.learn_one(x, y)

    learn(rows[:WARM_UP])
    return rate(len(rows) - WARM_UP, lambda: learn(rows[WARM_UP:]))


def refits_alone(config: PredictorConfig, examples: Pairs) -> float:
    """Return the examples a second if refits came one after the other, and all else were free."""
    refitter = _Timed(config)
    predictor = OnlinePredictor(config, refitter)
    X, labels = np.array([x for x, _ in examples]), [label for _, label in examples]
    predictor.step_many(X[:WARM_UP], labels[:WARM_UP])
    refitter.seconds.clear()
    predictor.step_many(X[WARM_UP:], labels[WARM_UP:])
    return config.refit_every / statistics.fmean(refitter.seconds)


class _Timed(InlineRefitter):
    """Refits in this process, by the clock."""

    def __init__(self, config: PredictorConfig) -> None:
        super().__init__(config)
        self.seconds: list[float] = []

    def result(self) -> RefitResult:
        began = time.perf_counter()
        found = super().result()
        self.seconds.append(time.perf_counter() - began)
        return found
