"""The parts of `bench feeds`, each on a Redis of its own, and the bounds of their figures."""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from scripts.bench import harness
from scripts.bench.feeds import load
from scripts.bench.feeds.load import Sizes, SteadyLoad, filled, started, steady
from scripts.bench.harness import Measured, family, redis_seconds, resident
from scripts.bench.kept import KeptLines, ResultsFile
from scripts.bench.report import Result, Values, check
from scripts.command_line import chosen, tell
from workers.broker.store import Store
from workers.config.settings import WorkerSettings
from workers.push.sources import Row

MB = 1e6
MAX_WATCHED = 20  # feeds whose answers are timed
LIMITING_SHARE = 0.9  # share of what there is of something from which on it counts as what limits
STOP_SECONDS: float = WorkerSettings.model_fields["grace"].default

Figures = dict[str, float]


def run(
    parts: Annotated[
        str | None,
        typer.Option(metavar="NAME,...", help="Only these: idle, learning, busy, sizes."),
    ] = None,
    results: ResultsFile = Path("feeds.jsonl"),
) -> Iterator[Result]:
    """Measure memory, processor time, latency and starts of a process of many feeds.

    Feeds have a window of 2,000 examples with 20 features, and are copies of one that was filled.
    idle: memory of a feed at rest, the processor time of all of them, the time from the command
    until each has answered, after a graceful stop and after a kill, and the time of a graceful
    stop. learning: memory of a feed that learns. busy: latency of answers and processor time of an
    example, compared with one feed alone at the rate of one feed and at the rate of all. sizes: for
    1, 4, 16, 200 and 1,000 feeds the rate in full load, what limits it, latency at 100 examples a
    second over all feeds, memory. The makers of the load run on the same machine.
    """
    yield from measured(parts, Sizes(), results)


def measured(parts: str | None, sizes: Sizes, results: Path) -> Iterator[Result]:
    """Yield the results of parts, by default of all; what the file has is not measured again."""
    asked = chosen("--parts", parts, ",", tuple(PARTS))
    kept = KeptLines[Figures](results, Figures)
    for name in asked:
        key = {"part": name, "sizes": sizes.key}
        yield result(name, sizes, kept.measured(key, partial(PARTS[name], sizes)))


def measure_idle(sizes: Sizes) -> Figures:
    """Start a process on many feeds, let it rest, kill it, and start it again."""
    feeds = load.names(sizes.idle)
    with filled(sizes, feeds) as (url, rows):
        tell("two feeds at rest")
        with started(url, sizes, feeds[:2], rows[0]) as (process, _):
            two = load.settled(process)
        tell(f"{len(feeds):,} feeds begin after a graceful stop")
        with started(url, sizes, feeds, rows[1]) as (process, stopped):
            taken = process.processor_seconds
            many = load.settled(process)
            tell(f"{len(feeds):,} feeds at rest for {sizes.rest:g} s")
            before = process.processor_seconds
            time.sleep(sizes.rest)
            share = (process.processor_seconds - before) / sizes.rest
            tell(f"{sizes.replayed} more entries to each")
            load.answer(url, process, feeds, rows[2 : 2 + sizes.replayed])
            process.kill()
        tell(f"{len(feeds):,} feeds begin after a kill")
        with started(url, sizes, feeds, rows[-1]) as (process, killed):
            tell(f"{len(feeds):,} feeds that all have changed stop")
            stop, _ = harness.timed(process.stop)
        unsaved = load.unsaved(url, feeds)
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


def measure_learning(sizes: Sizes) -> Figures:
    """Let two feeds learn, then more; compare the memory of the processes that answer them."""
    rows_each = 5 * sizes.refit_every // 2

    def learned(count: int) -> tuple[int, int]:
        """Return the bytes of a process whose feeds have learned, and of its refit processes."""
        feeds = load.names(count)
        with (
            filled(sizes, feeds) as (url, rows),
            started(url, sizes, feeds, rows[0]) as (process, _),
        ):
            tell(f"{count} feeds learn {rows_each} examples each")
            load.answer(url, process, feeds, rows[1:rows_each])
            taken = load.settled(process)
            return taken, sum(map(resident, family(process.pid))) - taken

    two, _ = learned(2)
    many, refits = learned(sizes.learning)
    return {"mb_a_feed": _each(many, two, sizes.learning), "mb_of_refits": refits / MB}


def _each(many: int, two: int, count: int) -> float:
    return (many - two) / max(count - 2, 1) / MB


def measure_busy(sizes: Sizes) -> Figures:
    """Answer many feeds at a rate each, and one feed alone at that rate and at the total rate."""
    feeds, found = load.names(sizes.busy), Figures()
    total = sizes.rate * sizes.busy
    for name, some, rate, seconds in (
        ("alone", feeds[:1], sizes.rate, 2 * sizes.seconds),
        ("alone_fast", feeds[:1], total, sizes.seconds),
        ("many", feeds, total, sizes.seconds),
    ):
        with (
            filled(sizes, some) as (url, rows),
            started(url, sizes, some, rows[0]) as (process, _),
        ):
            load.stagger(url, process, some, rows, sizes.refit_every)
            measured = steady(
                url, process, some, rows, SteadyLoad(rate, seconds, some[:MAX_WATCHED])
            )
            found |= {f"{figure}_{name}": value for figure, value in measured.items()}
    return found


def measure_sizes(sizes: Sizes) -> Figures:
    """Measure a process with each number of feeds, which are copies of feeds between refits."""
    templates = [f"{load.TEMPLATE}-{number}" for number in range(load.PHASES)]
    step = sizes.refit_every // load.PHASES
    learned = sizes.window + sizes.refit_every + step * (load.PHASES - 1)
    rows = harness.stream(learned + sizes.window)
    feeds, found = load.names(max(sizes.counts)), Figures()
    with load.redis() as url:
        tell(f"{load.PHASES} feeds learn {learned:,} examples")
        load.fill(url, rows[:learned], sizes.options, templates, step)
        tell(f"{len(feeds):,} copies of them")
        for number, template in enumerate(templates):
            load.copy(url, feeds[number :: load.PHASES], template)
        for count in sizes.counts:
            tell(f"{count:,} feeds in one process")
            with (
                started(url, sizes, feeds[:count], rows[learned]) as (process, _),
                Store(url, feeds[0]) as store,
            ):
                measured = _of_size(process, store, feeds[:count], rows[learned:], sizes)
            found |= {f"{name}_{count}": value for name, value in measured.items()}
    return found


def _of_size(
    process: Measured, store: Store, feeds: Sequence[str], rows: Sequence[Row], sizes: Sizes
) -> Figures:
    """Return the figures of a process that answers these feeds, to which rows are sent again."""
    found = _full_load(process, store, feeds, rows, max(1, sizes.backlog // len(feeds)))
    load.wait_for_refits(process)
    before = redis_seconds(store)
    moderate = SteadyLoad(sizes.moderate, sizes.steady, feeds)
    measured = steady(store.url, process, feeds, rows, moderate)
    bytes_of = {pid: resident(pid) for pid in family(process.pid)}
    return found | {
        "median_ms": measured["median_ms"],
        "p99_ms": measured["p99_ms"],
        "processor_us_moderate": measured["processor_us"],
        "redis_us_moderate": 1e6 * (redis_seconds(store) - before) / measured["sent"],
        "late_ms": measured["late_ms"],
        "mb": bytes_of[process.pid] / MB,
        "mb_of_refits": (sum(bytes_of.values()) - bytes_of[process.pid]) / MB,
        "processors": os.cpu_count() or 1,
    }


def _full_load(
    process: Measured, store: Store, feeds: Sequence[str], rows: Sequence[Row], each: int
) -> Figures:
    """Let every feed have a backlog; return the rate from when all of it stands in Redis."""

    def used() -> Figures:
        """Return the seconds so far, by the clock and of the processors by each that used them."""
        own = harness.seconds_of(process.pid)
        fields = list(map(int, Path("/proc/stat").read_text().splitlines()[0].split()[1:]))
        busy = sum(fields[:8]) - fields[3] - fields[4]  # all but idle ones
        return {
            "clock": time.perf_counter(),
            "thread": own,
            "refits": process.processor_seconds - own,
            "redis": redis_seconds(store),
            "machine": busy / os.sysconf("SC_CLK_TCK"),
        }

    def answered() -> int:
        return sum(load.answered(store.url, feeds))

    goal = answered() + each * len(feeds)
    load.push(store.url, feeds, [rows[i % len(rows)] for i in range(each)])
    before, first = used(), answered()
    last = first
    while last < goal:
        process.check()
        time.sleep(0.1)
        last = answered()
    taken, answers = {name: value - before[name] for name, value in used().items()}, last - first
    seconds, answers = taken.pop("clock"), max(answers, 1)
    shares = {f"share_{name}": value / seconds for name, value in taken.items()}
    shares["share_machine"] /= os.cpu_count() or 1
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "rate": answers / seconds,
        "processor_us_full": 1e6 * (taken["thread"] + taken["refits"]) / answers,
        "redis_us_full": 1e6 * taken["redis"] / answers,
        **shares,
        "share_memory": sum(map(resident, family(process.pid))) / memory,
    }


PARTS: dict[str, Callable[[Sizes], Figures]] = {
    "idle": measure_idle,
    "learning": measure_learning,
    "busy": measure_busy,
    "sizes": measure_sizes,
}


def result(part: str, sizes: Sizes, found: Figures) -> Result:
    """Return the figures of a part, whose units are in their names, and the bounds."""
    values: Values = {"part": part, "figures": found}
    lines = [f"{f'{part}: {name}':<42}{value:>17,.2f}" for name, value in found.items()]
    if part == "sizes":
        limits = {str(count): limit(found, count) for count in sizes.counts}
        lines += [f"{count} feeds are limited by {name}" for count, name in limits.items()]
        return Result(values | {"limits": limits}, lines)
    return Result(values, lines, [check(*one) for one in _bounds(part, sizes, found)])


def _bounds(part: str, sizes: Sizes, found: Figures) -> list[tuple[str, float, float]]:
    if part == "idle":
        share = sizes.idle / 1000  # the bounds are for 1,000 feeds; for fewer in proportion
        return [
            ("MB of an idle feed", found["mb_a_feed"], 3.0),
            (f"% of a core, {sizes.idle:,} idle feeds", 100.0 * found["share"], 2.0 * share),
            (f"s to start {sizes.idle:,} after a stop", found["start_stopped_s"], 10.0 * share),
            (f"s to stop {sizes.idle:,}", found["stop_s"], STOP_SECONDS),
        ]
    if part == "learning":
        window = 8 * harness.FEATURES * sizes.window / 1e6
        return [("MB of a feed that learns", found["mb_a_feed"], 5.0 + window)]
    late = found["p99_ms_many"] / found["p99_ms_alone"]
    cost = found["processor_us_many"] / found["processor_us_alone_fast"]
    return [
        (f"p99 of {sizes.busy} feeds / one feed alone", late, 2.0),
        ("processor time an example / alone", cost, 1.25),
    ]


def limit(found: Mapping[str, float], count: int) -> str:
    """Return what limits the rate of so many feeds in full load, by the shares of what there is."""
    processors = round(found[f"processors_{count}"])
    shares = {
        "memory": found[f"share_memory_{count}"],
        "the thread of the process": found[f"share_thread_{count}"],
        "Redis": found[f"share_redis_{count}"],
        "refits": found[f"share_refits_{count}"] / max(1, processors - 1),
    }
    name, most = max(shares.items(), key=lambda item: item[1])
    if most >= LIMITING_SHARE:
        return name
    if found[f"share_machine_{count}"] >= LIMITING_SHARE:
        return f"the {processors} processors together"
    return f"none alone; most of all {name}"
