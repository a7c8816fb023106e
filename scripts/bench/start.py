"""From the command to the first answer: beside bare imports, with and without a replay.

A feed with a window of 5,000 is stopped, with a snapshot, and started again: the time from the
command to the first answer is compared with that of a process that only imports the same packages.
Then the worker is killed some thousand entries after its snapshot, and started again: it answers
these once more before it goes on, and should do so at least as fast as it did the first time.
"""

import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice

from scripts.bench.drift import drifting
from scripts.bench.processes import Measured, python, worker
from scripts.bench.report import Check, Checked, Tell, silent
from workers.broker import embedded
from workers.broker.store import Store
from workers.push.ingest import push
from workers.push.sources import Row

WINDOW = 5_000
REPLAYED = 9_000
REPEATS = 3
MOST_IMPORTS = 1.5

PACKAGES = (
    "numpy",
    "numba",
    "scipy.special",
    "safetensors",
    "redis",
    "hiredis",
    "orjson",
    "pydantic",
    "pydantic_settings",
    "structlog",
    "typer",
    "rich",
)
"""What a worker imports that is not its own or Python's."""

_FEED = "start"
_BLOCK_MS = 1000
# Above any import on a busy machine, cold cache included.
_IMPORT_SECONDS = 300.0


Times = dict[str, list[float]]
"""Seconds of several starts: "imports" of a process that only imports; "first" from the command to
the first answer, with a snapshot of the very end; "replaying" the same with entries after it to
answer again; "live" in which these were answered the first time."""


def run(
    tell: Tell = silent,
    repeats: int = REPEATS,
    replayed: int = REPLAYED,
    window: int = WINDOW,
) -> Checked:
    """Start the worker again and again on an embedded Redis.

    Parameters
    ----------
    tell : callable
        Is told what is measured next.
    repeats : int
    replayed : int
        Entries after the snapshot, which is of the default schedule: below 10,000.
    window : int
        Learned examples that the worker holds.
    """
    found: Times = {name: [] for name in ("imports", "first", "replaying", "live")}
    rows = drifting(2 * window + 2 * repeats * (replayed + 10))
    with embedded.temporary() as server, Store(server.url, _FEED) as store:
        feed = _Feed(store, rows, ("--window", str(window)))
        tell(f"the first {2 * window:,} examples")
        feed.push(2 * window)
        with feed.started():
            pass
        for repeat in range(repeats):
            tell(f"start {repeat + 1} of {repeats}")
            found["imports"].append(_bare_imports())
            with feed.started() as (process, seconds):
                found["first"].append(seconds)
                found["live"].append(feed.answered_in(replayed, process))
                process.kill()
            with feed.started() as (_, seconds):
                found["replaying"].append(seconds)
    return result(found, window, replayed)


def result(times: Times, window: int, replayed: int) -> Checked:
    """Return the medians and the ratios that have bounds."""
    middle = {name: statistics.median(seconds) for name, seconds in times.items() if seconds}
    replay = max(middle["replaying"] - middle["first"], 1e-3)
    allowed = MOST_IMPORTS * middle["imports"] + middle["live"]
    checks = [
        Check("first answer / bare imports", middle["first"] / middle["imports"], MOST_IMPORTS),
        Check("with replay / allowed", middle["replaying"] / allowed, 1.0),
        Check("replay's rate / live rate", middle["live"] / replay, 1.0, is_least=True),
    ]
    names = {
        "imports": "bare imports",
        "first": f"command to first answer, window {window:,}",
        "replaying": f"the same, {replayed:,} entries to replay",
        "live": f"{replayed:,} entries answered live",
    }
    lines = [f"{names[name]:<50}{seconds:>9.3f} s" for name, seconds in middle.items()]
    return Checked({"seconds": middle, "replayed": replayed}, checks, lines)


def _bare_imports() -> float:
    """Return the seconds that a process takes which imports the packages and ends."""
    began = time.perf_counter()
    with python("-c", f"import {', '.join(PACKAGES)}") as process:
        process.process.wait(_IMPORT_SECONDS)
    return time.perf_counter() - began


class _Feed:
    """A feed that is filled from one stream, and workers on it."""

    def __init__(self, store: Store, rows: Iterator[Row], options: Sequence[str]) -> None:
        self._store, self._rows = store, rows
        self._command = worker(store.keys.feed, store.url, options)
        self.pushed = 0

    def push(self, count: int) -> None:
        """Add entries to the input."""
        keys = self._store.keys
        self.pushed += push(islice(self._rows, count), self._store.url, keys.feed, arrays=True)

    def wait(self, process: Measured) -> None:
        """Wait until all that was pushed is answered."""
        key = self._store.keys.state
        process.wait_until(lambda: int(self._store.call("HGET", key, "seq") or 0) == self.pushed)

    def answered_in(self, count: int, process: Measured) -> float:
        """Push entries, and return the seconds in which they are answered."""
        began = time.perf_counter()
        self.push(count)
        self.wait(process)
        return time.perf_counter() - began

    @contextmanager
    def started(self) -> Iterator[tuple[Measured, float]]:
        """Run a worker in the block; yield it, and the seconds until it answered one entry."""
        call, out = self._store.call, self._store.keys.out
        newest = call("XREVRANGE", out, "+", "-", "COUNT", 1)
        last = newest[0][0] if newest else b"0-0"
        self.push(1)
        began = time.perf_counter()
        with python(*self._command) as process:
            # Blocking, not looking again and again, which would take time from the worker.
            while not call("XREAD", "BLOCK", _BLOCK_MS, "STREAMS", out, last):
                process.check()
            seconds = time.perf_counter() - began
            self.wait(process)
            yield process, seconds
