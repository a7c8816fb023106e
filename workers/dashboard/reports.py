"""The figures of validity reports as arrays to draw: cumulative, and over a window.

Any program may write to `met`, so every value is checked.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from online_svm.types import Floats
from workers.feed.position import parse_id
from workers.reading.answers import as_object, number

FIGURES = ("accuracy", "lower", "probability", "upper", "log_loss", "brier")
"""Figures of a method, in the order of the columns of the arrays here."""

WINDOW_EXAMPLES = 500
"""Scored examples of a window that is computed from the difference of two reports."""


@dataclass(frozen=True, slots=True)
class Report:
    """A validity report."""

    time: float  # milliseconds in its entry ID: when the last example that it covers was added
    n: int  # examples learned
    scored: int  # of these
    methods: dict[str, tuple[float, ...]] = field(repr=False)  # `FIGURES` of each; may be NaN
    message: dict[str, Any] = field(repr=False)  # the whole payload

    @classmethod
    def of(cls, entry_id: bytes, message: Any) -> Self | None:
        """Return the report in a parsed payload; None if it holds none."""
        if not isinstance(message, dict):
            return None
        n, scored = number(message.get("n")), number(message.get("scored"))
        if not (n >= 0 and scored >= 0):
            return None
        named = [(name, message.get(name)) for name in ("headline", "venn")]
        named += list(as_object(message.get("maps")).items())
        methods = {name: _figures(method) for name, method in named if isinstance(method, dict)}
        return cls(float(parse_id(entry_id)[0]), int(n), int(scored), methods, message)

    def part(self, name: str) -> dict[str, Any]:
        """Return a part of the payload; an empty one if the report has none."""
        return as_object(self.message.get(name))


NO_REPORT = Report(math.nan, 0, 0, {}, {})


def windows(report: Report) -> dict[str, Any]:
    """Return the figures of the last scored examples that a report carries."""
    return report.part("windowed")


def _figures(method: Mapping[str, Any]) -> tuple[float, ...]:
    own = as_object(method.get("predicted"))
    return tuple(
        number(own.get(name) if column < 4 else method.get(name))
        for column, name in enumerate(FIGURES)
    )


def cumulative(reports: Sequence[Report], method: str) -> Floats:
    """Return the cumulative figures of a method, a row a report; shape (n_reports, 6)."""
    none = (math.nan,) * len(FIGURES)
    return np.array([r.methods.get(method, none) for r in reports]).reshape(-1, len(FIGURES))


def windowed(reports: Sequence[Report], method: str, window: int = WINDOW_EXAMPLES) -> Floats:
    """Return the figures over the last examples before each report, of shape (n_reports, 6).

    They are differences of cumulative sums: with accuracy a over s examples and b over the first t
    of them, the accuracy over the other s - t examples is (s a - t b) / (s - t). A window reaches
    back to the newest report that is at least `window` examples older; if fewer examples were
    scored, to the first example. It is NaN if that report is not among those given.
    """
    scored = np.array([r.scored for r in reports], dtype=np.float64)
    values = cumulative(reports, method)
    if not len(scored):
        return values
    # Row 0 stands for the time before the first example, where all sums are zero. A window that
    # begins there although it need not is too long: older reports are missing.
    counts = np.concatenate(([0.0], scored))
    sums = np.vstack((np.zeros(values.shape[1]), values * scored[:, None]))
    start = np.maximum(np.searchsorted(counts, scored - window, side="right") - 1, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        found = (sums[1:] - sums[start]) / (scored - counts[start])[:, None]
    found[(start == 0) & (scored >= 2 * window)] = np.nan
    return found


def recent(reports: Sequence[Report]) -> Floats:
    """Return the headline's figures over the last examples, of shape (n_reports, 6).

    They are read from the report; for a feed without `metrics_window`, `windowed` computes them.
    """
    figures = windowed(reports, "headline")
    for row, report in zip(figures, reports, strict=True):
        overall = as_object(windows(report).get("overall"))
        if overall:
            row[:] = [number(overall.get(name)) for name in FIGURES]
    return figures


def parsed(entries: Iterable[tuple[bytes, Any]]) -> list[Report]:
    """Return the reports among entries (ID, payload)."""
    found = (Report.of(entry_id, message) for entry_id, message in entries)
    return [report for report in found if report is not None]
