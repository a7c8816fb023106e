"""Answers a second of one, two and four scorers, beside the null worker; the commands themselves.

Requests are pushed while the scorers are held (SIGSTOP); the clock begins when they go on, and ends
when no request is left. So what is measured is scorers and Redis alone, on the same processors.
"""

import os
import signal
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import Annotated, Any

import numpy as np
import orjson
import redis
import typer

from scripts.bench.feed import (
    WARM_UP,
    Pairs,
    answer_bytes,
    drifting,
    fields,
    push,
    send,
    server,
    stream,
    timed,
)
from scripts.bench.latency import Client
from scripts.bench.null import BATCH, GROUP, answer_next
from scripts.bench.processes import Measured, python, redis_seconds, seconds_of
from scripts.bench.report import Result, beside
from scripts.command_line import tell
from workers.broker.store import Store
from workers.config.settings import WorkerSettings
from workers.feed.selection import Selection
from workers.runner import service
from workers.scorer.asker import Asker
from workers.stop import Stop

COUNTS = (1, 2, 4)
FIGURES = ("rate", "of_scorers", "of_redis")
"""Answers a second; seconds of processor time an answer, of the processes that answer and of Redis.
"""

_FEED = "bench-scorers"
_ASKED_SINGLY = 500
_PUSH = 1000
_LOOK = 0.002


def run(
    requests: Annotated[int, typer.Option(min=1000, help="Requests that are measured.")] = 20_000,
    repeats: Annotated[int, typer.Option(min=1, help="Runs of each.")] = 3,
) -> Iterator[Result]:
    """Measure one, two and four scorers beside a worker that only moves messages."""
    examples = stream(WARM_UP + requests)
    rows = examples[WARM_UP:]
    with server() as url:
        tell("a worker learns and publishes")
        length = _publish(url, examples[:WARM_UP])
        runs: dict[int, list[list[float]]] = {count: [] for count in (0, *COUNTS)}
        for repeat in range(repeats):
            for count, found in runs.items():
                tell(f"round {repeat + 1} of {repeats}: {count or 'null worker, no'} scorers")
                found.append(_scored(url, count, rows) if count else _null(url, rows, length))
        medians = {count: np.median(found, axis=0).tolist() for count, found in runs.items()}
        for count in COUNTS:
            yield result(count, medians[count], medians[0])
        tell("one request at a time")
        yield _singly(url, rows, length)


def result(scorers: int, ours: list[float], null: list[float]) -> Result:
    """Return scorers beside the null worker, each by its `FIGURES`."""
    name = f"{scorers} scorer{'s' * (scorers > 1)} / null worker"
    rates = f"{ours[0]:>9,.0f}/s {null[0]:>9,.0f}/s {ours[0] / null[0]:>6.2f}"
    times = [
        f"{1e6 * own:.1f} + {1e6 * of_redis:.1f} of Redis" for _, own, of_redis in (ours, null)
    ]
    had = f"{ours[0] * (ours[1] + ours[2]):.2f} of {os.cpu_count()} processors"
    line = f"{name:<26}{rates}   microseconds an answer: {times[0]}; {times[1]}; {had}"
    both = {
        of: dict(zip(FIGURES, found, strict=True)) for of, found in (("ours", ours), ("null", null))
    }
    return Result({"scorers": scorers, **both, "ratio": ours[0] / null[0]}, [line])


def _publish(url: str, examples: Pairs) -> int:
    """Learn examples and publish the state; return the mean length of an answer."""
    settings, stop = WorkerSettings(publish_every=100), Stop()
    with Store(url, _FEED) as store, ThreadPoolExecutor(1) as thread:
        push(store, examples)
        store.call("DEL", store.keys.requests)
        running = thread.submit(service.run, Selection([_FEED]), settings, url, stop)
        try:
            while (found := store.publication()) is None or found.n < len(examples) - 500:
                if running.done():
                    break
                time.sleep(0.01)
        finally:
            stop.request()
        running.result()
        return answer_bytes(store)


def _scored(url: str, count: int, rows: Pairs) -> list[float]:
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

        return _figures(
            store, len(rows), lambda: sum(seconds_of(one.pid) for one in scorers), go_on
        )


def _null(url: str, rows: Pairs, length: int) -> list[float]:
    """Let the null worker, in this process, answer entries that wait."""
    with Store(url, "bench-null") as store, redis.Redis.from_url(url, protocol=2) as client:
        keys = store.keys
        push(store, rows)
        client.xgroup_create(keys.input, GROUP, "0")

        def drain() -> None:
            while answer_next(client, keys, b"x" * length):
                pass

        return _figures(store, len(rows), time.process_time, drain)


def _figures(
    store: Store, count: int, seconds: Callable[[], float], work: Callable[[], None]
) -> list[float]:
    """Return what the work of `count` answers takes; `seconds` is of the processes that do it."""
    used, of_redis = seconds(), redis_seconds(store)
    took, _ = timed(work)
    return [
        count / took, (seconds() - used) / count, (redis_seconds(store) - of_redis) / count
    ]  # fmt: skip


def _scorer(url: str) -> Any:
    options = ("--batch", str(BATCH), "--keep", "30")
    return python("-m", "workers.cli", "scorer", _FEED, "--redis", url, *options)


def _warm(store: Store, scorers: Sequence[Measured], rows: Pairs) -> None:
    """Wait until every scorer has read the state and answered."""
    while True:
        _push(store, rows)
        _wait(store, scorers)
        found = store.call("XINFO", "CONSUMERS", store.keys.requests, "scorers")
        if len(found) == len(scorers):
            return


def _push(store: Store, rows: Pairs) -> None:
    send(store.url, ((store.keys.requests, fields(row)[:2]) for row in rows))


def _wait(store: Store, scorers: Sequence[Measured]) -> None:
    """Wait until no request is left."""
    while store.length(store.keys.requests):
        for one in scorers:
            one.check()
        time.sleep(_LOOK)


def _singly(url: str, rows: Pairs, length: int) -> Result:
    """Ask one request after the other; return the median time beside that of the null worker."""
    with Store(url, _FEED) as store, _scorer(url) as one:
        _warm(store, [one], rows[:_PUSH])
        asker = Asker(url, _FEED)
        asked = [orjson.dumps(x) for x, _ in rows[:_ASKED_SINGLY]]
        ours = [timed(partial(asker.ask, [x]))[0] for x in asked]
        asker.close()
    feed, examples = "bench-null-single", drifting(_ASKED_SINGLY + 1)
    with python("-m", "scripts.bench.null", url, feed, str(length)), Client(url, feed) as client:
        client.ask(next(examples))  # waits until it has started
        peer = statistics.median(map(client.ask, examples))
    note = f"99 % within {1e3 * sorted(ours)[int(0.99 * len(ours))]:.2f} ms"
    return beside("a request alone / null worker", statistics.median(ours), peer, note)
