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
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import orjson
import redis
from typing_extensions import override

from scripts.bench.drift import drifting
from scripts.bench.feed import WARM_UP, Pairs, fields, push, quiet, send, server, stream
from scripts.bench.latency import Client
from scripts.bench.null import BATCH, GROUP, answer_next
from scripts.bench.processes import Measured, python, redis_seconds, seconds_of
from scripts.bench.report import BenchResult, Row, Tell, silent
from scripts.bench.timing import timed
from workers.broker.store import Store
from workers.config.settings import WorkerSettings
from workers.feed.selection import Selection
from workers.runner import service
from workers.scorer.asker import Asker
from workers.stop import Stop

REQUESTS = 20_000
REPEATS = 3
COUNTS = (1, 2, 4)
_FEED = "bench-scorers"
_ASKED_SINGLY = 500
_PUSH = 1000
_LOOK = 0.002


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one run, or medians over several.

    Attributes
    ----------
    rate : float
        Answers a second.
    of_scorers, of_redis : float
        Seconds of processor time an answer: of the processes that answer, and of Redis.
    """

    rate: float
    of_scorers: float
    of_redis: float

    @classmethod
    def median(cls, runs: Sequence["Figures"]) -> "Figures":
        """Return the medians over runs."""
        columns = zip(*((one.rate, one.of_scorers, one.of_redis) for one in runs), strict=True)
        return cls(*map(statistics.median, columns))

    @property
    def processors(self) -> float:
        """How many processors they had together."""
        return self.rate * (self.of_scorers + self.of_redis)


@dataclass(frozen=True, slots=True)
class ScoredRequests(BenchResult):
    """Scorers beside the null worker."""

    scorers: int
    ours: Figures
    null: Figures

    @override
    def plain(self) -> dict[str, Any]:
        return asdict(self) | {"ratio": self.ours.rate / self.null.rate}

    def __str__(self) -> str:
        name = f"{self.scorers} scorer{'s' * (self.scorers > 1)} / null worker"
        ours, null = self.ours, self.null
        rates = f"{ours.rate:>9,.0f}/s {null.rate:>9,.0f}/s {ours.rate / null.rate:>6.2f}"
        times = [
            f"{1e6 * one.of_scorers:.1f} + {1e6 * one.of_redis:.1f} of Redis"
            for one in (ours, null)
        ]
        had = f"{ours.processors:.2f} of {os.cpu_count()} processors"
        return f"{name:<26}{rates}   microseconds an answer: {times[0]}; {times[1]}; {had}"


def run(
    requests: int = REQUESTS,
    tell: Tell = silent,
    url: str | None = None,
    counts: Sequence[int] = COUNTS,
    repeats: int = REPEATS,
    warm_up: int = WARM_UP,
) -> Iterator[BenchResult]:
    """Measure, and yield a line for each number of scorers, then one for single requests.

    Parameters
    ----------
    requests : int
        Of 20 features, answered with a state of two classes and the default window.
    tell : callable
        Is told what is measured next.
    url : str, optional
        Redis to use; default an embedded one that is thrown away. Keys of feeds named "bench..."
        are written.
    counts : sequence of int
        Numbers of scorers.
    repeats : int
        Runs of each; they take turns.
    warm_up : int
        Examples that the feed has learned.
    """
    examples = stream(warm_up + requests)
    with quiet(), server(url) as where:
        tell("a worker learns and publishes")
        length = _publish(where, examples[:warm_up])
        runs: dict[int, list[Figures]] = {count: [] for count in counts}
        nulls: list[Figures] = []
        for repeat in range(repeats):
            tell(f"round {repeat + 1} of {repeats}: the null worker")
            nulls.append(_null(where, examples[warm_up:], length))
            for count in counts:
                tell(f"round {repeat + 1} of {repeats}: {count} scorers")
                runs[count].append(_measure(where, count, examples[warm_up:]))
        null = Figures.median(nulls)
        yield from (
            ScoredRequests(count, Figures.median(found), null) for count, found in runs.items()
        )
        tell("one request at a time")
        yield _singly(where, examples[warm_up:], length)


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
        newest = store.call("XREVRANGE", store.keys.out, "+", "-", "COUNT", 1000)
    return round(statistics.fmean(len(entry[1][1]) for entry in newest))


def _measure(url: str, count: int, rows: Pairs) -> Figures:
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

        return _figures(store, len(rows), lambda: _seconds(scorers), go_on)


def _null(url: str, rows: Pairs, length: int) -> Figures:
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
) -> Figures:
    """Return what the work of `count` answers takes; `seconds` is of the processes that do it."""
    used, of_redis, began = seconds(), redis_seconds(store), time.perf_counter()
    work()
    took = time.perf_counter() - began
    return Figures(
        count / took, (seconds() - used) / count, (redis_seconds(store) - of_redis) / count
    )


def _scorer(url: str) -> Any:
    options = ("--batch", str(BATCH), "--keep", "30")
    return python("-m", "workers.cli", "scorer", _FEED, "--redis", url, *options)


def _warm(store: Store, scorers: Sequence[Measured], rows: Pairs) -> None:
    """Wait until every scorer has read the state and answered."""
    keys = store.keys
    while True:
        _push(store, rows)
        _wait(store, scorers)
        found = store.call("XINFO", "CONSUMERS", keys.requests, "scorers")
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


def _seconds(scorers: Sequence[Measured]) -> float:
    return sum(seconds_of(one.pid) for one in scorers)


def _singly(url: str, rows: Pairs, length: int) -> Row:
    """Ask one request after the other; return the median time beside that of the null worker."""
    with Store(url, _FEED) as store, _scorer(url) as one:
        _warm(store, [one], rows[:_PUSH])
        asker = Asker(url, _FEED)
        asked = [orjson.dumps(x) for x, _ in rows[:_ASKED_SINGLY]]
        ours = [timed(partial(asker.ask, [x]))[0] for x in asked]
        asker.close()
    peer = _null_round_trips(url, length)
    at_most = sorted(ours)[int(0.99 * len(ours))]
    note = f"99 % within {1e3 * at_most:.2f} ms"
    return Row("a request alone / null worker", statistics.median(ours), peer, note)


def _null_round_trips(url: str, length: int) -> float:
    """Return the median seconds from an entry to the answer of the null worker."""
    feed = "bench-null-single"
    with Store(url, feed) as store:
        store.call("DEL", store.keys.input, store.keys.out)
    rows = drifting(_ASKED_SINGLY + 1)
    with python("-m", "scripts.bench.null", url, feed, str(length)), Client(url, feed) as client:
        client.ask(next(rows))  # waits until it has started
        return statistics.median(map(client.ask, rows))
