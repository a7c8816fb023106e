"""One example at a time: how long until its answer, beside a null worker's, and during refits.

One client pushes an example, waits for the answer, and only then pushes the next. Both workers
are processes of their own, and take turns. Whether a refit is under way the system tells: the
refit process runs, or sleeps.
"""

import time
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Annotated, Any, Self

import numpy as np
import typer

from scripts.bench.feed import drifting, server
from scripts.bench.processes import (
    WorkerEnded,
    is_running,
    python,
    refit_process,
    require_proc,
    worker,
)
from scripts.bench.report import Result, check
from scripts.command_line import tell
from workers.broker.client import TIMEOUT, client
from workers.feed.keys import FeedKeys
from workers.push.ingest import entry
from workers.push.sources import Row

TURNS = 10
MOST_MEDIAN = 2.0
MOST_P99 = 1.5
WARM_UP = 3_000
"""Answered before anything is measured: the window is full then."""

_FEED, _NULL = "latency", "latency-null"
_WAIT_MS = 100_000  # the first answer waits for the worker's start
_QUANTILES, _P99 = (50.0, 99.0, 99.9, 100.0), 1
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
    require_proc()
    with server() as url:
        times = _measured(url, examples)
    yield result(times)


def _measured(url: str, examples: int) -> Times:
    rows = drifting(WARM_UP + 1 + examples)
    times: Times = {name: [] for name in _NAMES}
    with python(*worker(_FEED, url)) as process, Client(url, _FEED) as ours:
        tell(f"warm-up, {WARM_UP:,} examples")
        for row in islice(rows, WARM_UP):
            ours.ask(row)
        null = python("-m", "scripts.bench.null", url, _NULL, str(ours.length))
        with null, Client(url, _NULL) as theirs:
            theirs.ask(next(rows))
            for turn in range(TURNS):
                tell(f"turn {turn + 1} of {TURNS}")
                some = list(islice(rows, examples // TURNS))
                times["null"].extend(map(theirs.ask, some))
                _ask_ours(ours, process.pid, some, times)
    return times


def _ask_ours(ours: "Client", pid: int, rows: Sequence[Row], times: Times) -> None:
    """Ask for answers one after the other, and sort the times by whether a refit was under way."""
    child = refit_process(pid)
    for row in rows:
        was_busy = is_running(child)
        seconds = ours.ask(row)
        times["refitting" if was_busy or is_running(child) else "idle"].append(seconds)


def result(times: Times) -> Result:
    """Return the quantiles of each kind and the ratios that have bounds."""
    quantiles = {
        name: np.percentile(seconds, _QUANTILES).tolist()
        for name, seconds in times.items()
        if seconds
    }
    heads = (f"{f'p{q:g}' if q < 100 else 'most':>9}" for q in _QUANTILES)
    lines = [f"{'milliseconds':<34}{'examples':>9}{''.join(heads)}"]
    for name, seconds in quantiles.items():
        shown = "".join(f"{1e3 * value:>9.3f}" for value in seconds)
        lines.append(f"{_NAMES[name]:<34}{len(times[name]):>9,}{shown}")
    median = float(np.median(times["idle"] + times["refitting"]) / np.median(times["null"]))
    checks = [check("median / null worker's median", median, MOST_MEDIAN)]
    if times["idle"] and times["refitting"]:
        slower = quantiles["refitting"][_P99] / quantiles["idle"][_P99]
        checks.append(check("p99 while a refit runs / idle p99", slower, MOST_P99))
    return Result({"seconds": quantiles}, lines, checks)


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
        """Push an example and return the seconds until its answer is here.

        Raises
        ------
        WorkerEnded
            If none comes.
        """
        call, keys, fields = self._connected.execute_command, self._keys, entry(row)
        began = time.perf_counter()
        call("XADD", keys.input, "*", *fields)
        reply = call("XREAD", "BLOCK", _WAIT_MS, "STREAMS", keys.out, self._last)
        seconds = time.perf_counter() - began
        if not reply:
            raise WorkerEnded(f"no answer within {_WAIT_MS / 1000:g} s")
        self._last, answer = reply[0][1][-1]
        self.length = len(answer[1])
        return seconds
