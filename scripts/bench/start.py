"""The time from the command to the first answer, with and without a replay, against bare imports.

A feed with a window of 5,000 is stopped, with a snapshot, and started again: the time from the
command to the first answer is compared with a process that only imports the same packages.
Then the worker is killed some thousand entries after its snapshot, and started again: it answers
these once more before it goes on, and should do so at least as fast as it did the first time.
"""

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice

from scripts.bench import harness
from scripts.bench.report import Result, check
from scripts.command_line import tell
from workers.broker.store import Store
from workers.push.ingest import push

WINDOW = 5_000
REPLAYED = 9_000  # entries after the snapshot, which is of the default schedule: below 10,000

REPEATS = 3
MAX_IMPORTS_RATIO = 1.5
PACKAGES = (
    "numpy", "safetensors", "redis", "hiredis", "orjson", "pydantic", "pydantic_settings", "typer"
)  # fmt: skip
"""Packages of others that a worker imports."""

_BLOCK_MS = 1000
_IMPORT_SECONDS = 60.0  # above any import on a busy machine


def run() -> Iterator[Result]:
    """Measure from the command to the first answer on a window of 5,000 against bare imports."""
    found: dict[str, list[float]] = {"imports": [], "first": [], "replaying": [], "live": []}
    with harness.server() as url, Store(url, "start") as store:
        feed = _Feed(store)
        tell(f"the first {2 * WINDOW:,} examples")
        feed.push(2 * WINDOW)
        with feed.started():
            pass
        for repeat in range(REPEATS):
            tell(f"start {repeat + 1} of {REPEATS}")
            found["imports"].append(harness.timed(_import)[0])
            with feed.started() as (process, seconds):
                found["first"].append(seconds)
                found["live"].append(harness.timed(lambda: feed.answer(REPLAYED, process))[0])
                process.kill()
            with feed.started() as (_, seconds):
                found["replaying"].append(seconds)
    yield result({name: statistics.median(seconds) for name, seconds in found.items()})


def result(seconds: dict[str, float]) -> Result:
    """Return the seconds and the ratios that have bounds."""
    imports, first = seconds["imports"], seconds["first"]
    replaying, live = seconds["replaying"], seconds["live"]
    allowed, replay = MAX_IMPORTS_RATIO * imports + live, max(replaying - first, 1e-3)
    checks = [
        check("first answer / bare imports", first / imports, MAX_IMPORTS_RATIO),
        check("with replay / allowed", replaying / allowed, 1.0),
        check("replay's rate / live rate", live / replay, 1.0, is_least=True),
    ]
    names = {
        "bare imports": imports,
        f"command to first answer, window {WINDOW:,}": first,
        f"the same, {REPLAYED:,} entries to replay": replaying,
        f"{REPLAYED:,} entries answered live": live,
    }
    lines = [f"{name:<50}{value:>9.3f} s" for name, value in names.items()]
    return Result({"seconds": seconds, "replayed": REPLAYED}, lines, checks)


def _import() -> None:
    with harness.python("-c", f"import {', '.join(PACKAGES)}") as process:
        process.process.wait(_IMPORT_SECONDS)


class _Feed:
    """A feed that is filled from one stream, and workers on it."""

    def __init__(self, store: Store) -> None:
        self._store, self._pushed = store, 0
        self._rows = harness.drifting(2 * WINDOW + 2 * REPEATS * (REPLAYED + 10))
        self._command = harness.worker(store.keys.feed, store.url, ("--window", str(WINDOW)))

    def push(self, count: int) -> None:
        """Add entries to the input."""
        feed = self._store.keys.feed
        self._pushed += push(islice(self._rows, count), self._store.url, feed)

    def answer(self, count: int, process: harness.Measured) -> None:
        """Push entries, and wait until all that was pushed is answered."""
        self.push(count)
        process.wait_until(lambda: harness.answered(self._store) == self._pushed)

    @contextmanager
    def started(self) -> Iterator[tuple[harness.Measured, float]]:
        """Run a worker in the block; yield it, and the seconds until it answered one entry."""
        call, out = self._store.call, self._store.keys.out
        newest = call("XREVRANGE", out, "+", "-", "COUNT", 1)
        last = newest[0][0] if newest else b"0-0"
        self.push(1)
        began = time.perf_counter()
        with harness.python(*self._command) as process:
            # Blocking, not looking again and again, which would take time from the worker.
            while not call("XREAD", "BLOCK", _BLOCK_MS, "STREAMS", out, last):
                process.check()
            seconds = time.perf_counter() - began
            self.answer(0, process)
            yield process, seconds
