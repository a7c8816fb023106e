"""Examples a second through Redis, beside what bounds them and what others do; one run.

The engine is measured with refits so far apart (10,000) that they hardly count, then the default
configuration, with one every 250. Of the peers each does a part of a worker's work alone.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated, Any

import numpy as np
import redis
import typer
from river import linear_model, preprocessing

from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.refit.inline import InlineRefitter
from online_svm.refit.task import RefitResult
from scripts.bench.feed import (
    FEATURES,
    WARM_UP,
    Pairs,
    answer_bytes,
    our_worker,
    push,
    server,
    stream,
    timed,
)
from scripts.bench.null import GROUP, answer_next
from scripts.bench.report import Result, beside
from scripts.command_line import tell
from workers.broker.store import Store
from workers.config.settings import WorkerSettings
from workers.feed.agreement import agreement
from workers.feed.commit import Commit
from workers.feed.position import Position

BATCH = 256
REPEATS = 3
ENGINE_REFIT_EVERY = 10_000
_REPORT_EVERY = 100

ENGINE, DEFAULT = "engine", "default"
NULL, BARE, REFITS = "null worker", "reads and commits alone", "one refit after the other"
RIVER: dict[str, Any] = {  # Any: river ships no types
    f"river StandardScaler | {model.__name__}": model
    for model in (linear_model.LogisticRegression, linear_model.PAClassifier)
}

# More than a batch: one that ends the warm-up and the run at once would be waited for for ever.
Measured = Annotated[int, typer.Option("--examples", min=300, help="Examples that are measured.")]


def run(examples: Measured = 20_000) -> Iterator[Result]:
    """Measure examples a second through Redis against what bounds them, and river in process.

    The engine with rare refits and the default configuration, against a null worker, the reads and
    commits alone, the refits alone, and two of river's classifiers without Redis. All take turns,
    so that other work on the machine falls on all of them; ratios are of median rates.
    """
    pairs = stream(WARM_UP + examples)
    default = WorkerSettings(batch=BATCH)
    engine = WorkerSettings(batch=BATCH, refit_every=ENGINE_REFIT_EVERY)
    with server() as url:
        tell("warm-up")
        our_worker(url, "bench-warm-up", default, pairs[: WARM_UP + BATCH])  # compiles everything
        with Store(url, "bench-warm-up") as store:
            length = answer_bytes(store)
        tasks: dict[str, Callable[[int], float]] = {
            NULL: lambda _: null_worker(url, pairs, length),
            BARE: lambda _: bare_commits(url, pairs, length),
            ENGINE: lambda i: our_worker(url, f"bench-engine-{i}", engine, pairs),
            DEFAULT: lambda i: our_worker(url, f"bench-default-{i}", default, pairs),
            REFITS: lambda _: _refits_alone(default.predictor, pairs),
        }
        for name, make in RIVER.items():
            tasks[name] = partial(_river, make, pairs)
        rates: dict[str, list[float]] = {name: [] for name in tasks}
        for repeat in range(REPEATS):
            for name, task in tasks.items():
                tell(f"round {repeat + 1} of {REPEATS}: {name}")
                rates[name].append(task(repeat))
    median = {name: statistics.median(values) for name, values in rates.items()}
    note = f"{examples:,} examples, {FEATURES} features, batch {BATCH}, {length} bytes an answer"
    compared = [(ENGINE, NULL), (ENGINE, BARE)]
    for ours, peer in [*compared, *((DEFAULT, peer) for peer in (NULL, REFITS, *RIVER))]:
        yield beside(f"{ours} / {peer}", median[ours], median[peer], note, "/s")


def _rate(count: int, work: Callable[[], None]) -> float:
    return count / timed(work)[0]


def null_worker(url: str, examples: Pairs, length: int) -> float:
    """Return the examples a second of a worker that only moves messages (`null.answer_next`)."""
    with Store(url, "bench-null") as store, redis.Redis.from_url(url, protocol=2) as client:
        keys = store.keys
        client.delete(keys.input, keys.out)
        push(store, examples)
        client.xgroup_create(keys.input, GROUP, "0")

        def drain(count: int) -> None:
            while store.length(keys.out) < count:
                answer_next(client, keys, b"x" * length, BATCH)

        drain(WARM_UP)
        left = len(examples) - store.length(keys.out)
        return _rate(left, lambda: drain(len(examples)))


def bare_commits(url: str, examples: Pairs, length: int) -> float:
    """Return the examples a second of reads and commits, with payloads that nothing computed.

    The reads, the script, its checks and its arguments are the worker's.
    """
    payload, settings = b"x" * length, WorkerSettings(batch=BATCH)
    with Store(url, "bench-bare") as store:
        push(store, examples)
        state = store.fence("bench", agreement(settings.predictor, settings.limits))
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
        return _rate(left, lambda: drain(len(examples)))


def _river(make: Any, examples: Pairs, _: int) -> float:
    """Return the examples a second of river's scaler and a classifier, predict then learn."""
    rows = [(dict(enumerate(x)), label == "b") for x, label in examples]
    model = preprocessing.StandardScaler() | make()

    def learn(some: list[tuple[dict[int, float], bool]]) -> None:
        for x, y in some:
            model.predict_one(x)
            model.learn_one(x, y)

    learn(rows[:WARM_UP])
    return _rate(len(rows) - WARM_UP, lambda: learn(rows[WARM_UP:]))


def _refits_alone(config: PredictorConfig, examples: Pairs) -> float:
    """Return the examples a second if refits came one after the other, and all else were free."""
    refitter = _TimedRefitter(config)
    predictor = OnlinePredictor(config, refitter)
    X, labels = np.array([x for x, _ in examples]), [label for _, label in examples]
    predictor.step_many(X[:WARM_UP], labels[:WARM_UP])
    refitter.seconds.clear()
    predictor.step_many(X[WARM_UP:], labels[WARM_UP:])
    return (len(X) - WARM_UP) / sum(refitter.seconds)


class _TimedRefitter(InlineRefitter):
    """Refits in this process, by the clock."""

    def __init__(self, config: PredictorConfig) -> None:
        super().__init__(config)
        self.seconds: list[float] = []

    def result(self) -> RefitResult:
        began = time.perf_counter()
        found = super().result()
        self.seconds.append(time.perf_counter() - began)
        return found
