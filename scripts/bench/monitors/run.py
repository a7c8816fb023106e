"""Delays of detectors whose mean run length without a change is 10,000 examples, cell by cell.

A detector, ours or another's, has a parameter that makes it more or less sensitive.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from river import drift

from online_svm.config.groups import MonitorConfig
from online_svm.metrics.sequential.monitor_set import MonitorSet
from online_svm.metrics.sequential.wealth import Finding
from online_svm.stream.notice import FeatureNotice, Notice
from scripts.bench import kept
from scripts.bench.monitors.worlds import (
    BURN_IN,
    CHANGE,
    ROWS,
    WORLDS,
    ExactWorld,
    WatchedStream,
    World,
    stream_of,
)
from scripts.bench.quality.compared import records
from scripts.bench.report import Result, Values
from scripts.command_line import chosen
from workers.errors import BadConfiguration

RUN_LENGTH = 10_000
FALSE_SHARE = 1.0 - math.exp(-(ROWS - BURN_IN) / RUN_LENGTH)
"""Share of streams without a change that may alarm, as for a detector without memory."""

MONITOR_LEVEL = 0.01  # of the default monitors
_OTHER_SEEDS = 1_000_000  # streams that sensitivities are chosen on are no streams of the table


First = Callable[[WatchedStream, int, Any], int | None]
"""Of a stream, the row to begin at and a parameter: the row of the first alarm, if there is one."""


def cusum(stream: WatchedStream, begin: int, threshold: float) -> int | None:
    """Alarm by Page's CUSUM of y - p in both directions; its reference is half a .05 shift."""
    up, down = 0.0, 0.0
    for row, miss in enumerate(stream.misses[begin:].tolist(), start=begin):
        up, down = max(0.0, up + miss - 0.025), max(0.0, down - miss - 0.025)
        if max(up, down) >= threshold:
            return row
    return None


def default(stream: WatchedStream, begin: int, level: float) -> int | None:
    """Alarm by the default monitors, which have watched since the first row as those of a feed."""
    found = MonitorSet(MonitorConfig(alarm_level=level)).update(stream.rows)
    rows = (one.row for one in found if isinstance(one, Finding))
    return next((row for row in rows if row >= begin), None)


def noticed(stream: WatchedStream, begin: int, every: int) -> int | None:
    """Alarm at the first notice that opens, also of a feature, or at the first alarm."""
    config = MonitorConfig().model_copy(update={"notice_every": every})  # also below its bound
    monitors = MonitorSet(config)
    rows, opened = [], set[Any]()
    for one in monitors.update(stream.rows):
        if isinstance(one, Finding):
            rows.append(one.row)
        else:
            rows += _opened(one.row, one.notices, opened)
    assert stream.rows.X is not None
    for row, notices in monitors.features.update(stream.rows.X, stream.rows.n):
        rows += _opened(row, notices, opened)
    return min((row for row in rows if row >= begin), default=None)


def _opened(row: int, notices: Sequence[Notice | FeatureNotice], known: set[Any]) -> list[int]:
    """Return the row if a notice is not known yet; know them."""
    new = {(notice.code, notice.opened) for notice in notices} - known
    known |= new
    return [row] if new else []


def of_river(make: Any, of_errors: bool = False) -> First:
    """Alarm by a detector of river, on y - p or, `of_errors`, on whether the label was wrong."""

    def first(stream: WatchedStream, begin: int, options: dict[str, float]) -> int | None:
        detector, values = make(**options), stream.misses
        if of_errors:
            values = np.argmax(stream.rows.point, axis=1) != stream.rows.columns
        for row, value in enumerate(values[begin:].tolist(), start=begin):
            detector.update(value)
            if detector.drift_detected:
                return row
        return None

    return first


OURS = "default monitors, level .01"
NOTICES = "notices and alarms"

DETECTORS: dict[str, tuple[First, Sequence[Any]]] = {
    OURS: (default, [MONITOR_LEVEL]),
    NOTICES: (noticed, np.geomspace(1e6, 30, 50).astype(int).tolist()),
    "CUSUM (Page)": (cusum, np.geomspace(100.0, 2.0, 400).tolist()),
    "river ADWIN": (
        of_river(drift.ADWIN),
        [{"delta": 10.0**-k} for k in (8, 5, 3, 2, 1.5, 1.3, 1.15, 1, 0.7)],
    ),
    "river Page-Hinkley": (
        of_river(drift.PageHinkley),
        [
            {"threshold": t, "delta": 0.005, "alpha": 1.0}
            for t in np.geomspace(100.0, 2.0, 60).tolist()
        ],
    ),
    "river DDM": (
        of_river(drift.binary.DDM, of_errors=True),
        [{"drift_threshold": t} for t in (6, 5, 4.5, 4, 3.5, 3, 2.5, 2)],
    ),
}
"""Each with the parameters that are tried, the least sensitive first."""


def run(
    streams: Annotated[int, typer.Option(min=2, help="Streams of each kind.")] = 200,
    worlds: kept.NamesWithCommas = None,
    detectors: kept.NamesWithCommas = None,
    jobs: kept.Jobs = 1,
    results: kept.ResultsFile = Path("monitors.jsonl"),
) -> Iterator[Result]:
    """Measure how soon a change is found, at the same mean run length without one.

    Simulated streams of 10,000 examples with a change after 5,000: the share found and the median
    delay, compared with river's ADWIN and DDM, and CUSUM. Each is made as sensitive as a mean of
    10,000 examples to a false alarm allows. The default monitors have their own level, and stand on
    streams without a change as well.
    """
    names = chosen("--worlds", worlds, ";", tuple(WORLDS))
    methods = chosen("--detectors", detectors, ";", tuple(DETECTORS))
    values = {"stream": names, "method": methods, "examples": [ROWS], "streams": [streams]}
    cells = [cell for cell in kept.cells_of(DetectorCell, None, **values) if cell.is_run]
    found = kept.measured_cells(cells, measure, results, jobs)
    if not found.empty:
        yield Result(records(found), columns=SHOWN)


SHOWN = {
    "stream": "", "method": "", "found_share": "found", "found_share_error": "±",
    "delay": "median delay", "false_share": "false alarms",
}  # fmt: skip
"""Shares of the streams: of those with a change found within 5,000 examples, and without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectorCell(kept.Cell):
    """One detector on streams of one kind."""

    streams: int  # with the change, and as many without it to choose the sensitivity

    @property
    def is_run(self) -> bool:
        """Whether the cell is of the table: others than ours need a change."""
        return self.method == OURS or not WORLDS[self.stream].is_null


def measure(cell: DetectorCell) -> list[Values]:
    """Return what a detector did."""
    first, tried = DETECTORS[cell.method]
    seeds, world = range(cell.streams), WORLDS[cell.stream]
    if world.is_null:
        alarms = [first(stream_of(world, seed), 0, MONITOR_LEVEL) for seed in seeds]
        return [{"false_share": float(np.mean([alarm is not None for alarm in alarms]))}]
    parameter, false = _chosen(first, tried, world, cell.streams)
    delays = [_delay(first, stream_of(world, seed), parameter) for seed in seeds]
    found = [delay for delay in delays if delay is not None]
    share = len(found) / len(delays)
    return [
        {
            "false_share": false,
            "found_share": share,
            "found_share_error": math.sqrt(share * (1.0 - share) / len(delays)),
            "delay": float(np.median(found)) if found else None,
        }
    ]


def _chosen(
    first: First, tried: Sequence[Any], world: World | ExactWorld, streams: int
) -> tuple[Any, float]:
    """Return the most sensitive parameter of run length 10,000, and the share of false alarms."""
    nulls = [stream_of(world, _OTHER_SEEDS + seed, quiet=True) for seed in range(streams)]
    best, low, high = None, 0, len(tried) - 1
    while low <= high:
        middle = (low + high) // 2
        alarms = [first(stream, stream.after(BURN_IN), tried[middle]) for stream in nulls]
        share = float(np.mean([alarm is not None for alarm in alarms]))
        if share <= FALSE_SHARE:
            best, low = (tried[middle], share), middle + 1
        else:
            high = middle - 1
    if best is None:
        raise BadConfiguration("no parameter that was tried has a run length of 10,000")
    return best


def _delay(first: First, stream: WatchedStream, parameter: Any) -> int | None:
    """Return the examples from the change to an alarm; a false alarm restarts the detector."""
    begin, change = stream.after(BURN_IN), stream.after(CHANGE)
    while (alarm := first(stream, begin, parameter)) is not None:
        if alarm >= change:
            return int(stream.rows.n[alarm]) - CHANGE
        begin = alarm + 1
    return None
