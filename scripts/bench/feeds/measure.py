"""The parts of `bench feeds`: each runs the real command on a Redis of its own."""

import time
from collections.abc import Callable
from functools import partial

from scripts.bench.feed import stream
from scripts.bench.feeds import by_number as numbers
from scripts.bench.feeds import copies
from scripts.bench.feeds.load import steady
from scripts.bench.feeds.process import (
    PHASES,
    Sizes,
    answer,
    filled,
    redis,
    settled,
    stagger,
    started,
    wait_for_refits,
)
from scripts.bench.processes import family, resident
from scripts.command_line import tell
from workers.broker.store import Store

MB = 1e6
WATCHED = 20
"""Feeds whose answers are timed, at most."""

Figures = dict[str, float]


def idle(sizes: Sizes) -> Figures:
    """Start a process on many feeds, let it rest, kill it, and start it again."""
    feeds = copies.names(sizes.idle)
    with filled(sizes, feeds) as (url, rows):
        tell("two feeds at rest")
        with started(url, sizes, feeds[:2], rows[0]) as (process, _):
            two = settled(process)
        tell(f"{len(feeds):,} feeds begin after a graceful stop")
        with started(url, sizes, feeds, rows[1]) as (process, stopped):
            taken = process.processor_seconds
            many = settled(process)
            tell(f"{len(feeds):,} feeds at rest for {sizes.rest:g} s")
            before = process.processor_seconds
            time.sleep(sizes.rest)
            share = (process.processor_seconds - before) / sizes.rest
            tell(f"{sizes.replayed} more entries to each")
            answer(url, process, feeds, rows[2 : 2 + sizes.replayed])
            process.kill()
        tell(f"{len(feeds):,} feeds begin after a kill")
        with started(url, sizes, feeds, rows[-1]) as (process, killed):
            tell(f"{len(feeds):,} feeds that all have changed stop")
            began = time.perf_counter()
            process.stop()
            stop = time.perf_counter() - began
        unsaved = copies.unsaved(url, feeds)
    return {
        "start_stopped_s": stopped,
        "start_stopped_processor_s": taken,
        "start_killed_s": killed,
        "stop_s": stop,
        "stop_unsaved": unsaved,
        "share": share,
        "mb": many / MB,
        "mb_of_two": two / MB,
        "mb_a_feed": _each(many, two, len(feeds)),
    }


def learning(sizes: Sizes) -> Figures:
    """Let two feeds learn, then more; compare the memory of the processes that answer them."""
    two, _ = _learned(sizes, 2)
    many, refits = _learned(sizes, sizes.learning)
    return {"mb_a_feed": _each(many, two, sizes.learning), "mb_of_refits": refits / MB}


def _learned(sizes: Sizes, count: int) -> tuple[int, int]:
    """Return the bytes of a process whose feeds have learned, and those of its refit processes."""
    feeds, rows_each = copies.names(count), 5 * sizes.refit_every // 2
    with (
        filled(sizes, feeds) as (url, rows),
        started(url, sizes, feeds, rows[0]) as (process, _),
    ):
        tell(f"{count} feeds learn {rows_each} examples each")
        answer(url, process, feeds, rows[1:rows_each])
        taken = settled(process)
        return taken, sum(map(resident, family(process.pid))) - taken


def _each(many: int, two: int, count: int) -> float:
    return (many - two) / max(count - 2, 1) / MB


def busy(sizes: Sizes) -> Figures:
    """Answer many feeds at a rate each, and one feed alone at that rate, and at that of all."""
    feeds, found = copies.names(sizes.busy), Figures()
    total = sizes.rate * sizes.busy
    for name, some, rate, seconds in (
        ("alone", feeds[:1], sizes.rate, sizes.long),
        ("alone_fast", feeds[:1], total, sizes.short),
        ("many", feeds, total, sizes.short),
    ):
        with (
            filled(sizes, some) as (url, rows),
            started(url, sizes, some, rows[0]) as (process, _),
        ):
            stagger(url, process, some, rows, sizes.refit_every)
            measured = steady(url, process, some, some[:WATCHED], rows, rate, seconds)
            found |= {f"{figure}_{name}": value for figure, value in measured.items()}
    return found


def by_number(sizes: Sizes) -> Figures:
    """Measure a process with each number of feeds, which are copies of feeds between refits."""
    templates = [f"{copies.TEMPLATE}-{number}" for number in range(PHASES)]
    step = sizes.refit_every // PHASES
    learned = sizes.window + sizes.refit_every + step * (PHASES - 1)
    rows = stream(learned + sizes.window)
    feeds, found = copies.names(max(sizes.counts)), Figures()
    with redis() as url:
        tell(f"{PHASES} feeds learn {learned:,} examples")
        copies.fill(url, rows[:learned], sizes.options, templates, step)
        tell(f"{len(feeds):,} copies of them")
        for number, template in enumerate(templates):
            copies.copy(url, feeds[number::PHASES], template)
        for count in sizes.counts:
            tell(f"{count:,} feeds in one process")
            some = feeds[:count]
            with (
                started(url, sizes, some, rows[learned]) as (process, _),
                Store(url, feeds[0]) as store,
            ):
                measured = numbers.measure(
                    process, store, some, rows[learned:], sizes, partial(wait_for_refits, process)
                )
            found |= {f"{name}_{count}": value for name, value in measured.items()}
    return found


PARTS: dict[str, Callable[[Sizes], Figures]] = {
    "idle": idle,
    "learning": learning,
    "busy": busy,
    "sizes": by_number,
}
"""What can be measured, by name."""
