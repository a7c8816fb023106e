"""Answers a second of one, two and four `online-svm scorer` commands against the null worker.

Requests are pushed while the scorers are held (SIGSTOP); the clock begins when they go on, and ends
when no request is left. So what is measured is scorers and Redis alone, on the same processors.
"""

import os
import signal
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from typing import Annotated

import numpy as np
import orjson
import redis
import typer

from scripts.bench import harness
from scripts.bench.harness import WARM_UP, Measured
from scripts.bench.latency import Client
from scripts.bench.null import BATCH, GROUP, answer_next
from scripts.bench.report import Result, beside
from scripts.command_line import tell
from workers.broker.store import Store
from workers.push.ingest import entry
from workers.push.sources import Row
from workers.scorer.asker import Asker

COUNTS = (1, 2, 4)
FIGURES = ("rate", "of_scorers", "of_redis")
"""Answers a second; seconds of processor time an answer, of the processes that answer and of Redis.
"""

_FEED = "bench-scorers"
_ASKED_SINGLY = 500
_PUSH = 1000
_LOOK_SECONDS = 0.002
_LEARN_SECONDS = 600.0  # for the examples before the first request, on a busy machine


def run(
    requests: Annotated[int, typer.Option(min=1000, help="Requests that are measured.")] = 20_000,
    repeats: Annotated[int, typer.Option(min=1, help="Runs of each.")] = 3,
) -> Iterator[Result]:
    """Compare one, two and four scorers with a worker that only moves messages."""
    examples = harness.stream(WARM_UP + requests)
    rows = examples[WARM_UP:]
    with harness.server() as url:
        tell("a worker learns and publishes")
        length = _publish(url, examples[:WARM_UP])
        tasks: dict[str, Callable[[int], list[float]]] = {
            "null worker, no scorers": lambda _: _null(url, rows, length),
            **{f"{count} scorers": partial(_scored, url, rows, count) for count in COUNTS},
        }
        runs = harness.in_turns(tasks, repeats).values()
        null, *ours = [np.median(found, axis=0).tolist() for found in runs]
        for count, found in zip(COUNTS, ours, strict=True):
            yield result(count, found, null)
        tell("one request at a time")
        yield _singly(url, rows, length)


def result(scorers: int, ours: list[float], null: list[float]) -> Result:
    """Compare scorers with the null worker, each by its `FIGURES`."""
    name = f"{scorers} scorer{'s' * (scorers > 1)} / null worker"
    rates = f"{ours[0]:>9,.0f}/s {null[0]:>9,.0f}/s {ours[0] / null[0]:>6.2f}"
    times = "; ".join(
        f"{1e6 * own:.1f} + {1e6 * of_redis:.1f} of Redis" for _, own, of_redis in (ours, null)
    )
    had = f"{ours[0] * (ours[1] + ours[2]):.2f} of {os.cpu_count()} processors"
    line = f"{name:<26}{rates}   microseconds an answer: {times}; {had}"
    both = {
        of: dict(zip(FIGURES, found, strict=True)) for of, found in (("ours", ours), ("null", null))
    }
    return Result({"scorers": scorers, **both, "ratio": ours[0] / null[0]}, [line])


def _publish(url: str, examples: Sequence[Row]) -> int:
    """Learn examples and publish the state; return the mean length of an answer."""
    worker = harness.worker(_FEED, url, ("--publish-every", "100"))
    with Store(url, _FEED) as store:
        harness.push(store, examples)
        store.call("DEL", store.keys.requests)

        def is_published() -> bool:
            found = store.publication()
            return found is not None and found.n >= len(examples) - 500

        with harness.python(*worker) as process:
            process.wait_until(is_published, _LEARN_SECONDS)
        return harness.answer_bytes(store)


def _scored(url: str, rows: Sequence[Row], count: int, _: int) -> list[float]:
    """Let so many scorers answer requests that wait."""
    with Store(url, _FEED) as store, ExitStack() as opened:
        scorers = [opened.enter_context(_scorer(url)) for _ in range(count)]
        _warm(store, scorers, rows[:_PUSH])
        for one in scorers:
            one.process.send_signal(signal.SIGSTOP)
        _push(store, rows)

        def go_on() -> None:
            for one in scorers:
                one.process.send_signal(signal.SIGCONT)
            _wait(store, scorers)

        def used() -> float:
            return sum(harness.seconds_of(one.pid) for one in scorers)

        return _figures(store, len(rows), used, go_on)


def _null(url: str, rows: Sequence[Row], length: int) -> list[float]:
    """Let the null worker, in this process, answer entries that wait."""
    with Store(url, "bench-null") as store, redis.Redis.from_url(url, protocol=2) as client:
        harness.push(store, rows)
        client.xgroup_create(store.keys.input, GROUP, "0")

        def drain() -> None:
            while answer_next(client, store.keys, b"x" * length):
                pass

        return _figures(store, len(rows), time.process_time, drain)


def _figures(
    store: Store, count: int, seconds: Callable[[], float], work: Callable[[], None]
) -> list[float]:
    """Return what the work of `count` answers takes; `seconds` is of the processes that do it."""
    used, of_redis = seconds(), harness.redis_seconds(store)
    took, _ = harness.timed(work)
    used, of_redis = seconds() - used, harness.redis_seconds(store) - of_redis
    return [count / took, used / count, of_redis / count]


def _scorer(url: str) -> AbstractContextManager[Measured]:
    options = ("--batch", str(BATCH), "--keep", "30")
    return harness.python("-m", "workers.cli", "scorer", _FEED, "--redis", url, *options)


def _warm(store: Store, scorers: Sequence[Measured], rows: Sequence[Row]) -> None:
    """Wait until every scorer has read the state and answered."""
    count = 0
    while count < len(scorers):
        _push(store, rows)
        _wait(store, scorers)
        count = len(store.call("XINFO", "CONSUMERS", store.keys.requests, "scorers"))


def _push(store: Store, rows: Sequence[Row]) -> None:
    harness.send(store.url, ((store.keys.requests, entry(row)[:2]) for row in rows))


def _wait(store: Store, scorers: Sequence[Measured]) -> None:
    """Wait until no request is left."""
    while store.length(store.keys.requests):
        for one in scorers:
            one.check()
        time.sleep(_LOOK_SECONDS)


def _singly(url: str, rows: Sequence[Row], length: int) -> Result:
    """Ask one request after the other; compare the median time with the null worker."""
    with Store(url, _FEED) as store, _scorer(url) as one:
        _warm(store, [one], rows[:_PUSH])
        asker = Asker(url, _FEED)
        asked = [orjson.dumps(row.x) for row in rows[:_ASKED_SINGLY]]
        ours = [harness.timed(partial(asker.ask, [x]))[0] for x in asked]
        asker.close()
    feed, examples = "bench-null-single", harness.drifting(_ASKED_SINGLY + 1)
    null = harness.python("-m", "scripts.bench.null", url, feed, str(length))
    with null, Client(url, feed) as client:
        client.ask(next(examples))  # waits until it has started
        peer = statistics.median(map(client.ask, examples))
    note = f"99 % within {1e3 * sorted(ours)[int(0.99 * len(ours))]:.2f} ms"
    return beside("a request alone / null worker", statistics.median(ours), peer, note)
