"""Delays of detectors whose mean run length without a change is 10,000 examples, cell by cell.

A detector, ours or another's, has one parameter that makes it more or less sensitive.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from river import drift
from typing_extensions import override

from online_svm.config.groups import MonitorConfig
from online_svm.metrics.sequential.monitor_set import MonitorSet
from online_svm.types import Floats
from scripts.bench import kept
from scripts.bench.monitors.worlds import (
    BURNT,
    CHANGE,
    INDEPENDENT,
    LATE,
    REAL,
    ROWS,
    WORLDS,
    WatchedStream,
    World,
    answered,
    independent_alarms,
    late_alarms,
    stream_of,
)  # fmt: skip
from scripts.bench.policies import changes
from scripts.bench.report import Result, Values
from scripts.command_line import chosen
from workers.errors import BadConfiguration

RUN_LENGTH = 10_000
FALSE_SHARE = 1.0 - math.exp(-(ROWS - BURNT) / RUN_LENGTH)
"""Share of streams without a change that may alarm, as for a detector without memory."""

MONITOR_LEVEL = 0.01  # of the default monitors
REFERENCE_NULL = "i.i.d., class of 20 %"
"""On a real stream a detector has the sensitivity that it has there."""

_OTHER_SEEDS = 1_000_000  # streams that sensitivities are chosen on are no streams of the table

STREAMS = (*WORLDS, *INDEPENDENT, *LATE, *REAL)

Figures = dict[str, float | None]
"""On simulated streams, of `streams` the share with a false alarm; of those with a change the share
found within 5,000 examples, and the median delay. On a real stream `examples` that were scored,
alarms, the examples before the first, and the delay of the first after the first known change."""


class Detector:
    """Something that looks at a stream from some row on until it raises an alarm."""

    sensitivities: Sequence[float] = ()  # what to try, the least sensitive first

    def first(self, stream: WatchedStream, begin: int, sensitivity: float) -> int | None:
        """Return the row of the first alarm, begun at row `begin`; None if there is none."""
        raise NotImplementedError

    def alarms(self, stream: WatchedStream, sensitivity: float) -> list[int]:
        """Return the rows of all alarms, in order; each restarts the detector."""
        found: list[int] = []
        while (at := self.first(stream, found[-1] + 1 if found else 0, sensitivity)) is not None:
            found.append(at)
        return found


class PlainCusum(Detector):
    """Page's CUSUM of y - p in both directions, with a reference value of half a .05 shift.

    It rises to a threshold: any threshold can be tried at no cost.
    """

    @override
    def first(self, stream: WatchedStream, begin: int, sensitivity: float) -> int | None:
        over = np.flatnonzero(self.path(stream, begin) >= sensitivity)
        return begin + int(over[0]) if len(over) else None

    def path(self, stream: WatchedStream, begin: int) -> Floats:
        """Return the statistic after each row from `begin` on."""
        found, up, down = [], 0.0, 0.0
        for miss in stream.misses[begin:].tolist():
            up, down = max(0.0, up + miss - 0.025), max(0.0, down - miss - 0.025)
            found.append(max(up, down))
        return np.array(found)


class Default(Detector):
    """The default monitors, as a feed has them; their level is what it is."""

    sensitivities = (MONITOR_LEVEL,)

    def __init__(self, kind: str | None = None) -> None:
        self._kind = kind

    @override
    def first(self, stream: WatchedStream, begin: int, sensitivity: float) -> int | None:
        # The monitors have watched since the first row, like a feed's monitors.
        return next((row for row in self.alarms(stream, sensitivity) if row >= begin), None)

    @override
    def alarms(self, stream: WatchedStream, sensitivity: float) -> list[int]:
        found = MonitorSet(MonitorConfig(alarm_level=sensitivity)).update(stream.rows)
        return [one.row for one in found if self._kind in (None, one.kind)]


class River(Detector):
    """A detector of river, on y - p or, where `of_errors`, on whether the label was wrong."""

    def __init__(
        self, make: Any, grid: Sequence[dict[str, float]], of_errors: bool = False
    ) -> None:
        self._make, self._grid, self._of_errors = make, grid, of_errors
        self.sensitivities = range(len(grid))

    @override
    def first(self, stream: WatchedStream, begin: int, sensitivity: float) -> int | None:
        detector = self._make(**self._grid[int(sensitivity)])
        values = stream.misses
        if self._of_errors:
            values = np.argmax(stream.rows.point, axis=1) != stream.rows.columns
        for row, value in enumerate(values[begin:].tolist(), start=begin):
            detector.update(value)
            if detector.drift_detected:
                return row
        return None


OF_ALL, OF_LATE = "default monitors, level .01", "of them, calibration"

DETECTORS: dict[str, Detector] = {
    OF_ALL: Default(),
    OF_LATE: Default("calibration"),
    "of them, exchangeability": Default("exchangeability"),
    "CUSUM (Page)": PlainCusum(),
    "river ADWIN": River(
        drift.ADWIN, [{"delta": 10.0**-k} for k in (8, 5, 3, 2, 1.5, 1.3, 1.15, 1, 0.7)]
    ),
    "river Page-Hinkley": River(
        drift.PageHinkley,
        [{"threshold": t, "delta": 0.02} for t in (100, 70, 50, 35, 25, 18, 13, 9, 6, 4)],
    ),
    "river DDM": River(
        drift.binary.DDM,
        [{"drift_threshold": t} for t in (6, 5, 4.5, 4, 3.5, 3, 2.5, 2)],
        of_errors=True,
    ),
}


def run(
    streams: Annotated[int, typer.Option(min=2, help="Streams of each kind.")] = 200,
    worlds: kept.NamesWithCommas = None,
    detectors: kept.NamesWithCommas = None,
    jobs: kept.Jobs = 1,
    results: kept.ResultsFile = Path("monitors.jsonl"),
) -> Iterator[Result]:
    """Measure how soon a change is found, at the same mean run length without one.

    Simulated streams of 10,000 examples with a change after 5,000: the share found and the median
    delay, compared with river's ADWIN, Page-Hinkley and DDM, and CUSUM. Each is made as sensitive
    as a mean of 10,000 examples to a false alarm allows. The default monitors have their own level,
    and stand on streams without a change as well, also where the default predictor answers, and
    where the labels of one class come sooner.

    And the first 10,000 examples of 2cdt, 2cht, moving-squares and Elec2, answered by the default
    predictor with one machine: how many alarms, the first, and the delay where the change is known.
    """
    names = chosen("--worlds", worlds, ";", STREAMS)
    cells = cells_of(names, chosen("--detectors", detectors, ";", tuple(DETECTORS)), streams)
    found = kept.measured_cells(cells, measure, Figures, results, jobs)
    for cell, one in found.items():
        yield result(cell, one)


@dataclass(frozen=True, slots=True)
class DetectorCell:
    """One detector on streams of one kind."""

    world: str
    detector: str
    streams: int  # with the change, and as many without it to choose the sensitivity

    def __str__(self) -> str:
        return f"{self.world}, {self.detector}"

    @property
    def key(self) -> kept.Key:
        """What it is kept under; on a real stream the answers are ours."""
        of = kept.program(self.detector)
        if self.world in REAL and self.detector.startswith("river "):
            of = f"{of} on {kept.program('ours')}"
        return asdict(self) | {"program": of}


def cells_of(worlds: Sequence[str], detectors: Sequence[str], streams: int) -> list[DetectorCell]:
    """Return the cells of a table."""

    def belongs(world: str, detector: str) -> bool:
        if world in INDEPENDENT:
            return detector == OF_ALL
        if world in LATE:
            return detector == OF_LATE
        is_default = isinstance(DETECTORS[detector], Default)
        return world in REAL or not WORLDS[world].is_null or is_default

    return [DetectorCell(w, d, streams) for w in worlds for d in detectors if belongs(w, d)]


def measure(cell: DetectorCell) -> Figures:
    """Return what a detector did."""
    detector, seeds, name = DETECTORS[cell.detector], range(cell.streams), cell.world
    if name in REAL:
        return _watched(cell)
    if name in INDEPENDENT:
        return _false(bool(independent_alarms(INDEPENDENT[name], seed)) for seed in seeds)
    if name in LATE:
        return _false(bool(late_alarms(LATE[name], seed)) for seed in seeds)
    world = WORLDS[name]
    if world.is_null:
        firsts = (detector.first(stream_of(world, seed), 0, MONITOR_LEVEL) for seed in seeds)
        return _false(first is not None for first in firsts)
    sensitivity, false = _chosen(detector, world, cell.streams)
    delays = [_delay(detector, stream_of(world, seed), sensitivity) for seed in seeds]
    found = [delay for delay in delays if delay is not None]
    return {
        "streams": len(delays),
        "false_share": false,
        "found_share": len(found) / len(delays),
        "delay": float(np.median(found)) if found else None,
    }


def _false(has_alarm: Iterable[bool]) -> Figures:
    found = list(has_alarm)
    share = float(np.mean(found))
    return {"streams": len(found), "false_share": share, "found_share": None, "delay": None}


def _watched(cell: DetectorCell) -> Figures:
    stream, change, detector = answered(cell.world), REAL[cell.world], DETECTORS[cell.detector]
    is_ours = isinstance(detector, Default)
    sensitivity = MONITOR_LEVEL if is_ours else _reference_sensitivity(cell.detector, cell.streams)
    alarms: list[int] = stream.rows.n[detector.alarms(stream, sensitivity)].tolist()
    delays = [alarm - change for alarm in alarms if change is not None and alarm >= change]
    return {
        "examples": len(stream.rows),
        "alarms": len(changes(alarms)),
        "first": alarms[0] if alarms else None,
        "delay": delays[0] if delays else None,
    }


@cache
def _reference_sensitivity(detector: str, streams: int) -> float:
    return _chosen(DETECTORS[detector], WORLDS[REFERENCE_NULL], streams)[0]


def _chosen(detector: Detector, world: World, streams: int) -> tuple[float, float]:
    """Return the greatest sensitivity of run length 10,000, and the share of false alarms."""
    nulls = [stream_of(world, _OTHER_SEEDS + seed, quiet=True) for seed in range(streams)]
    begun = [(stream, stream.after(BURNT)) for stream in nulls]
    if isinstance(detector, PlainCusum):
        greatest = sorted(float(detector.path(*one).max()) for one in begun)
        allowed = int(FALSE_SHARE * len(greatest))
        return math.nextafter(greatest[-1 - allowed], math.inf), allowed / len(greatest)
    best, tried = None, detector.sensitivities
    low, high = 0, len(tried) - 1
    while low <= high:
        middle = (low + high) // 2
        alarms = [detector.first(stream, begin, tried[middle]) for stream, begin in begun]
        share = float(np.mean([alarm is not None for alarm in alarms]))
        if share <= FALSE_SHARE:
            best, low = (tried[middle], share), middle + 1
        else:
            high = middle - 1
    if best is None:
        raise BadConfiguration("no parameter that was tried has a run length of 10,000")
    return best


def _delay(detector: Detector, stream: WatchedStream, sensitivity: float) -> int | None:
    """Return the examples from the change to an alarm; a false alarm restarts the detector."""
    begin, change = stream.after(BURNT), stream.after(CHANGE)
    while (alarm := detector.first(stream, begin, sensitivity)) is not None:
        if alarm >= change:
            return int(stream.rows.n[alarm]) - CHANGE
        begin = alarm + 1
    return None


def result(cell: DetectorCell, found: Figures | str) -> Result:
    """Return what a detector did on a kind of stream, or why it was not run.

    A share that was found has its standard error.
    """
    values: Values = {"world": cell.world, "detector": cell.detector}
    begin = f"{cell.world:<34}{cell.detector:<36}"
    if isinstance(found, str):
        return Result(values | {"skipped": found}, [f"{begin}not run: {found}"])
    count = {name: "-" if value is None else f"{value:,.0f}" for name, value in found.items()}
    if "alarms" in found:
        line = f"alarms {found['alarms']:>4}  first after {count['first']:>6}"
        return Result(values | found, [f"{begin}{line}  delay {count['delay']:>6}"])
    line, error = f"false {found['false_share']:6.1%} of {found['streams']}", None
    if (share := found["found_share"]) is not None:
        error = math.sqrt(share * (1.0 - share) / cell.streams)
        delay = f"median delay {count['delay']:>6}"
        line = f"found {share:6.1%} ± {error:.1%}  {delay}  {line}"
    return Result(values | found | {"found_share_error": error}, [f"{begin}{line}"])
