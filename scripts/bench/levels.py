"""Levels that must not rise over a long run, computed from samples of it."""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scripts.bench.report import Check
from workers.config.settings import WorkerSettings
from workers.feed.input_retention import SPACING

SETTLED = 25_000
"""Examples after which the default window is full, every kernel loaded, two snapshots kept."""

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
    met: int
    dlq: int
    out_bytes: int
    met_bytes: int
    groups: int
    consumers: int
    pending: int
    snapshots: int
    snapshot_bytes: int


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a run may show.

    Attributes
    ----------
    memory : float
        Memory at the end, as a multiple of that after a twentieth of the run.
    rate : float
        Examples a second in the last tenth, as a multiple of those in a tenth at the start.
    """

    memory: float = 1.05
    rate: float = 0.95


def settled_at(entries: int) -> int:
    """Return how many entries to answer before anything is compared: a twentieth, if enough."""
    return min(max(entries // 20, SETTLED), entries // 2)


def checks(
    samples: Sequence[SoakSample], settings: WorkerSettings, high_water: int, bounds: Bounds
) -> list[Check]:
    """Return what must be level, from the samples of a whole run in order."""
    settled = [s for s in samples if s.seq >= settled_at(samples[-1].seq)]
    return [
        *_memory(settled, settings, bounds.memory),
        _rate(settled, bounds.rate),
        *_streams(samples, settings, high_water),
    ]


def _memory(samples: Sequence[SoakSample], settings: WorkerSettings, bound: float) -> list[Check]:
    measures: dict[str, Callable[[SoakSample], float]] = {
        "worker's memory, end / start": lambda s: s.worker,
        "refit process's memory, end / start": lambda s: s.refits,
        "bytes of a snapshot, end / start": lambda s: s.snapshot_bytes / max(s.snapshots, 1),
        "bytes of an answer in out, end / start": lambda s: s.out_bytes / s.out,
    }
    found = [Check(name, _growth(samples, each), bound) for name, each in measures.items()]
    full = [s for s in samples if s.out + settings.batch < s.seq]  # some were trimmed
    if len(full) > 2 * _AROUND:
        # Without the reports, which come a hundred times as slowly and are counted by themselves.
        growth = _growth(full, lambda s: s.redis - s.met_bytes)
        found.append(Check("Redis's memory, end / when out was full", growth, bound))
    return found


def _growth(samples: Sequence[SoakSample], measure: Callable[[SoakSample], float]) -> float:
    first = statistics.median(measure(s) for s in samples[:_AROUND])
    last = statistics.median(measure(s) for s in samples[-_AROUND:])
    return last / first


def _rate(samples: Sequence[SoakSample], bound: float) -> Check:
    first, last = samples[0].seq, samples[-1].seq
    begin = [s for s in samples if s.seq <= first + last // 10]
    end = [s for s in samples if s.seq >= last - last // 10]
    return Check("examples a second, end / start", rate(end) / rate(begin), bound, is_least=True)


def rate(samples: Sequence[SoakSample]) -> float:
    """Return the examples a second from the first sample to the last."""
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


def _streams(
    samples: Sequence[SoakSample], settings: WorkerSettings, high_water: int
) -> list[Check]:
    # As much again as the high water may wait or be on its way.
    most_input = most_kept_input(settings) + 2 * high_water + _NODE
    most = {
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
        Check(f"{name}, at most at any time", max(map(count, samples)), bound)
        for name, (count, bound) in most.items()
    ]
