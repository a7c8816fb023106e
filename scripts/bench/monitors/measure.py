"""Delays of detectors whose mean run length without a change is 10,000 examples."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version

import numpy as np

from online_svm.predictor.stream_monitors import ONE_CHANGE
from scripts.bench.monitors.detectors import (
    Default,
    Detector,
    Path,
    PlainCusum,
    River,
)
from scripts.bench.monitors.independent import INDEPENDENT, independent_alarms
from scripts.bench.monitors.late import LATE, late_alarms
from scripts.bench.monitors.peers import GlideRisk, OnlineCpJumper
from scripts.bench.monitors.pit import PitBeta
from scripts.bench.monitors.real import REAL, answered
from scripts.bench.monitors.worlds import BURNT, CHANGE, ROWS, WORLDS, Stream, World, stream_of
from workers.errors import BadConfiguration
from workers.history.backtest.kept_results import code_digest

RUN_LENGTH = 10_000
SLOW_SPAN = (4_000, 7_000)
"""Examples that a slow detector looks at; others look at those from `BURNT` on."""

LEVEL = 0.01  # of the default monitors
ALIKE = "i.i.d., class of 20 %"
"""On a real stream a detector has the sensitivity that it has there."""

_OTHER_SEEDS = 1_000_000  # streams that sensitivities are chosen on are no streams of the table

_OF_ALL, _OF_LATE = "default monitors, level .01", "of them, calibration"

OURS: dict[str, Detector] = {
    _OF_ALL: Default(),
    _OF_LATE: Default("calibration"),
    "of them, exchangeability": Default("exchangeability"),
}

PEERS: dict[str, Detector] = {
    "CUSUM (Page)": PlainCusum(),
    "river ADWIN": River(
        "ADWIN", [{"delta": 10.0**-k} for k in (8, 5, 3, 2, 1.5, 1.3, 1.15, 1, 0.7)]
    ),
    "river Page-Hinkley": River(
        "Page-Hinkley",
        [{"threshold": t, "delta": 0.02} for t in (100, 70, 50, 35, 25, 18, 13, 9, 6, 4)],
    ),
    "river DDM": River(
        "DDM", [{"drift_threshold": t} for t in (6, 5, 4.5, 4, 3.5, 3, 2.5, 2)], of_errors=True
    ),
    "online-cp SimpleJumper": OnlineCpJumper(),
    "glide-py AsymptoticPPRM": GlideRisk(),
    "PIT e-values, beta density": PitBeta(),
}

DETECTORS: dict[str, Detector] = OURS | PEERS
STREAMS = (*WORLDS, *INDEPENDENT, *LATE, *REAL)


@dataclass(frozen=True, slots=True)
class Cell:
    """One detector on one kind of stream.

    Attributes
    ----------
    world, detector : str
        Of `STREAMS` and `DETECTORS`.
    streams : int
        Of each kind: with the change, and without it to choose the sensitivity. There is one real
        stream of a name.
    """

    world: str
    detector: str
    streams: int

    def __str__(self) -> str:
        return f"{self.world}, {self.detector}"


@dataclass(frozen=True, slots=True)
class Measured:
    """What a detector did.

    Attributes
    ----------
    streams : int
    false_share : float
        Of streams without a change, those with an alarm.
    found_share : float or None
        Of streams with one, those with an alarm after it, within 5,000 examples, of a slow detector
        2,000; None on a null.
    delay : float or None
        Median number of examples from the change to that alarm.
    """

    streams: int
    false_share: float
    found_share: float | None
    delay: float | None


@dataclass(frozen=True, slots=True)
class Watched:
    """What a detector did on a real stream.

    Attributes
    ----------
    examples : int
        Scored ones.
    alarms : int
        Those within 50 examples of another count as one.
    first : int or None
        Examples before the one that raised the first.
    delay : int or None
        From the stream's first change to the first alarm after it; None where no moment is known.
    """

    examples: int
    alarms: int
    first: int | None
    delay: int | None


Figures = Measured | Watched


def cells_of(worlds: Sequence[str], detectors: Sequence[str], streams: int) -> list[Cell]:
    """Return the cells of a table.

    On nulls only the default monitors have a stated level: of our own answers all together; where
    labels are late, those of calibration. On real streams no slow detector is run.
    """
    return [
        Cell(world, detector, streams)
        for world in worlds
        for detector in detectors
        if _belongs(world, detector)
    ]


def _belongs(world: str, detector: str) -> bool:
    if world in INDEPENDENT:
        return detector == _OF_ALL
    if world in LATE:
        return detector == _OF_LATE
    if world in REAL:
        return not DETECTORS[detector].is_slow
    return not WORLDS[world].is_null or isinstance(DETECTORS[detector], Default)


def program(cell: Cell) -> str:
    """Return which program a detector is of: kept results are of it, and of no other."""
    ours = f"online-svm {code_digest()[:16]}"
    if not cell.detector.startswith(_PACKAGES):
        return ours
    package = cell.detector.partition(" ")[0]
    try:
        peer = f"{package} {version(package)}"
    except PackageNotFoundError:
        peer = package
    return f"{peer} on {ours}" if cell.world in REAL else peer  # the answers are ours


_PACKAGES = ("river ", "online-cp ", "glide-py ")


def measure(cell: Cell) -> Figures | str:
    """Return what a detector did, or why it could not be run."""
    try:
        if cell.world in INDEPENDENT or cell.world in LATE:
            return _false_alarms(cell)
        return _watched(cell) if cell.world in REAL else _measured(cell)
    except BadConfiguration as error:
        return str(error)


def _false_alarms(cell: Cell) -> Measured:
    if (classes := INDEPENDENT.get(cell.world)) is not None:
        alarms = [independent_alarms(classes, seed) for seed in range(cell.streams)]
    else:
        alarms = [late_alarms(LATE[cell.world], seed) for seed in range(cell.streams)]
    return Measured(cell.streams, float(np.mean([bool(found) for found in alarms])), None, None)


def _watched(cell: Cell) -> Watched:
    stream, change = answered(cell.world), REAL[cell.world]
    alarms = stream.rows.n[DETECTORS[cell.detector].alarms(stream, _usual_sensitivity(cell))]
    later = [] if change is None else alarms[alarms >= change].tolist()
    return Watched(
        len(stream.rows),
        changes_in(alarms.tolist()),
        int(alarms[0]) if len(alarms) else None,
        later[0] - change if later and change is not None else None,
    )


def changes_in(alarms: Sequence[int]) -> int:
    """Return how many changes alarms report: those within 50 examples of the first are of one.

    Examples
    --------
    >>> changes_in([100, 110, 149, 150, 400])
    3
    """
    count, begun = 0, -ONE_CHANGE
    for alarm in alarms:
        if alarm >= begun + ONE_CHANGE:
            count, begun = count + 1, alarm
    return count


def _usual_sensitivity(cell: Cell) -> float:
    detector = DETECTORS[cell.detector]
    return (
        LEVEL if isinstance(detector, Default) else _sensitivity_alike(cell.detector, cell.streams)
    )


@cache
def _sensitivity_alike(detector: str, streams: int) -> float:
    return _chosen(DETECTORS[detector], _without_change(WORLDS[ALIKE], streams))[0]


def _without_change(world: World, streams: int) -> list[Stream]:
    return [stream_of(world, _OTHER_SEEDS + seed, quiet=True) for seed in range(streams)]


def _measured(cell: Cell) -> Measured:
    detector, world = DETECTORS[cell.detector], WORLDS[cell.world]
    seeds = range(cell.streams)
    if world.is_null:
        alarms = [detector.first(stream_of(world, seed), 0, LEVEL) for seed in seeds]
        return Measured(len(seeds), float(np.mean([a is not None for a in alarms])), None, None)
    _, end = span_of(detector)
    nulls = [one.until(end) for one in _without_change(world, cell.streams)]
    sensitivity, share_of_nulls = _chosen(detector, nulls)
    streams = (stream_of(world, seed).until(end) for seed in seeds)
    delays = [_delay(detector, stream, sensitivity) for stream in streams]
    found = [delay for delay in delays if delay is not None]
    share = len(found) / len(delays)
    return Measured(len(seeds), share_of_nulls, share, float(np.median(found)) if found else None)


def span_of(detector: Detector) -> tuple[int, int]:
    """Return the first example that a detector looks at, and the one after the last."""
    return SLOW_SPAN if detector.is_slow else (BURNT, ROWS)


def false_share(detector: Detector) -> float:
    """Return the share of streams without a change that may alarm: that of one without memory.

    Examples
    --------
    >>> round(false_share(PlainCusum()), 2), round(false_share(OnlineCpJumper()), 2)
    (0.55, 0.26)
    """
    begin, end = span_of(detector)
    return 1.0 - math.exp(-(end - begin) / RUN_LENGTH)


def _chosen(detector: Detector, nulls: list[Stream]) -> tuple[float, float]:
    """Return the greatest sensitivity of run length 10,000, and the share of false alarms."""
    begun = [(stream, stream.after(span_of(detector)[0])) for stream in nulls]
    most = false_share(detector)
    if isinstance(detector, Path):
        greatest = sorted(float(detector.path(*one).max()) for one in begun)
        allowed = int(most * len(greatest))
        return math.nextafter(greatest[-1 - allowed], math.inf), allowed / len(greatest)
    best, best_share = None, 0.0
    tried = detector.sensitivities
    low, high = 0, len(tried) - 1
    while low <= high:
        middle = (low + high) // 2
        alarms = [detector.first(stream, begin, tried[middle]) for stream, begin in begun]
        share = float(np.mean([alarm is not None for alarm in alarms]))
        if share <= most:
            best, best_share, low = tried[middle], share, middle + 1
        else:
            high = middle - 1
    if best is None:
        raise BadConfiguration("no parameter that was tried has a run length of 10,000")
    return best, best_share


def _delay(detector: Detector, stream: Stream, sensitivity: float) -> int | None:
    """Return the examples from the change to an alarm; a false alarm begins the detector anew."""
    begin, change = stream.after(span_of(detector)[0]), stream.after(CHANGE)
    while begin < len(stream.rows):
        alarm = detector.first(stream, begin, sensitivity)
        if alarm is None:
            return None
        if alarm >= change:
            return int(stream.rows.n[alarm]) - CHANGE
        begin = alarm + 1
    return None
