"""Examples a second through Redis: this worker, a null worker, and river in process; one run.

The null worker does what any worker on Redis Streams must do and nothing else: XREADGROUP, then in
one MULTI pipeline of redis-py one XADD an example, of a payload as long as ours, and XACK.
"""

import logging
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import orjson
import redis
import structlog
from river import linear_model, preprocessing

from workers import embedded
from workers.bench.report import Row
from workers.engine import Engine
from workers.service import assemble, open_store, refitter
from workers.settings import WorkerSettings
from workers.stopping import Stop
from workers.store import Store

FEATURES = 20
ENTRIES = 20_000
REPEATS = 3
# Answered before the clock starts: the window is full then, and every process has started.
WARM_UP = 2560
_PUSH = 1000

Pairs = list[tuple[list[float], str]]


def run(
    url: str | None = None, entries: int = ENTRIES, batch: int = 256, repeats: int = REPEATS
) -> list[Row]:
    """Measure, print and return the ratios of median rates, the default configuration's.

    The three take turns, so that other work on the machine falls on all of them.

    Parameters
    ----------
    url : str, optional
        Redis to use; default an embedded one that is thrown away. Keys of feeds named "bench..."
        and "osvm:{bench-null}:..." are written.
    entries : int
        Examples of 20 features and two classes on which the rates are measured; they are pushed
        before the clock starts, and `WARM_UP` more are answered.
    batch : int
        Entries read at once by either worker.
    repeats : int
    """
    settings = WorkerSettings(batch=batch)
    examples = stream(WARM_UP + entries)
    with _quiet(), _server(url) as where:
        length = _warm_up(where, settings, examples)
        rates: dict[str, list[float]] = {"ours": [], "null": [], "river": []}
        for repeat in range(repeats):
            rates["null"].append(null_worker(where, examples, batch, length))
            rates["ours"].append(our_worker(where, f"bench-{repeat}", settings, examples))
            rates["river"].append(river_in_process(examples))
    median = {name: statistics.median(values) for name, values in rates.items()}
    peers = {"null": f"null worker, batch {batch}", "river": "river StandardScaler | PAClassifier"}
    rows = [
        Row(f"worker / {peers[name]}", median["ours"], median[name], unit="/s") for name in peers
    ]
    print(f"{entries:,} examples, {FEATURES} features, payloads of {length} bytes, {repeats} runs")
    for row in rows:
        print(row)
    return rows


def stream(entries: int) -> Pairs:
    """Return examples of two overlapping classes, the same ones each time.

    Of 1,400 training examples about 650 become support vectors, as many as the design counts on.
    """
    generator = np.random.default_rng(0)
    codes = generator.integers(0, 2, entries)
    X = (generator.normal(size=(entries, FEATURES)) + 0.5 * codes[:, None]).round(4)
    return list(zip(X.tolist(), np.array(["a", "b"])[codes].tolist(), strict=True))


def our_worker(url: str, feed: str, settings: WorkerSettings, examples: Pairs) -> float:
    """Return the examples a second of a worker as `online-svm worker` runs it."""
    stop = Stop()
    with open_store(feed, settings, url, stop) as store, refitter(settings) as refits:
        _push(store, examples)
        engine = assemble(store, settings, refits, stop, "bench")
        _drain(engine, WARM_UP)
        left = len(examples) - engine.position.seq
        return _rate(left, lambda: _drain(engine, len(examples)))


def null_worker(url: str, examples: Pairs, batch: int, length: int) -> float:
    """Return the examples a second of a worker that only moves messages."""
    payload = b"x" * length
    with Store(url, "bench-null") as store, redis.Redis.from_url(url, protocol=2) as client:
        keys = store.keys
        client.delete(keys.input, keys.out)
        _push(store, examples)
        client.xgroup_create(keys.input, "null", "0")

        def drain(count: int) -> None:
            while store.length(keys.out) < count:
                _null_batch(client, keys.input, keys.out, batch, payload)

        drain(WARM_UP)
        left = len(examples) - store.length(keys.out)
        return _rate(left, lambda: drain(len(examples)))


def _null_batch(client: redis.Redis, source: str, target: str, batch: int, payload: bytes) -> None:
    # Any: redis-py declares every shape that any reply of any protocol may have.
    reply: Any = client.xreadgroup("null", "one", {source: ">"}, count=batch)
    entries = reply[0][1]
    with client.pipeline(transaction=True) as pipeline:
        for entry_id, _ in entries:
            pipeline.xadd(target, {"p": payload}, id=entry_id)
        pipeline.xack(source, "null", *(entry_id for entry_id, _ in entries))
        pipeline.execute()


def river_in_process(examples: Pairs) -> float:
    """Return the examples a second of river's scaler and classifier, predict then learn."""
    rows = [(dict(enumerate(x)), label == "b") for x, label in examples]
    model = preprocessing.StandardScaler() | linear_model.PAClassifier()  # type: ignore[no-untyped-call]  # river's

    def learn(some: list[tuple[dict[int, float], bool]]) -> None:
        for x, y in some:
            model.predict_one(x)
            model.learn_one(x, y)

    learn(rows[:WARM_UP])
    return _rate(len(rows) - WARM_UP, lambda: learn(rows[WARM_UP:]))


def _warm_up(url: str, settings: WorkerSettings, examples: Pairs) -> int:
    """Compile everything, and return the mean length of our payloads."""
    our_worker(url, "bench-warm-up", settings, examples[: WARM_UP + settings.batch])
    with Store(url, "bench-warm-up") as store:
        newest = store.call("XREVRANGE", store.keys.out, "+", "-", "COUNT", 1000)
    return round(statistics.fmean(len(entry[1][1]) for entry in newest))


def _push(store: Store, examples: Pairs) -> None:
    """Fill the input of a feed that is begun anew."""
    keys = store.keys
    store.call("DEL", keys.input, keys.out, keys.met, keys.dlq, keys.state)
    with redis.Redis.from_url(store.url) as client:
        for begin in range(0, len(examples), _PUSH):
            with client.pipeline(transaction=False) as pipeline:
                for x, label in examples[begin : begin + _PUSH]:
                    pipeline.xadd(keys.input, {"x": orjson.dumps(x), "y": label})
                pipeline.execute()


def _drain(engine: Engine, count: int) -> None:
    while engine.position.seq < count:
        engine.turn()


def _rate(count: int, work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return count / (time.perf_counter() - began)


@contextmanager
def _quiet() -> Iterator[None]:
    """Leave out the workers' log lines below warnings."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    try:
        yield
    finally:
        structlog.configure(**before)


@contextmanager
def _server(url: str | None) -> Iterator[str]:
    if url is not None:
        yield url
        return
    with embedded.temporary() as server:
        yield server.url
