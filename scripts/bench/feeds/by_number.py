"""One process by the number of its feeds: rate, latency, cost, memory, limits."""

import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from scripts.bench.feed import Pairs
from scripts.bench.feeds import copies
from scripts.bench.feeds.load import steady
from scripts.bench.processes import (
    Measured,
    family,
    redis_seconds,
    require_proc,
    resident,
    seconds_of,
)
from workers.broker.store import Store

MB = 1e6

FULL = 0.9
"""Share of what there is of something from which on it counts as what limits."""

Figures = dict[str, float]


@dataclass(frozen=True, slots=True)
class Used:
    """Seconds of processor time, since each began.

    Attributes
    ----------
    at : float
        When it was looked at, by `time.perf_counter`.
    answering, refits, redis, machine : float
        Of the process that answers, of those that compute refits, of Redis, of all there are.
    """

    at: float
    answering: float
    refits: float
    redis: float
    machine: float

    @classmethod
    def now(cls, process: Measured, store: Store) -> "Used":
        """Return what was used so far."""
        answering = seconds_of(process.pid)
        refits = process.processor_seconds - answering
        return cls(time.perf_counter(), answering, refits, redis_seconds(store), _machine())


def measure(
    process: Measured,
    store: Store,
    feeds: Sequence[str],
    rows: Pairs,
    backlog: int,
    rate: float,
    seconds: float,
    wait: Callable[[], None],
) -> Figures:
    """Return the figures of a process that answers these feeds; all are answered.

    Parameters
    ----------
    process : Measured
    store : Store
        Of any feed on the same Redis.
    feeds : sequence of str
    rows : list of pairs
        Sent again and again.
    backlog : int
        Examples of full load, over all feeds.
    rate, seconds : float
        Examples a second over all feeds of the moderate load, and how long.
    wait : callable
        Returns once no refit is under way.
    """
    found = _full_load(process, store, feeds, rows, max(1, backlog // len(feeds)))
    wait()
    before = Used.now(process, store)
    load = steady(store.url, process, feeds, feeds, rows, rate, seconds)
    after = Used.now(process, store)
    own = after.answering + after.refits - before.answering - before.refits
    family_bytes = {pid: resident(pid) for pid in family(process.pid)}
    return found | {
        "median_ms": 1e3 * statistics.median(load.seconds),
        "p99_ms": 1e3 * float(np.percentile(load.seconds, 99.0)),
        "processor_us_moderate": 1e6 * own / load.sent,
        "redis_us_moderate": 1e6 * (after.redis - before.redis) / load.sent,
        "late_ms": 1e3 * load.late,
        "mb": family_bytes[process.pid] / MB,
        "mb_of_refits": (sum(family_bytes.values()) - family_bytes[process.pid]) / MB,
    }


def _full_load(
    process: Measured, store: Store, feeds: Sequence[str], rows: Pairs, each: int
) -> Figures:
    """Let every feed have a backlog; return the rate from when all of it stands in Redis."""
    goal = sum(copies.answered(store.url, feeds)) + each * len(feeds)
    copies.push(store.url, feeds, [rows[i % len(rows)] for i in range(each)])
    before, first = Used.now(process, store), sum(copies.answered(store.url, feeds))
    last = first
    while last < goal:
        process.check()
        time.sleep(0.1)
        last = sum(copies.answered(store.url, feeds))
    after = Used.now(process, store)
    seconds, answers = after.at - before.at, max(last - first, 1)
    refits = after.refits - before.refits
    memory = sum(map(resident, family(process.pid))) / _memory()
    return {
        "rate": answers / seconds,
        "processor_us_full": 1e6 * (after.answering - before.answering + refits) / answers,
        "redis_us_full": 1e6 * (after.redis - before.redis) / answers,
        "share_thread": (after.answering - before.answering) / seconds,
        "share_refits": refits / seconds,
        "share_redis": (after.redis - before.redis) / seconds,
        "share_machine": (after.machine - before.machine) / seconds / cores(),
        "share_memory": memory,
    }


def limit(found: Mapping[str, float], processors: int) -> str:
    """Return what limits the rate in full load, by the shares of what there is.

    Parameters
    ----------
    found : mapping
        As `measure` returns it.
    processors : int
        Of the machine.

    Examples
    --------
    >>> shares = {"share_thread": 0.97, "share_redis": 0.3, "share_refits": 0.6}
    >>> limit(shares | {"share_machine": 0.95, "share_memory": 0.1}, 2)
    'the thread of the process'
    >>> shares["share_thread"] = 0.8
    >>> limit(shares | {"share_machine": 0.97, "share_memory": 0.1}, 2)
    'the 2 processors together'
    """
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


def table(found: Mapping[str, float], counts: Sequence[int]) -> Iterator[str]:
    """Yield the lines of a table, as docs/scaling.md has it.

    Parameters
    ----------
    found : mapping
        Figures by name and number of feeds: `rate_16`.
    counts : sequence of int
    """
    yield (
        "| feeds | examples a second, full load "
        "| processor time of each: process and refits, Redis | limited by "
        "| moderate load: median, 99th percentile | processor time of each "
        "| memory: process, refits |"
    )
    yield "|---|---|---|---|---|---|---|"
    for count in counts:
        of = {name.rpartition("_")[0]: value for name, value in found.items()
              if name.rpartition("_")[2] == str(count)}  # fmt: skip
        yield (
            f"| {count:,} | {of['rate']:,.0f} "
            f"| {of['processor_us_full']:,.0f} + {of['redis_us_full']:,.0f} microseconds "
            f"| {limit(of, round(of['processors']))}: {_shares(of)} "
            f"| {of['median_ms']:.1f} ms, {of['p99_ms']:.1f} ms "
            f"| {of['processor_us_moderate']:,.0f} + {of['redis_us_moderate']:,.0f} microseconds "
            f"| {of['mb']:,.0f} MB, {of['mb_of_refits']:,.0f} MB |"
        )


def limits(found: Mapping[str, float], counts: Sequence[int]) -> dict[str, str]:
    """Return what limits by the number of feeds."""
    names = ("thread", "redis", "refits", "machine", "memory")
    return {
        str(count): limit(
            {f"share_{name}": found[f"share_{name}_{count}"] for name in names},
            round(found[f"processors_{count}"]),
        )
        for count in counts
    }


def cores() -> int:
    """Return how many processors the machine has."""
    return os.cpu_count() or 1


def _shares(of: Mapping[str, float]) -> str:
    names = ("thread", "refits", "redis", "machine")
    return ", ".join(f"{name} {100 * of[f'share_{name}']:.0f} %" for name in names)


def _machine() -> float:
    """Return the seconds that all processors of the machine were busy."""
    require_proc()
    fields = list(map(int, Path("/proc/stat").read_text().splitlines()[0].split()[1:]))
    idle = fields[3] + fields[4]
    return (sum(fields[:8]) - idle) / os.sysconf("SC_CLK_TCK")


def _memory() -> float:
    """Return the bytes of memory of the machine."""
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
