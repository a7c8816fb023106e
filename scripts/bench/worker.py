"""Examples a second through Redis, against upper bounds and against other programs, in one run.

The engine is measured with refits so far apart (10,000) that they hardly count, then the default
configuration, with one every 250. Of the peers each does a part of a worker's work alone.
"""

import statistics
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Annotated, Any

import numpy as np
import redis
import typer
from river import linear_model, preprocessing

from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.refit.learner import InlineRefitter
from online_svm.refit.task import RefitResult
from scripts.bench import harness
from scripts.bench.harness import WARM_UP, our_worker, timed
from scripts.bench.null import BATCH, GROUP, answer_next
from scripts.bench.report import Result, beside
from scripts.command_line import tell
from workers.broker.store import Store
from workers.config.settings import WorkerSettings
from workers.feed.pinned_config import pinned_config
from workers.feed.position import Position
from workers.feed.state import Commit
from workers.push.sources import Row

REPEATS = 3
_REPORT_EVERY = 100

ENGINE, DEFAULT = "engine", "default"
NULL, BARE, REFITS = "null worker", "reads and commits alone", "one refit after the other"
RIVER: dict[str, Any] = {  # Any: river ships no types
    f"river StandardScaler | {model.__name__}": model
    for model in (linear_model.LogisticRegression, linear_model.PAClassifier)
}
CONFIGURATIONS = {
    ENGINE: WorkerSettings(batch=BATCH, refit_every=10_000),
    "single": WorkerSettings(batch=BATCH, committee="single"),
    DEFAULT: WorkerSettings(batch=BATCH),
}

# More than a batch: one that ends the warm-up and the run at once would be waited for for ever.
Measured = Annotated[int, typer.Option("--examples", min=300, help="Examples that are measured.")]


def run(examples: Measured = 20_000) -> Iterator[Result]:
    """Measure examples a second through Redis against what bounds them, and river in process.

    The engine with rare refits and the default configuration, against a null worker, the reads and
    commits alone, the refits alone, and two of river's classifiers without Redis. All take turns,
    so that other work on the machine falls on all of them; ratios are of median rates.
    """
    rows = harness.stream(WARM_UP + examples)
    with harness.server() as url:
        length = warm_up(url, rows)

        def ours(name: str) -> Callable[[int], float]:
            return lambda i: our_worker(url, f"bench-{name}-{i}", CONFIGURATIONS[name], rows)

        tasks: dict[str, Callable[[int], float]] = {
            NULL: lambda _: null_worker(url, rows, length),
            BARE: lambda _: bare_commits(url, rows, length),
            ENGINE: ours(ENGINE),
            DEFAULT: ours(DEFAULT),
            REFITS: lambda _: _refits_alone(CONFIGURATIONS[DEFAULT].predictor, rows),
            **{name: partial(_river, make, rows) for name, make in RIVER.items()},
        }
        rates = harness.in_turns(tasks, REPEATS)
    median = {name: statistics.median(values) for name, values in rates.items()}
    features = f"{examples:,} examples, {harness.FEATURES} features"
    note = f"{features}, batch {BATCH}, {length} bytes an answer"
    compared = [(ENGINE, NULL), (ENGINE, BARE)]
    for name, peer in [*compared, *((DEFAULT, peer) for peer in (NULL, REFITS, *RIVER))]:
        yield beside(f"{name} / {peer}", median[name], median[peer], note, "/s")


def warm_up(url: str, rows: Sequence[Row]) -> int:
    """Run a worker once, so that all code is loaded; return the mean length of its answers."""
    tell("warm-up")
    feed = "bench-warm-up"
    our_worker(url, feed, CONFIGURATIONS[DEFAULT], rows[: WARM_UP + BATCH])
    with Store(url, feed) as store:
        return harness.answer_bytes(store)


def null_worker(url: str, rows: Sequence[Row], length: int) -> float:
    """Return the examples a second of a worker that only moves messages (`null.answer_next`)."""
    with Store(url, "bench-null") as store, redis.Redis.from_url(url, protocol=2) as client:
        keys = store.keys
        client.delete(keys.input, keys.out)
        harness.push(store, rows)
        client.xgroup_create(keys.input, GROUP, "0")

        def drain(count: int) -> None:
            while store.length(keys.out) < count:
                answer_next(client, keys, b"x" * length)

        drain(WARM_UP)
        left = len(rows) - store.length(keys.out)
        return left / timed(lambda: drain(len(rows)))[0]


def bare_commits(url: str, rows: Sequence[Row], length: int) -> float:
    """Return the examples a second of reads and commits, with payloads that nothing computed.

    The reads, the script, its checks and its arguments are the worker's.
    """
    payload, settings = b"x" * length, CONFIGURATIONS[DEFAULT]
    with Store(url, "bench-bare") as store:
        harness.push(store, rows)
        state = store.fence("bench", pinned_config(settings.predictor, settings.limits))
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
        left = len(rows) - position.seq
        return left / timed(lambda: drain(len(rows)))[0]


def _river(make: Any, rows: Sequence[Row], _: int) -> float:
    """Return the examples a second of river's scaler and a classifier, predict then learn."""
    examples = [(dict(enumerate(row.x)), row.y == "b") for row in rows]
    model = preprocessing.StandardScaler() | make()

    def learn(some: list[tuple[dict[int, Any], bool]]) -> None:
        for x, y in some:
            model.predict_one(x)
            model.learn_one(x, y)

    learn(examples[:WARM_UP])
    return (len(rows) - WARM_UP) / timed(lambda: learn(examples[WARM_UP:]))[0]


def _refits_alone(config: PredictorConfig, rows: Sequence[Row]) -> float:
    """Return the examples a second if refits came one after the other, and all else were free."""
    refitter = _TimedRefitter(config)
    predictor = OnlinePredictor(config, refitter)
    X, labels = np.array([row.x for row in rows]), [row.y for row in rows]
    predictor.step_many(X[:WARM_UP], labels[:WARM_UP])
    refitter.seconds = 0.0
    predictor.step_many(X[WARM_UP:], labels[WARM_UP:])
    return (len(X) - WARM_UP) / refitter.seconds


class _TimedRefitter(InlineRefitter):
    """Refits in this process, by the clock."""

    seconds = 0.0

    def result(self) -> RefitResult:
        seconds, found = timed(super().result)
        self.seconds += seconds
        return found
