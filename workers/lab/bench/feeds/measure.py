"""The parts of `bench feeds`: each runs the real command on a Redis of its own."""

import shutil
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from workers.broker import embedded
from workers.lab.bench.feed import Pairs, stream
from workers.lab.bench.feeds import copies
from workers.lab.bench.feeds.load import steady
from workers.lab.bench.processes import Measured, WorkerEnded, python, resident, worker
from workers.lab.bench.processor_time import family, seconds_of
from workers.lab.bench.report import Tell

MB = 1e6
WATCHED = 20
"""Feeds whose answers are timed, at most."""

HASTE = 4
"""Times as many examples as others get that new feeds get."""

LOOK = 0.05
"""Seconds between two looks at how far feeds are."""

MOST_SECONDS = 600.0
"""For what a process is to answer, on a busy machine."""

REST_SHARE = 0.1
"""Seconds of processor time in one second below which a process counts as at rest."""

Figures = dict[str, float]


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large a run is.

    Attributes
    ----------
    idle : int
        Feeds that wait for input.
    learning : int
        Feeds whose memory is measured as they learn.
    busy : int
        Feeds that are answered at `rate` each.
    new : int
        Feeds without a model, `HASTE` times as fast, beside as many that are answered at `rate`.
    rate : float
        Examples a second of each of them.
    window, refit_every : int
        Settings of all feeds.
    replayed : int
        Entries of each feed that were answered after its snapshot when its process is killed.
    rest, short, long : float
        Seconds: of watching idle feeds; of load; of load on one feed alone.
    """

    idle: int = 1000
    learning: int = 50
    busy: int = 200
    new: int = 20
    rate: float = 5.0
    window: int = 2000
    refit_every: int = 250
    replayed: int = 20
    rest: float = 30.0
    short: float = 60.0
    long: float = 120.0

    @property
    def options(self) -> tuple[str, ...]:
        """The settings, as the command takes them."""
        settings = {
            "classes": "a,b",
            "window": self.window,
            "refit-every": self.refit_every,
            "max-feeds": max(self.idle, self.busy, self.learning, 2 * self.new),
        }
        return tuple(f"--{name}={value}" for name, value in settings.items())


def idle(sizes: Sizes, tell: Tell) -> Figures:
    """Start a process on many feeds, let it rest, kill it, and start it again."""
    feeds = copies.names(sizes.idle)
    with _filled(sizes, feeds, tell) as (url, rows):
        tell("two feeds at rest")
        with _started(url, sizes, feeds[:2], rows[0]) as (process, _):
            two = _settled(process)
        tell(f"{len(feeds):,} feeds begin after a graceful stop")
        with _started(url, sizes, feeds, rows[1]) as (process, stopped):
            taken = _processor_seconds(process)
            many = _settled(process)
            tell(f"{len(feeds):,} feeds at rest for {sizes.rest:g} s")
            before = _processor_seconds(process)
            time.sleep(sizes.rest)
            share = (_processor_seconds(process) - before) / sizes.rest
            tell(f"{sizes.replayed} more entries to each")
            _answer(url, process, feeds, rows[2 : 2 + sizes.replayed])
            process.kill()
        tell(f"{len(feeds):,} feeds begin after a kill")
        with _started(url, sizes, feeds, rows[-1]) as (process, killed):
            process.kill()
    return {
        "start_stopped_s": stopped,
        "start_stopped_processor_s": taken,
        "start_killed_s": killed,
        "share": share,
        "mb": many / MB,
        "mb_of_two": two / MB,
        "mb_a_feed": _each(many, two, len(feeds)) / MB,
    }


def learning(sizes: Sizes, tell: Tell) -> Figures:
    """Let two feeds learn, then more; compare the memory of the processes that answer them."""
    two, _ = _learned(sizes, 2, tell)
    many, refits = _learned(sizes, sizes.learning, tell)
    return {"mb_a_feed": _each(many, two, sizes.learning) / MB, "mb_of_refits": refits / MB}


def _learned(sizes: Sizes, count: int, tell: Tell) -> tuple[int, int]:
    """Return the bytes of a process whose feeds have learned, and those of its refit processes."""
    feeds, rows_each = copies.names(count), 5 * sizes.refit_every // 2
    with (
        _filled(sizes, feeds, tell) as (url, rows),
        _started(url, sizes, feeds, rows[0]) as (process, _),
    ):
        tell(f"{count} feeds learn {rows_each} examples each")
        _answer(url, process, feeds, rows[1:rows_each])
        taken = _settled(process)
        return taken, sum(map(resident, family(process.pid))) - taken


def busy(sizes: Sizes, tell: Tell) -> Figures:
    """Answer many feeds at a rate each, and one feed alone at that rate, and at that of all."""
    feeds, found = copies.names(sizes.busy), Figures()
    total = sizes.rate * sizes.busy
    for name, some, rate, seconds in (
        ("alone", feeds[:1], sizes.rate, sizes.long),
        ("alone_fast", feeds[:1], total, sizes.short),
        ("many", feeds, total, sizes.short),
    ):
        with (
            _filled(sizes, some, tell) as (url, rows),
            _started(url, sizes, some, rows[0]) as (process, _),
        ):
            tell(f"feeds begin their refits at different times: {len(some)}")
            _stagger(url, process, some, rows, sizes.refit_every)
            tell(f"{len(some)} feeds, {rate:g} examples a second for {seconds:g} s")
            before = _processor_seconds(process)
            load = steady(url, process, some, some[:WATCHED], rows, rate, seconds)
            used = (_processor_seconds(process) - before) / load.sent
        found[f"p99_ms_{name}"] = 1e3 * float(np.percentile(load.seconds, 99.0))
        found[f"median_ms_{name}"] = 1e3 * statistics.median(load.seconds)
        found[f"processor_us_{name}"] = 1e6 * used
        found[f"late_ms_{name}"] = 1e3 * load.late
    return found


def new(sizes: Sizes, tell: Tell) -> Figures:
    """Answer feeds at a rate each, alone and then beside new ones, each refit of which is early."""
    feeds = copies.names(sizes.new)
    others = [feed.replace("feeds", "new") for feed in feeds]
    beside = [feed for i in range(HASTE) for feed in (*feeds[i::HASTE], *others)]
    found = Figures()
    with (
        _filled(sizes, feeds, tell) as (url, rows),
        _started(url, sizes, [*feeds, *others], rows[0]) as (process, _),
    ):
        tell(f"feeds begin their refits at different times: {len(feeds)}")
        _stagger(url, process, feeds, rows, sizes.refit_every)
        for name, all_of_them in (("alone", feeds), ("beside", beside)):
            rate = sizes.rate * len(all_of_them)
            tell(f"{len(set(all_of_them))} feeds, {rate:g} examples a second for {sizes.short:g} s")
            load = steady(url, process, all_of_them, feeds, rows, rate, sizes.short)
            for q in (50, 90, 99):
                found[f"p{q}_ms_{name}"] = 1e3 * float(np.percentile(load.seconds, q))
            found[f"late_ms_{name}"] = 1e3 * load.late
    return found


PARTS: dict[str, Callable[[Sizes, Tell], Figures]] = {
    "idle": idle,
    "learning": learning,
    "busy": busy,
    "new": new,
}
"""What can be measured, by name."""


@contextmanager
def _filled(sizes: Sizes, feeds: Sequence[str], tell: Tell) -> Iterator[tuple[str, Pairs]]:
    """Give a Redis with feeds whose windows are full, and examples that they have not seen."""
    learned = sizes.window + sizes.refit_every
    rows = stream(learned + 4 * sizes.refit_every + sizes.replayed)
    # The system's own where there is one, as in production.
    with embedded.temporary(shutil.which("redis-server")) as server:
        tell(f"a feed learns {learned:,} examples")
        copies.fill(server.url, rows[:learned], sizes.options)
        tell(f"{len(feeds):,} copies of it")
        copies.copy(server.url, feeds)
        yield server.url, rows[learned:]


@contextmanager
def _started(
    url: str, sizes: Sizes, feeds: Sequence[str], row: tuple[list[float], str]
) -> Iterator[tuple[Measured, float]]:
    """Run a process on feeds; yield it, and the seconds until each had answered an entry."""
    expected = [seq + 1 for seq in copies.answered(url, feeds)]
    copies.push(url, feeds, [row])
    first, *others = worker(feeds[0], url, sizes.options)[3:]
    began = time.perf_counter()
    with python("-m", "workers.cli", "worker", first, *feeds[1:], *others) as process:
        _until(url, process, feeds, expected)
        yield process, time.perf_counter() - began


def _answer(url: str, process: Measured, feeds: Sequence[str], rows: Pairs) -> None:
    """Push examples to each feed, and wait for the answers."""
    expected = [seq + len(rows) for seq in copies.answered(url, feeds)]
    copies.push(url, feeds, rows)
    _until(url, process, feeds, expected)


def _until(url: str, process: Measured, feeds: Sequence[str], expected: list[int]) -> None:
    deadline = time.monotonic() + MOST_SECONDS
    while copies.answered(url, feeds) != expected:
        process.check()
        if time.monotonic() > deadline:
            raise WorkerEnded(f"feeds were not answered in {MOST_SECONDS:g} s: {process.said}")
        time.sleep(LOOK)


def _stagger(
    url: str, process: Measured, feeds: Sequence[str], rows: Pairs, refit_every: int
) -> None:
    """Bring each feed elsewhere between two refits; wait until all refits are done."""
    for number in range(1, refit_every):
        later = [feed for i, feed in enumerate(feeds) if i * refit_every // len(feeds) >= number]
        if later:
            copies.push(url, later, [rows[number]])
    total = [0]
    while total[-1] != sum(copies.answered(url, feeds)):
        total.append(sum(copies.answered(url, feeds)))
        time.sleep(10 * LOOK)
    before = float("-inf")
    while (now := _processor_seconds(process)) - before > REST_SHARE:
        process.check()
        before = now
        time.sleep(1.0)


def _settled(process: Measured) -> int:
    """Return the bytes that a process holds, once they stay as they are."""
    before = 0
    for _ in range(20):
        time.sleep(20 * LOOK)
        now = resident(process.pid)
        if abs(now - before) < 0.002 * now:
            break
        before = now
    return now


def _processor_seconds(process: Measured) -> float:
    return sum(map(seconds_of, family(process.pid)))


def _each(many: int, two: int, count: int) -> float:
    return (many - two) / max(count - 2, 1)
