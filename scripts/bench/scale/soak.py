"""Millions of examples through the real worker: nothing may grow, nothing slow down.

A producer pushes a drifting stream and keeps to a high-water mark; the worker is the command with
its default settings, but for a long memory that is full when the run has settled, on an embedded
Redis that writes its append-only file. Memory, key sizes and the rate are sampled all along, and
each must be level.
"""

import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated

import typer

from scripts.bench import harness
from scripts.bench.report import Result, Values, check
from workers.broker.store import Store
from workers.cli.common import note
from workers.config.settings import WorkerSettings
from workers.feed.retention import MARKS_PER_WINDOW
from workers.push.ingest import Pacing, push

HIGH_WATER = 5_000  # entries that may wait for the worker: about a quarter of a second's work

MAX_MEMORY_RATIO = 1.05  # memory at the end / memory after a twentieth of the run
MIN_RATE_RATIO = 0.95  # examples a second in the last tenth / in a tenth at the start
SETTLED_EXAMPLES = 25_000  # then the window is full, every kernel loaded, two snapshots kept

MEMORY_ROWS = 10_000  # of the long memory

_FEED = "soak"
_SAMPLES = 400  # of a run
_LOOK_SECONDS = 0.005  # seconds between two looks at a full feed
_SAMPLES_A_NOTE = 20  # samples between two progress lines
_MEDIAN_SAMPLES = 5  # around a point: one sample may fall into a snapshot
_NODE_ENTRIES = 100  # input is trimmed by whole nodes, of so many entries at most
_STREAM_OVERHEAD = 1.1  # memory of a stream / kept bytes; see `feed.kept_bytes.counted`


SoakSample = dict[str, float]
"""One look at the run, by name: memory in bytes, streams in entries."""

Samples = Sequence[SoakSample]
Measure = Callable[[SoakSample], float]


def run(
    entries: Annotated[int, typer.Option(min=10_000, help="Examples to feed.")] = 2_000_000,
) -> Iterator[Result]:
    """Feed millions of drifting examples: memory, keys and rate must stay level (else exit 1)."""
    samples = soaked(entries)
    last = samples[-1]
    row = {"examples": last["seq"], "seconds": last["seconds"], "examples_a_second": _rate(samples)}
    found = Result([row], checks=checks(samples, WorkerSettings()))
    yield found
    if not found.holds:
        raise typer.Exit(1)


def soaked(entries: int) -> list[SoakSample]:
    """Feed a worker, print progress on standard error, and return samples in order."""
    harness.require_proc()
    step, samples = max(1, entries // _SAMPLES), list[SoakSample]()
    with (
        harness.server() as url,
        harness.python(*harness.worker(_FEED, url), "--memory", str(MEMORY_ROWS)) as process,
        Store(url, _FEED) as store,
    ):
        process.wait_until(lambda: store.state() is not None)
        began = time.monotonic()

        def look() -> int:
            """Return how many entries are answered, after a sample if one is due."""
            process.check()
            seq = harness.answered(store)
            if seq >= (len(samples) + 1) * step or seq == entries:
                samples.append(_sample(store, process.pid, began))
                if len(samples) % _SAMPLES_A_NOTE == 0:
                    note(f"{seq:,} of {entries:,} answered, {_rate(samples[-20:]):,.0f} a second")
            return seq

        def wait_for_room(sent: int, _size: int) -> None:
            while sent - look() > HIGH_WATER:
                time.sleep(_LOOK_SECONDS)

        pacing = Pacing(throttle=wait_for_room)
        push(harness.drifting(entries), url, _FEED, pacing=pacing)
        while look() < entries:
            time.sleep(_LOOK_SECONDS)
    return samples


def _sample(store: Store, pid: int, began: float) -> SoakSample:
    """Return what there is now in a worker's run that began then, by `time.monotonic`."""
    keys, call = store.keys, store.call
    bodies = [key for key in store.snapshot_keys() if ":memory:" not in key]
    sizes = [int(call("STRLEN", key)) for key in bodies]
    return {
        "seconds": time.monotonic() - began,
        "seq": harness.answered(store),
        "worker": harness.resident(pid),
        "refits": harness.resident(harness.refit_process(pid)),
        "redis": int(store.server()["used_memory"]),
        "input": store.length(keys.input),
        "out": store.length(keys.out),
        "dlq": store.length(keys.dlq),
        "out_bytes": call("MEMORY", "USAGE", keys.out) or 0,
        "met_bytes": call("MEMORY", "USAGE", keys.met) or 0,
        "snapshots": len(sizes),
        "snapshot_bytes": sum(sizes),
    }


def checks(samples: Samples, settings: WorkerSettings) -> list[Values]:
    """Return what must be level, from the samples of a whole run in order."""
    entries = samples[-1]["seq"]
    settled = min(max(entries // 20, SETTLED_EXAMPLES), entries // 2)
    later = [one for one in samples if one["seq"] >= settled]
    return [*_memory(later, settings), _rates(later), *_streams(samples, settings)]


def _memory(samples: Samples, settings: WorkerSettings) -> Iterator[Values]:
    def level(name: str, of: Samples, measure: Measure) -> Values:
        first, last = (
            statistics.median(map(measure, some))
            for some in (of[:_MEDIAN_SAMPLES], of[-_MEDIAN_SAMPLES:])
        )
        return check(name, last / first, MAX_MEMORY_RATIO)

    yield level("worker's memory, end / start", samples, lambda s: s["worker"])
    # The peak: a process gives back what it took for each refit.
    third = max(len(samples) // 3, 1)
    peaks = [max(one["refits"] for one in some) for some in (samples[-third:], samples[:third])]
    name = "refit process's peak memory, last third / first"
    yield check(name, peaks[0] / peaks[1], MAX_MEMORY_RATIO)
    name = "bytes of a snapshot, end / start"
    yield level(name, samples, lambda s: s["snapshot_bytes"] / max(s["snapshots"], 1))
    yield level(
        "bytes of an answer in out, end / start", samples, lambda s: s["out_bytes"] / s["out"]
    )
    full = [s for s in samples if s["out"] + settings.batch < s["seq"]]  # some were trimmed
    if len(full) > 2 * _MEDIAN_SAMPLES:
        # Without the reports, which come a hundred times as slowly and are counted by themselves.
        name = "Redis's memory, end / when out was full"
        yield level(name, full, lambda s: s["redis"] - s["met_bytes"])


def _rates(samples: Samples) -> Values:
    first, last = samples[0]["seq"], samples[-1]["seq"]
    begin = [s for s in samples if s["seq"] <= first + last // 10]
    end = [s for s in samples if s["seq"] >= last - last // 10]
    name = "examples a second, end / start"
    return check(name, _rate(end) / _rate(begin), MIN_RATE_RATIO, is_least=True)


def _rate(samples: Samples) -> float:
    first, last = samples[0], samples[-1]
    return (last["seq"] - first["seq"]) / (last["seconds"] - first["seconds"])


def most_kept_input(settings: WorkerSettings) -> float:
    """Return the most answered entries that input holds at any time, each of them learned."""
    if settings.window is None:
        return math.inf
    between = settings.snapshot_every + settings.batch
    if settings.window <= settings.snapshot_every:
        return 2 * between  # the older snapshot lies a window back
    return settings.window + max(between, settings.window // MARKS_PER_WINDOW) + between


def _streams(samples: Samples, settings: WorkerSettings) -> list[Values]:
    # As much again as the high water may wait or be on its way.
    most_input = most_kept_input(settings) + 2 * HIGH_WATER + _NODE_ENTRIES
    most: dict[str, tuple[str, float]] = {
        "entries of in": ("input", most_input),
        "bytes of out": ("out_bytes", _STREAM_OVERHEAD * settings.retain_bytes),
        "bytes of met": ("met_bytes", _STREAM_OVERHEAD * settings.retain_bytes // 4),
        "entries of dlq": ("dlq", 0),
        # A third one is there while the commit that points at it is on its way.
        "snapshots": ("snapshots", 3),
    }
    return [
        check(f"{name}, at most at any time", max(s[field] for s in samples), bound)
        for name, (field, bound) in most.items()
    ]
