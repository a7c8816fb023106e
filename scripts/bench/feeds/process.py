"""A process of many feeds under measurement: how it begins, is given examples, comes to rest."""

import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from scripts.bench.feed import Pairs, stream
from scripts.bench.feeds import copies
from scripts.bench.processes import Measured, WorkerEnded, python, resident, worker
from scripts.command_line import tell
from workers.broker import embedded
from workers.broker.client import TIMEOUT, client

PHASES = 5
"""Feeds of different numbers of examples that are copied: else all copies are refitted at once."""

ASKED = 20
"""Feeds in one look: a thousand at once would keep the processors from what is measured."""

_LOOK = 0.05
_MOST_SECONDS = 600.0  # for what a process is to answer, on a busy machine
_REST_SHARE = 0.1  # seconds of processor time in one second below which a process is at rest


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large a run is.

    Feeds that wait for input, that learn, and that are answered at `rate` each; settings of all
    feeds; entries of each feed after its snapshot when its process is killed; seconds of rest, of
    load, and of load on one feed alone. For each of `counts` of feeds: examples of full load, and a
    moderate rate over all feeds, for so many seconds.
    """

    idle: int = 1000
    learning: int = 50
    busy: int = 200
    rate: float = 5.0
    window: int = 2000
    refit_every: int = 250
    replayed: int = 20
    rest: float = 30.0
    short: float = 60.0
    long: float = 120.0
    counts: tuple[int, ...] = (1, 4, 16, 200, 1000)
    backlog: int = 40_000
    moderate: float = 100.0
    steady: float = 12.0

    @property
    def options(self) -> tuple[str, ...]:
        """The settings, as the command takes them."""
        most = max(self.idle, self.busy, self.learning, *self.counts, PHASES)
        settings = {
            "classes": "a,b",
            "window": self.window,
            "refit-every": self.refit_every,
            "max-feeds": most,
        }
        return tuple(f"--{name}={value}" for name, value in settings.items())


@contextmanager
def redis() -> Iterator[str]:
    """Give a Redis: the system's own where there is one, as in production."""
    with embedded.temporary(shutil.which("redis-server")) as server:
        yield server.url


@contextmanager
def filled(sizes: Sizes, feeds: Sequence[str]) -> Iterator[tuple[str, Pairs]]:
    """Give a Redis with feeds whose windows are full, and examples that they have not seen."""
    learned = sizes.window + sizes.refit_every
    rows = stream(learned + 4 * sizes.refit_every + sizes.replayed)
    with redis() as url:
        tell(f"a feed learns {learned:,} examples")
        copies.fill(url, rows[:learned], sizes.options)
        tell(f"{len(feeds):,} copies of it")
        copies.copy(url, feeds)
        _wait_for_rewrite(url)
        yield url, rows[learned:]


@contextmanager
def started(
    url: str, sizes: Sizes, feeds: Sequence[str], row: tuple[list[float], str]
) -> Iterator[tuple[Measured, float]]:
    """Run a process on feeds; yield it, and the seconds until each had answered an entry."""
    expected = [seq + 1 for seq in copies.answered(url, feeds)]
    copies.push(url, feeds, [row])
    began = time.perf_counter()
    with python(*worker(feeds, url, sizes.options)) as process:
        _until(url, process, feeds, expected)
        yield process, time.perf_counter() - began


def answer(url: str, process: Measured, feeds: Sequence[str], rows: Pairs) -> None:
    """Push examples to each feed, and wait for the answers."""
    expected = [seq + len(rows) for seq in copies.answered(url, feeds)]
    copies.push(url, feeds, rows)
    _until(url, process, feeds, expected)


def _until(url: str, process: Measured, feeds: Sequence[str], expected: list[int]) -> None:
    """Wait until each feed has answered so many entries; ask about a few at a time."""
    left, deadline = list(zip(feeds, expected, strict=True)), time.monotonic() + _MOST_SECONDS
    while left:
        some = left[:ASKED]
        found = copies.answered(url, [feed for feed, _ in some])
        late = [one for one, seq in zip(some, found, strict=True) if one[1] != seq]
        left = late + left[ASKED:]
        process.check()
        if time.monotonic() > deadline:
            raise WorkerEnded(f"feeds were not answered in {_MOST_SECONDS:g} s: {process.said}")
        if late:
            time.sleep(_LOOK)


def _wait_for_rewrite(url: str) -> None:
    """Wait until Redis has rewritten its append-only file, as it does where that has grown."""
    deadline = time.monotonic() + _MOST_SECONDS
    with client(url, TIMEOUT) as connected:
        while True:
            told: Any = connected.execute_command("INFO", "persistence")
            if all(b"aof_rewrite_%s:0" % part in told for part in (b"in_progress", b"scheduled")):
                return
            if time.monotonic() > deadline:
                raise WorkerEnded("Redis has not rewritten its append-only file")
            time.sleep(_LOOK)


def stagger(
    url: str, process: Measured, feeds: Sequence[str], rows: Pairs, refit_every: int
) -> None:
    """Bring each feed elsewhere between two refits; wait until all refits are done."""
    tell(f"feeds begin their refits at different times: {len(feeds)}")
    for number in range(1, refit_every):
        later = [feed for i, feed in enumerate(feeds) if i * refit_every // len(feeds) >= number]
        if later:
            copies.push(url, later, [rows[number]])
    total = [0]
    while total[-1] != sum(copies.answered(url, feeds)):
        total.append(sum(copies.answered(url, feeds)))
        time.sleep(10 * _LOOK)
    wait_for_refits(process)


def wait_for_refits(process: Measured) -> None:
    """Wait until a process and its refit processes are at rest."""
    before = float("-inf")
    while (now := process.processor_seconds) - before > _REST_SHARE:
        process.check()
        before = now
        time.sleep(1.0)


def settled(process: Measured) -> int:
    """Return the bytes that a process holds, once they stay as they are."""
    before = 0
    for _ in range(20):
        time.sleep(20 * _LOOK)
        now = resident(process.pid)
        if abs(now - before) < 0.002 * now:
            break
        before = now
    return now
