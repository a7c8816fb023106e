"""What a method reached on a stream, over its shuffles."""

import math
import statistics
from collections.abc import Iterator
from dataclasses import dataclass

from scripts.bench.kept import StreamCell, mean_and_error, mean_shown
from scripts.bench.report import Values
from workers.history.backtest.result import Scores

HEADINGS = ("log loss", "Brier", "accuracy", "AUC", "calib.", "cover (fair)", "width", "us")


@dataclass(frozen=True, slots=True)
class MethodRun:
    """What came of a cell: all examples that were answered, of which the first 250 are not scored;
    processor time of the run; a row of the table for each probability that the method published.
    """  # noqa: D205

    examples: int
    seconds: float
    rows: dict[str, Scores]


@dataclass(frozen=True, slots=True)
class Quality:
    """What one row reached on one stream, over its shuffles; processor time is of an example."""

    stream: str
    row: str
    examples: int
    microseconds: float
    shuffles: list[Scores]

    def values(self, measure: str) -> list[float]:
        """Return a measure of each shuffle that has it."""
        values = [getattr(one, measure) for one in self.shuffles]
        return [value for value in values if value is not None]

    def mean(self, measure: str) -> float | None:
        """Return the mean of a measure over the shuffles; None where the row has none."""
        values = self.values(measure)
        return mean_and_error(values)[0] if values else None

    @property
    def log_loss(self) -> float:
        """The mean log loss."""
        return mean_and_error(self.values("log_loss"))[0]

    @property
    def calibration_error(self) -> float:
        """The root of the mean debiased squared calibration error; 0 where that is negative."""
        return math.sqrt(max(0.0, self.mean("squared_calibration_error") or 0.0))

    @property
    def log_loss_error(self) -> float | None:
        """Its standard error over the shuffles; None of one."""
        return mean_and_error(self.values("log_loss"))[1]

    def plain(self) -> Values:
        """Return it as JSON values."""
        names = ("log_loss", "brier", "accuracy", "auc", "ece", "ece_floor")
        intervals = ("coverage", "coverage_of_perfect", "width")
        return {
            "stream": self.stream,
            "row": self.row,
            "examples": self.examples,
            "shuffles": len(self.shuffles),
            **{name: self.mean(name) for name in (*names, *intervals)},
            "calibration_error": self.calibration_error,
            "log_loss_error": self.log_loss_error,
            "microseconds": self.microseconds,
        }

    def cells(self) -> list[str]:
        """Return the cells of its table, as `HEADINGS` has them."""
        coverage, fair = self.mean("coverage"), self.mean("coverage_of_perfect")
        covered = "" if coverage is None else f"{100 * coverage:.0f} ({100 * (fair or 0):.0f})"
        brier, accuracy, auc, width = (
            "" if (value := self.mean(name)) is None else f"{value:.{digits}f}"
            for name, digits in (("brier", 4), ("accuracy", 4), ("auc", 4), ("width", 3))
        )
        loss = mean_shown(self.values("log_loss"))
        calibration, time_taken = f"{self.calibration_error:.3f}", f"{self.microseconds:,.0f}"
        return [loss, brier, accuracy, auc, calibration, covered, width, time_taken]


def qualities(measured: Iterator[tuple[StreamCell, MethodRun]]) -> list[Quality]:
    """Return the rows of each stream over its shuffles, in the order of the cells."""
    runs: dict[str, dict[str, list[tuple[MethodRun, Scores]]]] = {}
    for cell, found in measured:
        for row, scored in found.rows.items():
            runs.setdefault(cell.stream, {}).setdefault(row, []).append((found, scored))
    return [
        Quality(
            stream,
            row,
            shuffles[0][0].examples,
            1e6 * statistics.fmean(one.seconds for one, _ in shuffles) / shuffles[0][0].examples,
            [scored for _, scored in shuffles],
        )
        for stream, rows in runs.items()
        for row, shuffles in rows.items()
    ]
