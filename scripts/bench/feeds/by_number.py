"""One process by the number of its feeds: rate, latency, cost, memory, limits."""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from scripts.bench.feed import Pairs
from scripts.bench.feeds import copies
from scripts.bench.feeds.load import steady
from scripts.bench.feeds.process import Sizes
from scripts.bench.processes import Measured, family, redis_seconds, resident, seconds_of
from workers.broker.store import Store

MB = 1e6
FULL = 0.9
"""Share of what there is of something from which on it counts as what limits."""

Figures = dict[str, float]


def _used(process: Measured, store: Store) -> Figures:
    """Return the seconds that were used so far, by the clock and by each: of their processors.

    Of the process that answers, of those that compute refits, of Redis, of all processors.
    """
    own = seconds_of(process.pid)
    fields = list(map(int, Path("/proc/stat").read_text().splitlines()[0].split()[1:]))
    busy = sum(fields[:8]) - fields[3] - fields[4]  # all but idle ones
    return {
        "clock": time.perf_counter(),
        "thread": own,
        "refits": process.processor_seconds - own,
        "redis": redis_seconds(store),
        "machine": busy / os.sysconf("SC_CLK_TCK"),
    }


def _since(before: Figures, after: Figures) -> Figures:
    return {name: after[name] - before[name] for name in before}


def measure(
    process: Measured,
    store: Store,
    feeds: Sequence[str],
    rows: Pairs,
    sizes: Sizes,
    wait: Callable[[], None],
) -> Figures:
    """Return the figures of a process that answers these feeds; `wait` until no refit is under way.

    `store` is of any feed on the same Redis, the rows are sent again and again.
    """
    found = _full_load(process, store, feeds, rows, max(1, sizes.backlog // len(feeds)))
    wait()
    before = redis_seconds(store)
    load = steady(store.url, process, feeds, feeds, rows, sizes.moderate, sizes.steady)
    sent = load.pop("sent")
    bytes_of = {pid: resident(pid) for pid in family(process.pid)}
    return found | {
        "median_ms": load["median_ms"],
        "p99_ms": load["p99_ms"],
        "processor_us_moderate": load["processor_us"],
        "redis_us_moderate": 1e6 * (redis_seconds(store) - before) / sent,
        "late_ms": load["late_ms"],
        "mb": bytes_of[process.pid] / MB,
        "mb_of_refits": (sum(bytes_of.values()) - bytes_of[process.pid]) / MB,
        "processors": os.cpu_count() or 1,
    }


def _full_load(
    process: Measured, store: Store, feeds: Sequence[str], rows: Pairs, each: int
) -> Figures:
    """Let every feed have a backlog; return the rate from when all of it stands in Redis."""
    goal = sum(copies.answered(store.url, feeds)) + each * len(feeds)
    copies.push(store.url, feeds, [rows[i % len(rows)] for i in range(each)])
    before, first = _used(process, store), sum(copies.answered(store.url, feeds))
    last = first
    while last < goal:
        process.check()
        time.sleep(0.1)
        last = sum(copies.answered(store.url, feeds))
    used, answers = _since(before, _used(process, store)), max(last - first, 1)
    seconds = used.pop("clock")
    shares = {f"share_{name}": value / seconds for name, value in used.items()}
    shares["share_machine"] /= os.cpu_count() or 1
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "rate": answers / seconds,
        "processor_us_full": 1e6 * (used["thread"] + used["refits"]) / answers,
        "redis_us_full": 1e6 * used["redis"] / answers,
        **shares,
        "share_memory": sum(map(resident, family(process.pid))) / memory,
    }


def limit(found: Mapping[str, float]) -> str:
    """Return what limits the rate in full load, by the shares of what there is.

    Examples
    --------
    >>> shares = {"share_thread": 0.97, "share_redis": 0.3, "share_refits": 0.6, "processors": 2}
    >>> limit(shares | {"share_machine": 0.95, "share_memory": 0.1})
    'the thread of the process'
    >>> shares["share_thread"] = 0.8
    >>> limit(shares | {"share_machine": 0.97, "share_memory": 0.1})
    'the 2 processors together'
    """
    processors = round(found["processors"])
    shares = {
        "memory": found["share_memory"],
        "the thread of the process": found["share_thread"],
        "Redis": found["share_redis"],
        "refits": found["share_refits"] / max(1, processors - 1),
    }
    name, most = max(shares.items(), key=lambda item: item[1])
    if most >= FULL:
        return name
    if found["share_machine"] >= FULL:
        return f"the {processors} processors together"
    return f"none alone; most of all {name}"


def of_count(found: Mapping[str, float], count: int) -> Figures:
    """Return the figures of a number of feeds: `rate` is `rate_16` of sixteen.

    Examples
    --------
    >>> of_count({"rate_1": 0.5, "rate_16": 0.25}, 16)
    {'rate': 0.25}
    """
    parts = {name: name.rpartition("_") for name in found}
    return {parts[name][0]: value for name, value in found.items() if parts[name][2] == str(count)}


def table(found: Mapping[str, float], counts: Sequence[int]) -> Iterator[str]:
    """Yield the lines of a table, as docs/measured.md has it."""
    yield (
        "| feeds | examples a second, full load "
        "| processor time of each: process and refits, Redis | limited by "
        "| moderate load: median, 99th percentile | processor time of each "
        "| memory: process, refits |"
    )
    yield "|---|---|---|---|---|---|---|"
    for count in counts:
        of = of_count(found, count)
        names = ("thread", "refits", "redis", "machine")
        shares = ", ".join(f"{name} {100 * of[f'share_{name}']:.0f} %" for name in names)
        yield (
            f"| {count:,} | {of['rate']:,.0f} "
            f"| {of['processor_us_full']:,.0f} + {of['redis_us_full']:,.0f} microseconds "
            f"| {limit(of)}: {shares} "
            f"| {of['median_ms']:.1f} ms, {of['p99_ms']:.1f} ms "
            f"| {of['processor_us_moderate']:,.0f} + {of['redis_us_moderate']:,.0f} microseconds "
            f"| {of['mb']:,.0f} MB, {of['mb_of_refits']:,.0f} MB |"
        )
