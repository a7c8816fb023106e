"""Feeds to measure on: their examples, a server, and a worker that is run through them."""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TypeVar

import numpy as np
import orjson
import structlog

from workers.admin.reset import reset
from workers.broker import embedded
from workers.broker.client import TIMEOUT, client
from workers.broker.store import Store
from workers.config.settings import WorkerSettings
from workers.feed.selection import Selection
from workers.push.sources import Row
from workers.refit.pool import RefitPool
from workers.runner import service
from workers.session.answer import Outcome
from workers.session.opening import open_store
from workers.stop import Stop

FEATURES = 20
# Answered before the clock starts: the window is full then, the early refits are over (the last
# is at 5,120), and every process has started.
WARM_UP = 5376
PERIOD = 200_000
"""Examples in which the direction that separates the drifting classes goes round once."""

_DISTANCE = 2.2  # between the drifting means: about 650 support vectors of 1,400
_CHUNK = 1000
_TOGETHER = 500  # entries of one pipeline

Pairs = list[tuple[list[float], str]]
Value = TypeVar("Value")


def stream(entries: int) -> Pairs:
    """Return examples of two overlapping classes, the same ones each time.

    Of 1,400 training examples about 650 become support vectors, as many as the design counts on.
    """
    generator = np.random.default_rng(0)
    codes = generator.integers(0, 2, entries)
    X = (generator.normal(size=(entries, FEATURES)) + 0.5 * codes[:, None]).round(4)
    return list(zip(X.tolist(), np.array(["a", "b"])[codes].tolist(), strict=True))


def drifting(entries: int) -> Iterator[Row]:
    """Yield examples of two overlapping normal classes, the same ones each time.

    The direction between the means turns in a plane, and their centre goes along another axis and
    back: what was learned a period ago is wrong now, but a fresh model is as good as any before,
    so time and memory of a worker have no reason of their own to change.

    Examples
    --------
    >>> rows = list(drifting(3))
    >>> len(rows), len(rows[0].x), {row.y for row in rows} <= {"a", "b"}
    (3, 20, True)
    """
    generator = np.random.default_rng(0)
    for begin in range(0, entries, _CHUNK):
        angle = 2.0 * np.pi * np.arange(begin, min(begin + _CHUNK, entries)) / PERIOD
        codes = generator.integers(0, 2, len(angle))
        side = _DISTANCE * (codes - 0.5)
        X = generator.normal(size=(len(angle), FEATURES))
        X[:, :3] += np.column_stack([side * np.cos(angle), side * np.sin(angle), np.sin(angle)])
        for x, code in zip(X.round(4).tolist(), codes.tolist(), strict=True):
            yield Row(x, "ab"[code])


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
    at_warm: Callable[[], object] = lambda: None,
    at_end: Callable[[], object] = lambda: None,
    pool: RefitPool | None = None,
) -> float:
    """Return the examples a second of a worker as `online-svm worker` runs it, on a new feed.

    The examples wait when it begins. `WARM_UP` of them are answered before the clock starts, or a
    few more: a batch is not cut. `at_warm` and `at_end` are called where it starts and ends.
    """
    stop, marks = Stop(), list[tuple[int, float]]()
    goals = [WARM_UP, len(examples)]

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


def answer_bytes(store: Store) -> int:
    """Return the mean length of the newest answers."""
    newest = store.call("XREVRANGE", store.keys.out, "+", "-", "COUNT", 1000)
    return round(sum(len(entry[1][1]) for entry in newest) / len(newest))


def timed(work: Callable[[], Value]) -> tuple[float, Value]:
    """Return the seconds that work takes, and what it returns.

    Examples
    --------
    >>> timed(lambda: "done")[1]
    'done'
    """
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


@contextmanager
def server() -> Iterator[str]:
    """Give an embedded Redis that is thrown away; workers here log nothing below warnings."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    try:
        with embedded.temporary() as made:
            yield made.url
    finally:
        structlog.configure(**before)
