"""A feed to measure on: its examples, the server, and a worker that is run through it."""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice

import numpy as np
import orjson
import structlog

from workers.admin.reset import reset
from workers.broker import embedded
from workers.broker.client import TIMEOUT, client
from workers.broker.store import Store
from workers.config.settings import WorkerSettings
from workers.feed.selection import Selection
from workers.refit.pool import RefitPool
from workers.runner import service
from workers.session.answer import Outcome
from workers.session.opening import open_store
from workers.stop import Stop

FEATURES = 20
# Answered before the clock starts: the window is full then, the early refits are over (the last
# is at 5,120), and every process has started.
WARM_UP = 5376
_TOGETHER = 500  # entries of one pipeline

Pairs = list[tuple[list[float], str]]


def stream(entries: int) -> Pairs:
    """Return examples of two overlapping classes, the same ones each time.

    Of 1,400 training examples about 650 become support vectors, as many as the design counts on.
    """
    generator = np.random.default_rng(0)
    codes = generator.integers(0, 2, entries)
    X = (generator.normal(size=(entries, FEATURES)) + 0.5 * codes[:, None]).round(4)
    return list(zip(X.tolist(), np.array(["a", "b"])[codes].tolist(), strict=True))


def fields(example: tuple[list[float], str]) -> tuple[bytes | str, ...]:
    """Return the fields of an input entry.

    Examples
    --------
    >>> fields(([0.5, 1.0], "a"))
    ('x', b'[0.5,1.0]', 'y', 'a')
    """
    x, label = example
    return "x", orjson.dumps(x), "y", label


def send(url: str, entries: Iterable[tuple[str, Sequence[bytes | str]]]) -> None:
    """Add entries, each a stream and its fields, some hundred at a time."""
    sent = iter(entries)
    with client(url, TIMEOUT) as connected:
        while page := list(islice(sent, _TOGETHER)):
            with connected.pipeline(transaction=False) as pipeline:
                for key, row in page:
                    pipeline.execute_command("XADD", key, "*", *row)
                pipeline.execute()


def push(store: Store, examples: Pairs) -> None:
    """Fill the input of a feed that is begun anew."""
    reset(store, with_input=True)
    send(store.url, ((store.keys.input, fields(example)) for example in examples))


def our_worker(
    url: str,
    feed: str,
    settings: WorkerSettings,
    examples: Pairs,
    warm_up: int = WARM_UP,
    at_warm: Callable[[], object] = lambda: None,
    at_end: Callable[[], object] = lambda: None,
    pool: RefitPool | None = None,
) -> float:
    """Return the examples a second of a worker as `online-svm worker` runs it, on a new feed.

    Parameters
    ----------
    url, feed : str
    settings : WorkerSettings
    examples : Pairs
        They wait when the worker begins.
    warm_up : int
        Of them are answered before the clock starts, or a few more: a batch is not cut.
    at_warm, at_end : callable
        Called where the clock starts, and where it ends, between two batches.
    pool : RefitPool, optional
        Computes the refits; by default the worker has one of its own.
    """
    stop, marks = Stop(), list[tuple[int, float]]()
    goals = [warm_up, len(examples)]

    def look(_feed: str, outcome: Outcome) -> None:
        if goals and outcome.after.seq >= goals[0]:
            goals.pop(0)
            (at_warm if goals else at_end)()
            marks.append((outcome.after.seq, time.perf_counter()))
            if not goals:
                stop.request()

    with open_store(feed, settings, url) as store:
        push(store, examples)
    service.run(Selection([feed]), settings, url, stop, observe=look, pool=pool)
    (first, began), (last, ended) = marks
    return (last - first) / (ended - began)


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
