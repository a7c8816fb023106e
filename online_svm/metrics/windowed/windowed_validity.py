"""The windowed part of a validity report."""

import math
from typing import Self

from online_svm.config.groups import WindowConfig
from online_svm.metrics.reliability import as_bins
from online_svm.metrics.windowed import figures as f
from online_svm.metrics.windowed.figures import ordered_events, ring_keys
from online_svm.metrics.windowed.slice_values import SLICE_VALUES, SliceValues
from online_svm.metrics.windowed.window_ring import (
    BRIER,
    HIT,
    LOG_LOSS,
    LOWER,
    PROBABILITY,
    UPPER,
    WEIGHT,
    WindowRing,
)
from online_svm.storage.state import State
from online_svm.stream.scored_rows import ScoredRows
from online_svm.stream.windowed_report import (
    ClassFigures,
    Descriptive,
    SliceScores,
    WeightedScores,
    WindowedReport,
    WindowScores,
)
from online_svm.types import Floats, Ints

Figures = list[list[float]]
"""Rows as `event_figures` or `group_figures` give them."""

MOST_CLASSES = 32
"""Classes that a report names: it is made often, and must not grow with the number of labels."""


class WindowedValidity:
    """The headline's figures over the last `metrics_window` scored examples, and weighted.

    They do not depend, to the last bit, on how the examples are cut into rows. Memory is that of a
    window: of each example the probability of each class.

    Parameters
    ----------
    config : WindowConfig
        With a `metrics_window`.

    Examples
    --------
    >>> report = WindowedValidity(WindowConfig()).report()
    >>> report.overall.scored, report.overall.accuracy, report.window
    (0, None, 1000)
    """

    def __init__(self, config: WindowConfig) -> None:
        assert config.metrics_window is not None
        self.config = config
        self._ring = WindowRing(config.metrics_window, len(config.slices))

    @classmethod
    def of(cls, config: WindowConfig) -> Self | None:
        """Return the figures that a configuration asks for; None if it asks for none.

        Examples
        --------
        >>> WindowedValidity.of(WindowConfig(metrics_window=None)) is None
        True
        """
        return None if config.metrics_window is None else cls(config)

    def update(self, rows: ScoredRows) -> None:
        """Add answers whose label is known."""
        self._ring.add(rows)

    def report(self, values: SliceValues | None = None) -> WindowedReport:
        """Return the figures of the window as it is.

        Parameters
        ----------
        values : SliceValues, optional
            The values behind the codes of the slices; needed where there are slices.
        """
        ring = self._ring
        weighted = _weighted(ring.sums)
        if not ring.held:
            return WindowedReport(ring.size, NOTHING, weighted, [], [], {}, None)
        k = len(ring.classes)
        keys = ring_keys(ring)
        slices = {} if values is None else self._slices(values, keys)
        keys.sort(axis=1)
        events, by_label, bins, (z, greatest, span) = f.window_figures(
            keys, ring.values, ring.truth, ring.label, k
        )
        figures, sums = events.tolist(), by_label.tolist()
        of, by_class = figures[-1], figures[:k]
        return WindowedReport(
            window=ring.size,
            overall=_overall(sums, by_class, of[f.CALIBRATION_SQUARE]),
            weighted=weighted,
            reliability=as_bins(bins),
            classes=self._classes(sums, by_class),
            slices=slices,
            descriptive=Descriptive(
                None if math.isnan(z) else z, greatest, span, of[f.CALIBRATION_INDEX]
            ),
        )

    def _slices(self, values: SliceValues, keys: Ints) -> dict[str, list[SliceScores]]:
        if not self.config.slices:
            return {}
        ring, events = self._ring, ordered_events(keys)
        report: dict[str, list[SliceScores]] = {}
        for j, name in enumerate(self.config.slices):
            codes, named = ring.codes[j, : ring.held], values.named(j)
            found = f.group_figures(ring.values, ring.truth, ring.label, codes, len(named))
            f.add_events(found, codes, events, len(ring.classes))
            report[name] = [
                SliceScores(value, _scores(of))
                for value, of in zip(named, found.tolist(), strict=True)
                if of[f.GROUP_SIZE]
            ]
        return report

    def _classes(self, by_label: Figures, figures: Figures) -> list[ClassFigures]:
        ring, held = self._ring, self._ring.held
        k = len(ring.classes)
        if k == 2:  # what does not happen to one class happens to the other
            figures = [[*figures[0]], figures[0]]
            figures[0][f.EXPECTED] = held - figures[1][f.EXPECTED]
            figures[0][f.HAPPENED] = held - figures[1][f.HAPPENED]
            figures[0][f.EXCESS] = -figures[1][f.EXCESS]
        report = [
            ClassFigures(
                label=name,
                examples=int(of[f.HAPPENED]),
                frequency=of[f.HAPPENED] / held,
                probability=of[f.EXPECTED] / held,
                z=f.standardised(of[f.EXCESS], of[f.VARIANCE]),
                brier=of[f.BRIER],
                miscalibration=of[f.MISCALIBRATION],
                discrimination=of[f.DISCRIMINATION],
                uncertainty=of[f.UNCERTAINTY],
                calibration_error=f.root(of[f.CALIBRATION_SQUARE]),
                predicted=int(count := told[f.GROUP_SIZE]),
                accuracy=told[f.GROUP_HITS] / count if count else None,
                announced=told[f.GROUP_PROBABILITY] / count if count else None,
            )
            for name, of, told in zip(ring.classes, figures, by_label, strict=True)
        ]
        if k <= MOST_CLASSES:
            return report
        worst = sorted(range(k), key=lambda c: -abs(report[c].z or 0.0))[:MOST_CLASSES]
        return [report[c] for c in sorted(worst)]

    def state(self) -> State:
        """Return the window."""
        return self._ring.state()

    @classmethod
    def from_state(cls, state: State, config: WindowConfig) -> Self:
        """Return what `state` describes.

        Raises
        ------
        LookupError, TypeError, ValueError
            If a part is missing or does not fit.
        """
        validity = cls(config)
        size, n_slices = validity._ring.size, len(config.slices)
        validity._ring = WindowRing.from_state(state, size, n_slices, SLICE_VALUES)
        return validity


NOTHING = WindowScores(0, *[None] * 11)


def _overall(by_label: Figures, by_class: Figures, square: float) -> WindowScores:
    """Return the scores of all examples, from sums by predicted label and figures by class."""
    of = [sum(column) for column in zip(*by_label, strict=True)]
    parts = zip(*(figures[: f.GROUP_SQUARE] for figures in by_class), strict=True)
    of[: f.GROUP_SQUARE] = [sum(part) for part in parts]
    of[f.GROUP_SQUARE] = square
    return _scores(of)


def _scores(row: list[float]) -> WindowScores:
    """Return the figures of a group, at least one example, as scores."""
    size = row[f.GROUP_SIZE]
    return WindowScores(
        scored=int(size),
        accuracy=row[f.GROUP_HITS] / size,
        lower=row[f.GROUP_LOWER] / size,
        probability=row[f.GROUP_PROBABILITY] / size,
        upper=row[f.GROUP_UPPER] / size,
        z=f.standardised(row[f.GROUP_HITS] - row[f.GROUP_PROBABILITY], row[f.GROUP_VARIANCE]),
        log_loss=row[f.GROUP_LOG_LOSS] / size,
        brier=row[f.BRIER],
        miscalibration=row[f.MISCALIBRATION],
        discrimination=row[f.DISCRIMINATION],
        uncertainty=row[f.UNCERTAINTY],
        calibration_error=f.root(row[f.GROUP_SQUARE]),
    )


def _weighted(sums: Floats) -> WeightedScores:
    row = sums.tolist()
    weight = row[WEIGHT]
    if not weight:
        return WeightedScores(0.0, *[None] * 6)
    accuracy, lower, probability, upper, log_loss, brier = (
        row[j] / weight for j in (HIT, LOWER, PROBABILITY, UPPER, LOG_LOSS, BRIER)
    )
    return WeightedScores(weight, accuracy, lower, probability, upper, log_loss, brier)
