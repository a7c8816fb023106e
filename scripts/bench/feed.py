"""A feed to measure on: its examples, the server, and how an engine is run through it."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import orjson
import redis
import structlog

from online_svm.refit.task import Refitter
from workers.broker import embedded
from workers.broker.store import Store
from workers.config.settings import WorkerSettings
from workers.engine.assembly import assemble, refitter
from workers.engine.loop import Engine
from workers.engine.service import open_store
from workers.stop import Stop

FEATURES = 20
# Answered before the clock starts: the window is full then, the early refits are over (the last
# is at 5,120), and every process has started.
WARM_UP = 5376
_PUSH = 1000

Pairs = list[tuple[list[float], str]]


def stream(entries: int) -> Pairs:
    """Return examples of two overlapping classes, the same ones each time.

    Of 1,400 training examples about 650 become support vectors, as many as the design counts on.
    """
    generator = np.random.default_rng(0)
    codes = generator.integers(0, 2, entries)
    X = (generator.normal(size=(entries, FEATURES)) + 0.5 * codes[:, None]).round(4)
    return list(zip(X.tolist(), np.array(["a", "b"])[codes].tolist(), strict=True))


def push(store: Store, examples: Pairs) -> None:
    """Fill the input of a feed that is begun anew."""
    keys = store.keys
    store.call("DEL", keys.input, *keys.outputs, keys.state)
    with redis.Redis.from_url(store.url) as client:
        for begin in range(0, len(examples), _PUSH):
            with client.pipeline(transaction=False) as pipeline:
                for x, label in examples[begin : begin + _PUSH]:
                    pipeline.xadd(keys.input, {"x": orjson.dumps(x), "y": label})
                pipeline.execute()


class WarmWorker(NamedTuple):
    """A worker that has answered the first `WARM_UP` entries of its feed, and its parts."""

    engine: Engine
    store: Store
    refits: Refitter
    entries: int

    def answer(self) -> float:
        """Answer the rest of the feed, and return the examples a second."""
        left = self.entries - self.engine.position.seq
        return rate(left, lambda: _drain(self.engine, self.entries))


@contextmanager
def warm_worker(
    url: str, feed: str, settings: WorkerSettings, examples: Pairs, warm_up: int = WARM_UP
) -> Iterator[WarmWorker]:
    """Yield a worker as `online-svm worker` runs it, on a new feed of these examples.

    It has answered the first `warm_up` of them.
    """
    stop = Stop()
    with open_store(feed, settings, url, stop) as store, refitter(settings) as refits:
        push(store, examples)
        engine = assemble(store, settings, refits, stop, "bench")
        _drain(engine, warm_up)
        yield WarmWorker(engine, store, refits, len(examples))


def our_worker(url: str, feed: str, settings: WorkerSettings, examples: Pairs) -> float:
    """Return the examples a second of a worker as `online-svm worker` runs it."""
    with warm_worker(url, feed, settings, examples) as warm:
        return warm.answer()


def _drain(engine: Engine, count: int) -> None:
    while engine.position.seq < count:
        engine.advance()


def rate(count: int, work: Callable[[], None]) -> float:
    """Return how often a second `work` does what it does `count` times."""
    began = time.perf_counter()
    work()
    return count / (time.perf_counter() - began)


@contextmanager
def quiet() -> Iterator[None]:
    """Leave out the workers' log lines below warnings."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    try:
        yield
    finally:
        structlog.configure(**before)


@contextmanager
def server(url: str | None) -> Iterator[str]:
    """Give a Redis: this one, or an embedded one that is thrown away."""
    if url is not None:
        yield url
        return
    with embedded.temporary() as made:
        yield made.url
