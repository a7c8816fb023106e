"""The time from the command to the first answer, against bare imports.

A feed with a window of 5,000 is stopped, with a snapshot, and started again: the time from the
command to the first answer is compared with a process that only imports the same packages.
"""

import statistics
import time
from collections.abc import Iterator
from itertools import islice

from scripts.bench import harness
from scripts.bench.report import Result, check
from scripts.command_line import tell
from workers.broker.store import Store
from workers.push.ingest import push
from workers.push.sources import Row

WINDOW = 5_000

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
    imports, first = list[float](), list[float]()
    with harness.server() as url, Store(url, "start") as store:
        rows = harness.drifting(2 * WINDOW + 1 + REPEATS)
        tell(f"the first {2 * WINDOW:,} examples")
        push(islice(rows, 2 * WINDOW), url, store.keys.feed)
        _started(store, rows, 2 * WINDOW + 1)
        for repeat in range(REPEATS):
            tell(f"start {repeat + 1} of {REPEATS}")
            imports.append(harness.timed(_import))
            first.append(_started(store, rows, 2 * WINDOW + 2 + repeat))
    least, ours = statistics.median(imports), statistics.median(first)
    seconds = [
        {"name": "bare imports", "seconds": least},
        {"name": f"command to first answer, window {WINDOW:,}", "seconds": ours},
    ]
    bound = check("first answer / bare imports", ours / least, MAX_IMPORTS_RATIO)
    yield Result(seconds, checks=[bound])


def _import() -> None:
    with harness.python("-c", f"import {', '.join(PACKAGES)}") as process:
        process.process.wait(_IMPORT_SECONDS)


def _started(store: Store, rows: Iterator[Row], count: int) -> float:
    """Return the seconds until a worker that is started has answered one entry.

    One is pushed before; the worker stops when all `count` are answered.
    """
    call, keys = store.call, store.keys
    newest = call("XREVRANGE", keys.out, "+", "-", "COUNT", 1)
    last = newest[0][0] if newest else b"0-0"
    push(islice(rows, 1), store.url, keys.feed)
    began = time.perf_counter()
    with harness.python(
        *harness.worker(keys.feed, store.url, ("--window", str(WINDOW)))
    ) as process:
        # Blocking, not looking again and again, which would take time from the worker.
        while not call("XREAD", "BLOCK", _BLOCK_MS, "STREAMS", keys.out, last):
            process.check()
        seconds = time.perf_counter() - began
        process.wait_until(lambda: harness.answered(store) == count)
    return seconds
