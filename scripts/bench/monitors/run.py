"""Delays of detectors whose mean run length without a change is 10,000 examples, cell by cell."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from scripts.bench.kept import Jobs, Key, NamesWithCommas, ResultsFile, measured_cells, program
from scripts.bench.monitors.answered import (
    INDEPENDENT,
    LATE,
    REAL,
    answered,
    independent_alarms,
    late_alarms,
)
from scripts.bench.monitors.detectors import (
    DETECTORS,
    OF_ALL,
    OF_LATE,
    Default,
    Detector,
    PlainCusum,
)
from scripts.bench.monitors.worlds import (
    BURNT,
    CHANGE,
    ROWS,
    WORLDS,
    WatchedStream,
    World,
    stream_of,
)
from scripts.bench.policies import changes
from scripts.bench.report import Result, Values
from scripts.command_line import chosen
from workers.errors import BadConfiguration

RUN_LENGTH = 10_000
FALSE_SHARE = 1.0 - math.exp(-(ROWS - BURNT) / RUN_LENGTH)
"""Share of streams without a change that may alarm: that of a detector without memory."""

LEVEL = 0.01  # of the default monitors
ALIKE = "i.i.d., class of 20 %"
"""On a real stream a detector has the sensitivity that it has there."""

_OTHER_SEEDS = 1_000_000  # streams that sensitivities are chosen on are no streams of the table

STREAMS = (*WORLDS, *INDEPENDENT, *LATE, *REAL)

Figures = dict[str, float | None]
"""On simulated streams, of `streams` the share with a false alarm; of those with a change the share
found within 5,000 examples, and the median delay. On a real stream `examples` that were scored,
alarms, the examples before the first, and the delay of the first after the first known change."""


def run(
    streams: Annotated[int, typer.Option(min=2, help="Streams of each kind.")] = 200,
    worlds: NamesWithCommas = None,
    detectors: NamesWithCommas = None,
    jobs: Jobs = 1,
    results: ResultsFile = Path("monitors.jsonl"),
) -> Iterator[Result]:
    """Measure how soon a change is found, at the same mean run length without one.

    Simulated streams of 10,000 examples with a change after 5,000: the share found and the median
    delay, beside river's ADWIN, Page-Hinkley and DDM, and CUSUM. Each is made as sensitive as a
    mean of 10,000 examples to a false alarm allows. The default monitors have their own level, and
    stand on streams without a change as well, also where the default predictor answers, and where
    the labels of one class come sooner.

    And the first 10,000 examples of 2cdt, 2cht, moving-squares and Elec2, answered by the default
    predictor with one machine: how many alarms, the first, and the delay where the change is known.
    """
    names = chosen("--worlds", worlds, ";", STREAMS)
    cells = cells_of(names, chosen("--detectors", detectors, ";", tuple(DETECTORS)), streams)
    for cell, found in measured_cells(cells, measure, Figures, results, jobs).items():
        yield result(cell, found)


@dataclass(frozen=True, slots=True)
class DetectorCell:
    """One detector on so many streams of a kind: with the change, and without it to choose the
    sensitivity. There is one real stream of a name.
    """  # noqa: D205

    world: str
    detector: str
    streams: int

    def __str__(self) -> str:
        return f"{self.world}, {self.detector}"

    @property
    def key(self) -> Key:
        """What it is kept under; on a real stream the answers are ours."""
        of = program(self.detector)
        if self.world in REAL and self.detector.startswith("river "):
            of = f"{of} on {program('ours')}"
        return asdict(self) | {"program": of}


def cells_of(worlds: Sequence[str], detectors: Sequence[str], streams: int) -> list[DetectorCell]:
    """Return the cells of a table.

    On nulls only the default monitors have a stated level: of our own answers all together; where
    labels are late, those of calibration.
    """
    return [
        DetectorCell(world, detector, streams)
        for world in worlds
        for detector in detectors
        if _belongs(world, detector)
    ]


def _belongs(world: str, detector: str) -> bool:
    if world in INDEPENDENT:
        return detector == OF_ALL
    if world in LATE:
        return detector == OF_LATE
    if world in REAL:
        return True
    return not WORLDS[world].is_null or isinstance(DETECTORS[detector], Default)


def measure(cell: DetectorCell) -> Figures | str:
    """Return what a detector did, or why it could not be run."""
    detector, seeds = DETECTORS[cell.detector], range(cell.streams)
    try:
        if cell.world in REAL:
            return _watched(cell)
        if cell.world in INDEPENDENT:
            return _false(bool(independent_alarms(INDEPENDENT[cell.world], one)) for one in seeds)
        if cell.world in LATE:
            return _false(bool(late_alarms(LATE[cell.world], one)) for one in seeds)
        world = WORLDS[cell.world]
        if world.is_null:
            firsts = (detector.first(stream_of(world, seed), 0, LEVEL) for seed in seeds)
            return _false(first is not None for first in firsts)
        sensitivity, false = _chosen(detector, world, cell.streams)
        delays = [_delay(detector, stream_of(world, seed), sensitivity) for seed in seeds]
    except BadConfiguration as error:
        return str(error)
    found = [delay for delay in delays if delay is not None]
    return {
        "streams": len(delays),
        "false_share": false,
        "found_share": len(found) / len(delays),
        "delay": float(np.median(found)) if found else None,
    }


def _false(has_alarm: Iterator[bool]) -> Figures:
    found = list(has_alarm)
    share = float(np.mean(found))
    return {"streams": len(found), "false_share": share, "found_share": None, "delay": None}


def _watched(cell: DetectorCell) -> Figures:
    stream, change, detector = answered(cell.world), REAL[cell.world], DETECTORS[cell.detector]
    is_ours = isinstance(detector, Default)
    sensitivity = LEVEL if is_ours else _sensitivity_alike(cell.detector, cell.streams)
    alarms: list[int] = stream.rows.n[detector.alarms(stream, sensitivity)].tolist()
    delays = [alarm - change for alarm in alarms if change is not None and alarm >= change]
    return {
        "examples": len(stream.rows),
        "alarms": len(changes(alarms)),
        "first": alarms[0] if alarms else None,
        "delay": delays[0] if delays else None,
    }


@cache
def _sensitivity_alike(detector: str, streams: int) -> float:
    return _chosen(DETECTORS[detector], WORLDS[ALIKE], streams)[0]


def _chosen(detector: Detector, world: World, streams: int) -> tuple[float, float]:
    """Return the greatest sensitivity of run length 10,000, and the share of false alarms."""
    nulls = [stream_of(world, _OTHER_SEEDS + seed, quiet=True) for seed in range(streams)]
    begun = [(stream, stream.after(BURNT)) for stream in nulls]
    if isinstance(detector, PlainCusum):
        greatest = sorted(float(detector.path(*one).max()) for one in begun)
        allowed = int(FALSE_SHARE * len(greatest))
        return math.nextafter(greatest[-1 - allowed], math.inf), allowed / len(greatest)
    best, best_share = None, 0.0
    tried = detector.sensitivities
    low, high = 0, len(tried) - 1
    while low <= high:
        middle = (low + high) // 2
        alarms = [detector.first(stream, begin, tried[middle]) for stream, begin in begun]
        share = float(np.mean([alarm is not None for alarm in alarms]))
        if share <= FALSE_SHARE:
            best, best_share, low = tried[middle], share, middle + 1
        else:
            high = middle - 1
    if best is None:
        raise BadConfiguration("no parameter that was tried has a run length of 10,000")
    return best, best_share


def _delay(detector: Detector, stream: WatchedStream, sensitivity: float) -> int | None:
    """Return the examples from the change to an alarm; a false alarm begins the detector anew."""
    begin, change = stream.after(BURNT), stream.after(CHANGE)
    while begin < len(stream.rows):
        alarm = detector.first(stream, begin, sensitivity)
        if alarm is None:
            return None
        if alarm >= change:
            return int(stream.rows.n[alarm]) - CHANGE
        begin = alarm + 1
    return None


def result(cell: DetectorCell, found: Figures | str) -> Result:
    """Return what a detector did on a kind of stream, or why it was not run.

    A share that was found has its standard error.

    Examples
    --------
    >>> found = {"streams": 100, "false_share": 0.5, "found_share": 0.2, "delay": 90.0}
    >>> result(DetectorCell("season", "CUSUM (Page)", 100), found).values["found_share_error"]
    0.04
    """
    values: Values = {"world": cell.world, "detector": cell.detector}
    begin = f"{cell.world:<34}{cell.detector:<36}"
    if isinstance(found, str):
        return Result(values | {"skipped": found}, [f"{begin}not run: {found}"])
    count = {name: "-" if value is None else f"{value:,.0f}" for name, value in found.items()}
    if "alarms" in found:
        line = f"alarms {found['alarms']:>4}  first after {count['first']:>6}"
        return Result(values | found, [f"{begin}{line}  delay {count['delay']:>6}"])
    line, share, error = f"false {found['false_share']:6.1%} of {found['streams']}", None, None
    if (share := found["found_share"]) is not None:
        error = math.sqrt(share * (1.0 - share) / cell.streams)
        delay = f"median delay {count['delay']:>6}"
        line = f"found {share:6.1%} ± {error:.1%}  {delay}  {line}"
    return Result(values | found | {"found_share_error": error}, [f"{begin}{line}"])
