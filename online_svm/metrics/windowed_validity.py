"""The windowed part of a validity report: figures of the examples in a ring."""

import math
from typing import NamedTuple, Self

import numpy as np

from online_svm.compiled.elementary import log
from online_svm.compiled.kernel import kernel
from online_svm.compiled.ordered_sums import in_turn
from online_svm.config.groups import WindowConfig
from online_svm.metrics.binomial_interval import proportion
from online_svm.metrics.label_weights import design_effect, weighted_square, with_spread_of_labels
from online_svm.metrics.reliability import BAND_TAIL, N_BINS, as_bins
from online_svm.metrics.scores import MIN_SCORED_PROBABILITY, brier_factor
from online_svm.metrics.window_ring import LOG_LOSS, SliceValues, WindowRing
from online_svm.storage.state_schema import StateSchema, Stored, part
from online_svm.stream.prediction import ScoredRows
from online_svm.stream.validity_report import (
    ClassFigures,
    Descriptive,
    FigureBounds,
    SliceScores,
    WindowedReport,
    WindowScores,
)
from online_svm.types import Bools, Floats, Ints


class Events(NamedTuple):
    """Several events of the same m examples, each sorted like `SortedEvents`."""

    order: Ints  # indices of the examples, shape (n_events, m)
    p: Floats  # probabilities in that order
    happened: Bools  # outcomes in that order


def ring_keys(ring: WindowRing) -> Ints:
    """Return the unsorted `sort_keys` of each event of the examples in a ring.

    Two classes have one event: the second class is true. K > 2 classes have K + 1 events: class k
    is true, for each k, and the predicted label is correct.
    """
    k = len(ring.point)
    keys = np.empty((1 if k == 2 else k + 1, ring.held), dtype=np.int64)
    _keys(ring.point, (ring.values, ring.truth, ring.label), keys)
    return keys


def ordered_events(keys: Ints) -> Events:
    """Sort keys and unpack them into events."""
    order = np.argsort(keys, axis=1)
    return Events(order, *unpacked(np.take_along_axis(keys, order, axis=1)))


def unpacked(keys: Ints) -> tuple[Floats, Bools]:
    """Return the probabilities and the outcomes of keys."""
    p, happened = np.empty(keys.shape), np.empty(keys.shape, dtype=np.bool_)
    _unpack(keys, p, happened)
    return p, happened


# Figures of an event; BRIER to UNCERTAINTY are the fields of `BrierParts`.
BRIER, MISCALIBRATION, DISCRIMINATION, UNCERTAINTY = range(4)
CALIBRATION_SQUARE = 4
EXPECTED, VARIANCE, HAPPENED, EXCESS, N_EVENT = range(5, 10)

# Figures of a group of examples; the first four are the same as for an event.
GROUP_SQUARE, GROUP_HITS, GROUP_LOWER, GROUP_PROBABILITY, GROUP_UPPER = range(4, 9)
GROUP_VARIANCE, GROUP_LOG_LOSS, GROUP_SIZE, N_GROUP = range(9, 13)


def window_figures(
    keys: Ints, values: Floats, truth: Ints, label: Ints, n_classes: int
) -> tuple[Floats, Floats, Floats, tuple[float, float, float]]:
    """Return all figures except those of slices, in one call: a call costs as much as some figures.

    `keys` are those of `ring_keys`, sorted along each row; the ring holds the other arrays.
    Returns the figures of the events, shape (n_events, N_EVENT); the sums over the examples by
    predicted label, shape (n_classes, N_GROUP); and of the last event the reliability bins, shape
    (at most N_BINS, 5), and the statistics of `cumulative_statistics`.
    """
    m, n_events = keys.shape[1], len(keys)
    events, by_label = np.empty((n_events, N_EVENT)), np.zeros((n_classes, N_GROUP))
    bins, diagram = np.empty((N_BINS, 5)), np.empty((3, m + 1), dtype=np.int64)
    scratch = np.empty(m), np.empty(m, dtype=np.bool_), diagram, np.empty(m + 1)
    held, found = (values, truth, label), (events, by_label, bins)
    count, z, kolmogorov_smirnov, kuiper = _window_figures(keys, BAND_TAIL, held, found, scratch)
    return events, by_label, bins[:count], (z, kolmogorov_smirnov, kuiper)


def group_figures(values: Floats, truth: Ints, label: Ints, codes: Ints, n_codes: int) -> Floats:
    """Return sums over the examples of each code, shape (n_codes, N_GROUP); code -1 is skipped.

    Columns that depend on events stay 0.
    """
    found = np.zeros((n_codes, N_GROUP))
    _group_figures((values, truth, label), codes, found)
    return found


def add_events(found: Floats, codes: Ints, events: Events, n_classes: int) -> None:
    """Add the parts of the Brier score and the calibration error to the figures of groups."""
    m, n_begins = len(codes), len(found) + 1
    groups = np.empty(n_begins, dtype=np.int64), np.empty(n_begins, dtype=np.int64)
    diagram = np.empty((3, m + 1), dtype=np.int64)
    scratch = np.empty(m), np.empty(m, dtype=np.bool_), *groups, diagram
    _add_events(found, codes, events, n_classes, scratch)


Held = tuple[Floats, Ints, Ints]  # `values`, `truth` and `label` of a ring


@kernel
def _keys(point: Floats, held: Held, keys: Ints) -> None:
    """Write the keys of each event, shape (n_events, m), for the first m places of a ring."""


@kernel
def _unpack(keys: Ints, p: Floats, happened: Bools) -> None:
    """Write the probabilities and outcomes of keys; arrays have shape (n_events, m)."""


@kernel
def _window_figures(
    keys: Ints,
    tail: float,
    held: Held,
    found: tuple[Floats, Floats, Floats],
    scratch: tuple[Floats, Bools, Ints, Floats],
) -> tuple[int, float, float, float]:
    """Implement `window_figures`; return the number of bins and the three statistics.

    The scratch arrays have shapes (m,), (m,), (3, m + 1) and (m + 1,).
    """


@kernel
def _group_figures(held: Held, codes: Ints, found: Floats) -> None:
    """Add the examples of each code to the figures of its group, shape (n_codes, N_GROUP)."""


@kernel
def _add_events(
    found: Floats,
    codes: Ints,
    events: Events,
    n_classes: int,
    scratch: tuple[Floats, Bools, Ints, Ints, Ints],
) -> None:
    """Add the figures of events to the figures of groups, shape (n_codes, N_GROUP).

    The scratch arrays have shapes (m,), (m,), (n_codes + 1,), (n_codes + 1,) and (3, m + 1).
    """


def standardised(excess: float, variance: float) -> float | None:
    """Return an excess in standard deviations; None if the variance is 0."""
    return excess / math.sqrt(variance) if variance > 0.0 else None


def root(square: float) -> float | None:
    """Return the root of a debiased square: 0 if it is negative, None if it is NaN."""
    return None if math.isnan(square) else math.sqrt(max(0.0, square))


Figures = list[list[float]]  # rows of `window_figures` or `group_figures`, as lists

MAX_REPORTED_CLASSES = 32
"""Maximum number of classes in a report: reports are frequent and must stay small."""


class WindowedValidity(Stored):
    """Scores of the primary prediction: over the last `metrics_window` examples, and weighted.

    The division of the examples into blocks does not change a bit. Memory is proportional to the
    window times the number of classes. If `most` is not 1, each label stands for up to so many
    examples, and is counted so often in each figure; the window is of labels.
    """

    _stored = StateSchema(part("_ring", stored_as=""))

    def __init__(self, config: WindowConfig, most: int = 1) -> None:
        assert config.metrics_window is not None
        self.config = config
        self._ring = WindowRing(config.metrics_window, len(config.slices), most)

    @classmethod
    def of(cls, config: WindowConfig, most: int = 1) -> Self | None:
        """Return the figures that a configuration requests, or None without a window."""
        return None if config.metrics_window is None else cls(config, most)

    def update(self, rows: ScoredRows) -> None:
        """Add labelled predictions."""
        self._ring.add(rows)

    def report(self, values: SliceValues | None = None) -> WindowedReport:
        """Return the figures of the present window; `values` are needed if there are slices."""
        labels, ring = self._ring, self._ring.repeated()
        weighted = labels.weighted()
        if not ring.held:
            return WindowedReport(ring.size, NO_SCORES, weighted, [], [], {}, None, None)
        k = len(ring.classes)
        keys = ring_keys(ring)
        slices = {} if values is None else self._slices(ring, values, keys)
        keys.sort(axis=1)
        events, by_label, bins, (z, kolmogorov_smirnov, kuiper) = window_figures(
            keys, ring.values, ring.truth, ring.label, k
        )
        figures, sums = events.tolist(), by_label.tolist()
        last_event, by_class = figures[-1], figures[:k]
        report = WindowedReport(
            window=labels.size,
            overall=_overall(sums, by_class, last_event[CALIBRATION_SQUARE], _brier_scale(ring)),
            weighted=weighted,
            reliability=as_bins(bins),
            classes=_classes(ring, sums, by_class),
            slices=slices,
            bounds=_bounds(labels),
            descriptive=Descriptive(
                spiegelhalter_z=None if math.isnan(z) else z,
                kolmogorov_smirnov=kolmogorov_smirnov,
                kuiper=kuiper,
            ),
        )
        if labels.weights is None:
            return report
        p, happened = unpacked(ring_keys(labels)[-1:])
        weights = labels.weights[: labels.held]
        square = weighted_square(p[0], happened[0], weights, CALIBRATION_BINS)
        return with_spread_of_labels(report, labels.held, design_effect(weights), square)

    def _slices(
        self, ring: WindowRing, values: SliceValues, keys: Ints
    ) -> dict[str, list[SliceScores]]:
        if not self.config.slices:
            return {}
        events = ordered_events(keys)
        report: dict[str, list[SliceScores]] = {}
        for j, name in enumerate(self.config.slices):
            codes, named = ring.codes[j, : ring.held], values.named(j)
            found = group_figures(ring.values, ring.truth, ring.label, codes, len(named))
            add_events(found, codes, events, len(ring.classes))
            report[name] = [
                SliceScores(value, _scores(figures, _brier_scale(ring)))
                for value, figures in zip(named, found.tolist(), strict=True)
                if figures[GROUP_SIZE]
            ]
        return report


NORMAL_95 = 1.96
CALIBRATION_BINS = 15  # N_BINS in `scores.py`

NO_SCORES = WindowScores(0, *[None] * 11)


def _classes(ring: WindowRing, by_label: Figures, figures: Figures) -> list[ClassFigures]:
    held, k = ring.held, len(ring.classes)
    if k == 2:  # the two events are complementary
        figures = [[*figures[0]], figures[0]]
        figures[0][EXPECTED] = held - figures[1][EXPECTED]
        figures[0][HAPPENED] = held - figures[1][HAPPENED]
        figures[0][EXCESS] = -figures[1][EXCESS]
    report = [
        ClassFigures(
            label=name,
            examples=int(of[HAPPENED]),
            frequency=of[HAPPENED] / held,
            probability=of[EXPECTED] / held,
            z=standardised(of[EXCESS], of[VARIANCE]),
            brier=of[BRIER],
            miscalibration=of[MISCALIBRATION],
            discrimination=of[DISCRIMINATION],
            uncertainty=of[UNCERTAINTY],
            calibration_error=root(of[CALIBRATION_SQUARE]),
            predicted=int(count := sums[GROUP_SIZE]),
            accuracy=sums[GROUP_HITS] / count if count else None,
            announced=sums[GROUP_PROBABILITY] / count if count else None,
        )
        for name, of, sums in zip(ring.classes, figures, by_label, strict=True)
    ]
    if k <= MAX_REPORTED_CLASSES:
        return report
    worst = sorted(range(k), key=lambda c: -abs(report[c].z or 0.0))[:MAX_REPORTED_CLASSES]
    return [report[c] for c in sorted(worst)]


def _bounds(ring: WindowRing) -> FigureBounds:
    """Return the intervals of the means; a label counts for the examples for which it stands."""
    held, k = ring.held, len(ring.classes)
    truth, hits = ring.truth[:held], ring.truth[:held] == ring.label[:held]
    brier = np.zeros(held)
    for c in range(k):
        miss = ring.point[c, :held] - (truth == c)
        brier += miss * miss
    brier *= brier_factor(ring.n_known)
    if ring.weights is None:
        weights, total = np.ones(held), float(held)
        exact = proportion(int(np.count_nonzero(hits)), held)
        accuracy = exact.lower, exact.upper
    else:
        weights = ring.weights[:held]
        total = math.fsum(weights.tolist())
        accuracy = _normal_bounds(hits.astype(np.float64), weights, total, 1.0)
    losses, worst = ring.values[LOG_LOSS, :held], -log(MIN_SCORED_PROBABILITY)
    return FigureBounds(
        accuracy=accuracy,
        log_loss=_normal_bounds(losses, weights, total, worst),
        brier=_normal_bounds(brier, weights, total, 2.0),
    )


def _normal_bounds(
    values: Floats, weights: Floats, total: float, most: float
) -> tuple[float, float]:
    """Return the normal interval of a weighted mean of values in [0, `most`].

    `total`: sum of the weights.

    The variance of sum w x / sum w is about sum w^2 (x - mean)^2 / (sum w)^2 (Cochran 1977,
    "Sampling techniques", 6.4). Sums are exact, so that each machine finds the same.
    """
    m = len(values)
    mean = math.fsum((weights * values).tolist()) / total
    apart = weights * (values - mean)
    variance = math.fsum((apart * apart).tolist()) / (total * total)
    reach = NORMAL_95 * math.sqrt(variance * m / (m - 1)) if m > 1 else most
    return max(0.0, mean - reach), min(most, mean + reach)


def _brier_scale(ring: WindowRing) -> float:
    """Return the factor of a Brier score that is summed over the events of the classes.

    Two columns have one event, with half of the sum over the classes.
    """
    return brier_factor(ring.n_known) * (2.0 if len(ring.classes) == 2 else 1.0)


def _overall(by_label: Figures, by_class: Figures, square: float, scale: float) -> WindowScores:
    """Return the scores of all examples, from sums by predicted label and figures by class."""
    total = [in_turn(column) for column in zip(*by_label, strict=True)]
    parts = zip(*(figures[:GROUP_SQUARE] for figures in by_class), strict=True)
    total[:GROUP_SQUARE] = [in_turn(part) for part in parts]
    total[GROUP_SQUARE] = square
    return _scores(total, scale)


def _scores(row: list[float], scale: float) -> WindowScores:
    """Convert the figures of a group of at least one example to scores; see `_brier_scale`."""
    size = row[GROUP_SIZE]
    return WindowScores(
        scored=int(size),
        accuracy=row[GROUP_HITS] / size,
        lower=row[GROUP_LOWER] / size,
        probability=row[GROUP_PROBABILITY] / size,
        upper=row[GROUP_UPPER] / size,
        z=standardised(row[GROUP_HITS] - row[GROUP_PROBABILITY], row[GROUP_VARIANCE]),
        log_loss=row[GROUP_LOG_LOSS] / size,
        brier=scale * row[BRIER],
        miscalibration=scale * row[MISCALIBRATION],
        discrimination=scale * row[DISCRIMINATION],
        uncertainty=scale * row[UNCERTAINTY],
        calibration_error=root(row[GROUP_SQUARE]),
    )
