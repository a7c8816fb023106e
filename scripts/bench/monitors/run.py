"""Delays of detectors whose mean run length without a change is 10,000 examples, cell by cell."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path

import numpy as np

from online_svm.predictor.stream_monitors import ONE_CHANGE
from scripts.bench.kept import KeptLines, Key, measured_cells
from scripts.bench.kept import program as program_of
from scripts.bench.monitors.answered import (
    INDEPENDENT,
    LATE,
    REAL,
    answered,
    independent_alarms,
    late_alarms,
)
from scripts.bench.monitors.detectors import DETECTORS, OF_ALL, OF_LATE, Default, Detector, Rising
from scripts.bench.monitors.results import Detection, DetectorCell, DetectorLine, Figures, Watched
from scripts.bench.monitors.worlds import (
    BURNT,
    CHANGE,
    ROWS,
    WORLDS,
    WatchedStream,
    World,
    stream_of,
)
from scripts.bench.report import Tell, silent
from workers.errors import BadConfiguration

RUN_LENGTH = 10_000
FALSE_SHARE = 1.0 - math.exp(-(ROWS - BURNT) / RUN_LENGTH)
"""Share of streams without a change that may alarm: that of a detector without memory."""

LEVEL = 0.01  # of the default monitors
ALIKE = "i.i.d., class of 20 %"
"""On a real stream a detector has the sensitivity that it has there."""

_OTHER_SEEDS = 1_000_000  # streams that sensitivities are chosen on are no streams of the table

STREAMS = (*WORLDS, *INDEPENDENT, *LATE, *REAL)


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


def program(cell: DetectorCell) -> str:
    """Return which programs a result is of; on a real stream the answers are ours."""
    ours = program_of()
    if not cell.detector.startswith("river "):
        return ours
    return f"{program_of('river')} on {ours}" if cell.world in REAL else program_of("river")


def measure(cell: DetectorCell) -> Figures | str:
    """Return what a detector did, or why it could not be run."""
    try:
        if cell.world in INDEPENDENT or cell.world in LATE:
            return _false_alarms(cell)
        return _watched(cell) if cell.world in REAL else _measured(cell)
    except BadConfiguration as error:
        return str(error)


def _false_alarms(cell: DetectorCell) -> Detection:
    if (classes := INDEPENDENT.get(cell.world)) is not None:
        alarms = [independent_alarms(classes, seed) for seed in range(cell.streams)]
    else:
        alarms = [late_alarms(LATE[cell.world], seed) for seed in range(cell.streams)]
    return Detection(cell.streams, float(np.mean([bool(found) for found in alarms])), None, None)


def _watched(cell: DetectorCell) -> Watched:
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


def _usual_sensitivity(cell: DetectorCell) -> float:
    detector = DETECTORS[cell.detector]
    return (
        LEVEL if isinstance(detector, Default) else _sensitivity_alike(cell.detector, cell.streams)
    )


@cache
def _sensitivity_alike(detector: str, streams: int) -> float:
    return _chosen(DETECTORS[detector], _without_change(WORLDS[ALIKE], streams))[0]


def _without_change(world: World, streams: int) -> list[WatchedStream]:
    return [stream_of(world, _OTHER_SEEDS + seed, quiet=True) for seed in range(streams)]


def _measured(cell: DetectorCell) -> Detection:
    detector, world = DETECTORS[cell.detector], WORLDS[cell.world]
    seeds = range(cell.streams)
    if world.is_null:
        alarms = [detector.first(stream_of(world, seed), 0, LEVEL) for seed in seeds]
        return Detection(len(seeds), float(np.mean([a is not None for a in alarms])), None, None)
    sensitivity, share_of_nulls = _chosen(detector, _without_change(world, cell.streams))
    delays = [_delay(detector, stream_of(world, seed), sensitivity) for seed in seeds]
    found = [delay for delay in delays if delay is not None]
    share = len(found) / len(delays)
    return Detection(len(seeds), share_of_nulls, share, float(np.median(found)) if found else None)


def _chosen(detector: Detector, nulls: list[WatchedStream]) -> tuple[float, float]:
    """Return the greatest sensitivity of run length 10,000, and the share of false alarms."""
    begun = [(stream, stream.after(BURNT)) for stream in nulls]
    if isinstance(detector, Rising):
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


def run(
    cells: Sequence[DetectorCell], results: Path, jobs: int = 1, tell: Tell = silent
) -> Iterator[DetectorLine]:
    """Yield a line for each cell, in order; what is measured is kept in a file of JSON lines.

    Parameters
    ----------
    cells : sequence of DetectorCell
    results : Path
        The same command goes on from it. A last line that was cut off is removed.
    jobs : int
        Processes, at most.
    tell : callable
        Is told which cell has ended.

    Raises
    ------
    BadConfiguration
        If the file cannot be read, or a line of it is none of this benchmark.
    """
    kept = KeptLines[Figures](results, Figures)
    for cell, found in measured_cells(cells, measure, kept, _key, jobs, tell).items():
        yield DetectorLine(cell, found)


def _key(cell: DetectorCell) -> Key:
    return asdict(cell) | {"program": program(cell)}
