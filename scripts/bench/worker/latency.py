"""One example at a time: the time until its answer, against a null worker's, and during refits.

One client pushes an example, waits for the answer, and only then pushes the next. Both workers
are processes of their own, and take turns. A refit is under
way if the operating system lists the refit process as running.
"""

import time
from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Any, Self

import numpy as np
import typer

from scripts.bench import harness
from scripts.bench.report import Result, Values, check
from scripts.command_line import tell
from workers.broker.client import TIMEOUT, client
from workers.feed.keys import FeedKeys
from workers.push.ingest import entry
from workers.push.sources import Row

TURNS = 10
MAX_MEDIAN_RATIO = 2.0
MAX_P99_RATIO = 1.5
WARM_UP = 3_000  # answered before anything is measured: the window is full then

_FEED, _NULL = "latency", "latency-null"
_WAIT_MS = 100_000  # the first answer waits for the worker's start
_QUANTILES = (50.0, 99.0, 99.9, 100.0)
_NAMES = {
    "null": "null worker",
    "idle": "worker, no refit under way",
    "refitting": "worker while a refit runs",
}
Times = dict[str, list[float]]
"""Seconds from before the push to after the answer, by the names above."""


def run(
    examples: Annotated[int, typer.Option(min=100, help="Answered by each worker.")] = 20_000,
) -> Iterator[Result]:
    """Measure one example at a time against a null worker; and the same while refits run."""
    harness.require_proc()
    with harness.server() as url:
        yield result(_measured(url, examples))


def _measured(url: str, examples: int) -> Times:
    rows = harness.drifting(WARM_UP + 1 + examples)
    times: Times = {name: [] for name in _NAMES}
    with harness.python(*harness.worker(_FEED, url)) as process, Client(url, _FEED) as ours:
        tell(f"warm-up, {WARM_UP:,} examples")
        for row in islice(rows, WARM_UP):
            ours.ask(row)
        null = harness.python("-m", "scripts.bench.worker.null", url, _NULL, str(ours.length))
        with null, Client(url, _NULL) as theirs:
            theirs.ask(next(rows))
            for turn in range(TURNS):
                tell(f"turn {turn + 1} of {TURNS}")
                some = list(islice(rows, examples // TURNS))
                times["null"].extend(map(theirs.ask, some))
                child = harness.refit_process(process.pid)
                for row in some:
                    was_busy = harness.is_running(child)
                    seconds = ours.ask(row)
                    is_busy = was_busy or harness.is_running(child)
                    times["refitting" if is_busy else "idle"].append(seconds)
    return times


def result(times: Times) -> Result:
    """Return the quantiles of each kind and the ratios that have bounds."""
    rows: list[Values] = [
        {"name": _NAMES[kind], "examples": len(seconds)}
        | {
            f"p{q:g}": 1e3 * value
            for q, value in zip(_QUANTILES, np.percentile(seconds, _QUANTILES), strict=True)
        }
        for kind, seconds in times.items()
        if seconds
    ]
    median = float(np.median(times["idle"] + times["refitting"]) / np.median(times["null"]))
    checks = [check("median / null worker's median", median, MAX_MEDIAN_RATIO)]
    if times["idle"] and times["refitting"]:
        slower = rows[2]["p99"] / rows[1]["p99"]
        checks.append(check("p99 while a refit runs / idle p99", slower, MAX_P99_RATIO))
    return Result(rows, "milliseconds", None, checks)


class Client:
    """A producer that waits for each answer; `length` is the bytes of the newest one."""

    def __init__(self, url: str, feed: str) -> None:
        self._keys, self._last, self.length = FeedKeys(feed), b"0-0", 0
        self._connected: Any = client(url, TIMEOUT + _WAIT_MS / 1000)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connected.close()

    def ask(self, row: Row) -> float:
        """Push an example and return the seconds until its answer is here."""
        call, keys, fields = self._connected.execute_command, self._keys, entry(row)
        began = time.perf_counter()
        call("XADD", keys.input, "*", *fields)
        reply = call("XREAD", "BLOCK", _WAIT_MS, "STREAMS", keys.out, self._last)
        seconds = time.perf_counter() - began
        if not reply:
            raise harness.WorkerEnded(f"no answer within {_WAIT_MS / 1000:g} s")
        self._last, answer = reply[0][1][-1]
        self.length = len(answer[1])
        return seconds
