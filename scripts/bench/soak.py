"""Millions of examples through the real worker: nothing may grow, nothing slow down.

A producer pushes a drifting stream and keeps to a high-water mark; the worker is the command with
its default settings, on an embedded Redis that writes its append-only file. Memory, key sizes and
the rate are sampled all along, and each must be level.
"""

import math
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from scripts.bench.feed import drifting, server
from scripts.bench.processes import Measured, python, refit_process, require_proc, resident, worker
from scripts.bench.report import Result, Values, check
from workers.broker.store import Store
from workers.config.settings import WorkerSettings
from workers.feed.input_retention import SPACING
from workers.push.ingest import push

HIGH_WATER = 5_000
"""Entries that may wait for the worker: about a quarter of a second's work."""

MEMORY, RATE = 1.05, 0.95
"""Memory at the end in parts of that after a twentieth of the run, at most; examples a second in
the last tenth in parts of those in a tenth at the start, at least."""

SETTLED = 25_000
"""Examples after which the default window is full, every kernel loaded, two snapshots kept."""

_FEED = "soak"
_SAMPLES = 400  # of a run
_LOOK = 0.005  # seconds between two looks at a full feed
_TOLD_EVERY = 5.0  # seconds between two progress lines
# Samples around a point of which the median counts: one may fall into a snapshot.
_AROUND = 5
# The trimming of input drops whole nodes, of a hundred entries at most.
_NODE = 100
_OVER = 1.1
"""Memory of a stream in parts of the bytes it keeps, at most; see `feed.kept_bytes.counted`."""


@dataclass(frozen=True, slots=True)
class SoakSample:
    """What there was when `seq` entries were answered; memory in bytes, streams in entries."""

    seconds: float
    seq: int
    worker: int
    refits: int
    redis: int
    input: int
    out: int
    dlq: int
    out_bytes: int
    met_bytes: int
    groups: int
    consumers: int
    pending: int
    snapshots: int
    snapshot_bytes: int


Measure = Callable[[SoakSample], float]


def run(
    entries: Annotated[int, typer.Option(min=10_000, help="Examples to feed.")] = 2_000_000,
) -> Iterator[Result]:
    """Feed millions of drifting examples: memory, keys and rate must stay level (else exit 1)."""
    samples = soaked(entries)
    found = result(samples, checks(samples, WorkerSettings()))
    yield found
    if not found.holds:
        raise typer.Exit(1)


def soaked(entries: int) -> list[SoakSample]:
    """Feed a worker, print progress on standard error, and return samples in order."""
    require_proc()
    with (
        server() as url,
        python(*worker(_FEED, url)) as process,
        Store(url, _FEED) as store,
    ):
        process.wait_until(lambda: store.state() is not None)
        watch = _Watch(store, process, entries)
        push(drifting(entries), url, _FEED, arrays=True, throttle=watch)
        watch.finish()
    return watch.samples


def result(samples: Sequence[SoakSample], found: list[Values]) -> Result:
    """Return what was measured in all, beside what must be level."""
    last = samples[-1]
    values = {"examples": last.seq, "seconds": last.seconds, "samples": len(samples)}
    line = f"{last.seq:,} examples in {last.seconds:,.0f} s, {_rate(samples):,.0f} a second"
    return Result(values, [line], found)


class _Watch:
    """Samples the run, and holds the producer back while too many entries wait."""

    def __init__(self, store: Store, process: Measured, entries: int) -> None:
        self._store, self._process, self._entries = store, process, entries
        self._began = self._told = time.monotonic()
        self._step = max(1, entries // _SAMPLES)
        self.samples: list[SoakSample] = []

    def __call__(self, sent: int) -> None:
        """Return when there is room for more; `sent` entries were pushed so far."""
        while sent - self._look() > HIGH_WATER:
            time.sleep(_LOOK)

    def finish(self) -> None:
        """Wait until everything is answered."""
        while self._look() < self._entries:
            time.sleep(_LOOK)

    def _look(self) -> int:
        """Return how many entries are answered, after a sample if one is due."""
        self._process.check()
        seq = int(self._store.call("HGET", self._store.keys.state, "seq"))
        if seq >= (len(self.samples) + 1) * self._step or seq == self._entries:
            self.samples.append(_sample(self._store, self._process.pid, self._began))
            self._tell()
        return seq

    def _tell(self) -> None:
        now, newest = time.monotonic(), self.samples[-1]
        if now - self._told < _TOLD_EVERY or len(self.samples) < 2:
            return
        self._told = now
        print(
            f"soak: {newest.seq:,} of {self._entries:,} answered, "
            f"{_rate(self.samples[-20:]):,.0f}/s; "
            f"worker {newest.worker / 1e6:,.1f} MB, refits {newest.refits / 1e6:,.1f} MB, "
            f"Redis {newest.redis / 1e6:,.1f} MB",
            file=sys.stderr,
            flush=True,
        )


def _sample(store: Store, pid: int, began: float) -> SoakSample:
    """Return what there is now in a worker's run that began then, by `time.monotonic`."""
    keys = store.keys
    sizes = [int(store.call("STRLEN", key)) for key in store.snapshot_keys()]
    groups = [
        dict(zip(flat[::2], flat[1::2], strict=True))
        for flat in store.call("XINFO", "GROUPS", keys.input)
    ]
    return SoakSample(
        seconds=time.monotonic() - began,
        seq=int(store.call("HGET", keys.state, "seq")),
        worker=resident(pid),
        refits=resident(refit_process(pid)),
        redis=int(store.server()["used_memory"]),
        input=store.length(keys.input),
        out=store.length(keys.out),
        dlq=store.length(keys.dlq),
        out_bytes=store.call("MEMORY", "USAGE", keys.out) or 0,
        met_bytes=store.call("MEMORY", "USAGE", keys.met) or 0,
        groups=len(groups),
        consumers=sum(group[b"consumers"] for group in groups),
        pending=sum(group[b"pending"] for group in groups),
        snapshots=len(sizes),
        snapshot_bytes=sum(sizes),
    )


def checks(samples: Sequence[SoakSample], settings: WorkerSettings) -> list[Values]:
    """Return what must be level, from the samples of a whole run in order."""
    entries = samples[-1].seq
    settled = min(max(entries // 20, SETTLED), entries // 2)
    later = [one for one in samples if one.seq >= settled]
    return [*_memory(later, settings), _rates(later), *_streams(samples, settings)]


def _memory(samples: Sequence[SoakSample], settings: WorkerSettings) -> list[Values]:
    measures: dict[str, Measure] = {
        "worker's memory, end / start": lambda s: s.worker,
        "refit process's memory, end / start": lambda s: s.refits,
        "bytes of a snapshot, end / start": lambda s: s.snapshot_bytes / max(s.snapshots, 1),
        "bytes of an answer in out, end / start": lambda s: s.out_bytes / s.out,
    }
    found = [check(name, _growth(samples, each), MEMORY) for name, each in measures.items()]
    full = [s for s in samples if s.out + settings.batch < s.seq]  # some were trimmed
    if len(full) > 2 * _AROUND:
        # Without the reports, which come a hundred times as slowly and are counted by themselves.
        growth = _growth(full, lambda s: s.redis - s.met_bytes)
        found.append(check("Redis's memory, end / when out was full", growth, MEMORY))
    return found


def _growth(samples: Sequence[SoakSample], measure: Measure) -> float:
    first = statistics.median(measure(s) for s in samples[:_AROUND])
    last = statistics.median(measure(s) for s in samples[-_AROUND:])
    return last / first


def _rates(samples: Sequence[SoakSample]) -> Values:
    first, last = samples[0].seq, samples[-1].seq
    begin = [s for s in samples if s.seq <= first + last // 10]
    end = [s for s in samples if s.seq >= last - last // 10]
    return check("examples a second, end / start", _rate(end) / _rate(begin), RATE, is_least=True)


def _rate(samples: Sequence[SoakSample]) -> float:
    first, last = samples[0], samples[-1]
    return (last.seq - first.seq) / (last.seconds - first.seconds)


def most_kept_input(settings: WorkerSettings) -> float:
    """Return the most answered entries that input holds at any time, each of them learned.

    Input is trimmed with each snapshot, up to the older of the two snapshots or to the newest mark
    that lies a window back, whichever is older (see `workers.feed.input_retention`). Marks are
    snapshots: two neighbours lie no further apart than two snapshots, or than the part of a window
    below which marks are thinned out. A snapshot comes with the first batch at which it is due.

    Examples
    --------
    >>> most_kept_input(WorkerSettings(window=2000, batch=256))
    20512
    >>> most_kept_input(WorkerSettings(window=15_000, batch=256))
    35512
    """
    if settings.window is None:
        return math.inf
    between = settings.snapshot_every + settings.batch
    if settings.window <= settings.snapshot_every:
        return 2 * between  # the older snapshot lies a window back
    return settings.window + max(between, settings.window // SPACING) + between


def _streams(samples: Sequence[SoakSample], settings: WorkerSettings) -> list[Values]:
    # As much again as the high water may wait or be on its way.
    most_input = most_kept_input(settings) + 2 * HIGH_WATER + _NODE
    most: dict[str, tuple[Measure, float]] = {
        "entries of in": (lambda s: s.input, most_input),
        "bytes of out": (lambda s: s.out_bytes, _OVER * settings.retain_bytes),
        "bytes of met": (lambda s: s.met_bytes, _OVER * settings.retain_bytes // 4),
        "entries of dlq": (lambda s: s.dlq, 0),
        # A third one is there while the commit that points at it is on its way.
        "snapshots": (lambda s: s.snapshots, 3),
        "groups of in": (lambda s: s.groups, 1),
        "consumers of in": (lambda s: s.consumers, 0),
        "pending entries of in": (lambda s: s.pending, 0),
    }
    return [
        check(f"{name}, at most at any time", max(map(count, samples)), bound)
        for name, (count, bound) in most.items()
    ]
