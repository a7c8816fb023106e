"""Detectors, ours and others', each with one parameter that makes it more or less sensitive."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from river import drift
from typing_extensions import override

from online_svm.config.groups import MonitorConfig
from online_svm.metrics.sequential.monitor_set import MonitorSet
from online_svm.types import Floats
from scripts.bench.monitors.worlds import WatchedStream


class Detector:
    """Something that looks at a stream from some row on until it raises an alarm.

    `sensitivities` are what to try, the least sensitive first.
    """

    sensitivities: Sequence[float] = ()

    def first(self, stream: WatchedStream, begin: int, sensitivity: float) -> int | None:
        """Return the row of the first alarm, begun at row `begin`; None if there is none."""
        raise NotImplementedError

    def alarms(self, stream: WatchedStream, sensitivity: float) -> list[int]:
        """Return the rows of all alarms, in order; each begins the detector anew."""
        found: list[int] = []
        begin = 0
        while begin < len(stream.rows):
            alarm = self.first(stream, begin, sensitivity)
            if alarm is None:
                break
            found.append(alarm)
            begin = alarm + 1
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
        found, greatest = [], [0.0, 0.0]
        for miss in stream.misses[begin:].tolist():
            up, down = greatest
            greatest = [max(0.0, up + miss - 0.025), max(0.0, down - miss - 0.025)]
            found.append(max(greatest))
        return np.array(found)


class Default(Detector):
    """The default monitors, as a feed has them; their level is what it is."""

    sensitivities = (0.01,)

    def __init__(self, kind: str | None = None) -> None:
        self._kind = kind

    @override
    def first(self, stream: WatchedStream, begin: int, sensitivity: float) -> int | None:
        # They have watched since the first row, as those of a feed do.
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

OURS: dict[str, Detector] = {
    OF_ALL: Default(),
    OF_LATE: Default("calibration"),
    "of them, exchangeability": Default("exchangeability"),
}

PEERS: dict[str, Detector] = {
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

DETECTORS: dict[str, Detector] = OURS | PEERS
