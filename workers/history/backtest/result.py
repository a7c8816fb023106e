"""The figures of one configuration over one history, as they are kept and shown."""

import math

import numpy as np
from pydantic import BaseModel, ConfigDict

from online_svm.metrics.calibration_error import (
    calibration_error_floor,
    squared_calibration_error,
)
from online_svm.metrics.equal_mass_bins import EqualMassBins
from online_svm.metrics.interval_coverage import interval_coverage
from online_svm.metrics.scores import (
    CLIP,
    accuracy,
    brier,
    clipped,
    expected_calibration_error,
    log_loss,
    macro_auc,
)
from online_svm.types import Bools, Floats, Ints
from workers.history.backtest.prequential import HEADLINE, Answered, Classes, Published

POINTS = 200
"""Points of a cumulative curve, at most."""

FEWEST = 2
"""Scored answers without which there are no figures: a calibration error needs two."""


class _Kept(BaseModel):
    """Part of a result, which may come back from a file."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Scores(_Kept):
    """Figures of one published probability.

    For two classes calibration, coverage and width are those of P(second class), and the Brier
    score is (p - y)^2. For more, calibration, coverage and width are those of the class with the
    largest probability, the Brier score is the sum over classes, and the AUC the mean over classes
    of each against the rest. `auc` is None where all scored examples are of one class; coverage
    and width where the method gives no interval.
    """

    log_loss: float
    clipped: int
    brier: float
    accuracy: float
    auc: float | None
    calibration_error: float
    squared_calibration_error: float
    ece: float
    ece_floor: float
    coverage: float | None
    coverage_of_perfect: float | None
    width: float | None


class EntryCounts(_Kept):
    """What became of the entries; see `Answered`."""

    entries: int
    learned: int
    scored: int
    warming: int
    unlabelled: int
    repeated: int
    rejected: dict[str, int]
    reason: str | None


class CumulativeLoss(_Kept):
    """Mean log loss of the headline so far, after some of the scored answers."""

    learned: list[int]
    log_loss: list[float]


class Reliability(_Kept):
    """Mean probability, frequency and size of each bin of equal mass, of the headline."""

    probability: list[float]
    frequency: list[float]
    examples: list[int]


SURE = 2.0
"""Standard errors from which it is said that older rows help, or do not."""


class OlderRowsResult(_Kept):
    """Whether older rows helped a logistic regression; see `online_svm.refit.older_rows`.

    `helps` says whether they would help the headline: only where the regression, with them, loses
    less than the headline does. Where it loses more, what helps it says little.
    """

    window: int
    most: int
    is_all: bool
    window_loss: float
    older_loss: float
    errors: float
    blocks: int
    helps: bool


class Result(_Kept):
    """All figures of one configuration.

    Attributes
    ----------
    classes : list of (str or None)
    counts : EntryCounts
    methods : dict of str to Scores
        The headline first. Empty where fewer than two answers were scored.
    microseconds : float
        Processor time an entry: decoding, answering and learning, refits included.
    loss : CumulativeLoss
    reliability : Reliability
    older_rows : OlderRowsResult or None
        None without a window, or with too few examples.
    """

    classes: list[str | None]
    counts: EntryCounts
    methods: dict[str, Scores]
    microseconds: float
    loss: CumulativeLoss
    reliability: Reliability
    older_rows: OlderRowsResult | None = None


def result_of(answered: Answered) -> Result:
    """Return the figures of what came of a history."""
    counts = EntryCounts(
        entries=answered.n_entries,
        learned=answered.n_learned,
        scored=len(answered.truth),
        warming=answered.n_warming,
        unlabelled=answered.n_unlabelled,
        repeated=answered.n_repeated,
        rejected=answered.rejected,
        reason=answered.reason,
    )
    is_enough = len(answered.truth) >= FEWEST
    methods = answered.methods if is_enough else {}
    figures = {name: scores(one, answered.classes, answered.truth) for name, one in methods.items()}
    return Result(
        classes=list(answered.classes),
        counts=counts,
        methods=figures,
        microseconds=1e6 * answered.seconds / max(1, answered.n_entries),
        loss=_cumulative(answered, methods.get(HEADLINE)),
        reliability=_reliability(answered, methods.get(HEADLINE)),
        older_rows=_older_rows(answered, figures.get(HEADLINE)),
    )


def _older_rows(answered: Answered, headline: Scores | None) -> OlderRowsResult | None:
    found = answered.older_rows
    if found is None or headline is None:
        return None
    helps = found.errors >= SURE and found.older_loss < headline.log_loss
    return OlderRowsResult(**found._asdict(), helps=helps)


def scores(method: Published, classes: Classes, truth: Ints) -> Scores:
    """Return the figures of one published probability.

    Parameters
    ----------
    method : Published
    classes : tuple of (str or None)
    truth : ndarray of shape (n,)
        Column of each true label; at least two.

    Examples
    --------
    >>> said = Published(np.array([[0.8, 0.2], [0.4, 0.6], [0.3, 0.7]]))
    >>> found = scores(said, ("no", "yes"), np.array([0, 1, 0]))
    >>> round(found.log_loss, 3), round(found.accuracy, 3), found.auc
    (0.646, 0.667, 0.5)
    """
    values = method.probabilities
    said, happened, intervals = _event(method, classes, truth)
    squared = squared_calibration_error(said, happened)
    covered = None if intervals is None else interval_coverage(said, intervals, happened)
    of_two = np.column_stack((1.0 - said, said)), happened.astype(np.int64)
    return Scores(
        log_loss=log_loss(values, truth),
        clipped=clipped(values, truth),
        brier=brier(*of_two) if _are_two(classes) else brier(values, truth),
        accuracy=accuracy(values.argmax(axis=1), truth),
        auc=_auc(values, classes, truth),
        calibration_error=math.sqrt(max(0.0, squared)),
        squared_calibration_error=squared,
        ece=expected_calibration_error(said, happened),
        ece_floor=calibration_error_floor(said),
        coverage=covered and covered.coverage,
        coverage_of_perfect=covered and covered.of_perfect,
        width=covered and covered.width,
    )


def _are_two(classes: Classes) -> bool:
    return sum(name is not None for name in classes) == 2


def _event(method: Published, classes: Classes, truth: Ints) -> tuple[Floats, Bools, Floats | None]:
    """Return the event that is held against its frequency: probability, outcome, interval."""
    values, rows = method.probabilities, np.arange(len(truth))
    chosen = np.ones(len(truth), np.int64) if _are_two(classes) else values.argmax(axis=1)
    intervals = None if method.intervals is None else method.intervals[rows, chosen]
    return values[rows, chosen], truth == chosen, intervals


def _auc(values: Floats, classes: Classes, truth: Ints) -> float | None:
    if len(np.unique(truth)) < 2:
        return None
    return macro_auc(values[:, :2] if _are_two(classes) and truth.max() < 2 else values, truth)


def _cumulative(answered: Answered, headline: Published | None) -> CumulativeLoss:
    if headline is None:
        return CumulativeLoss(learned=[], log_loss=[])
    n = len(answered.truth)
    of_truth = headline.probabilities[np.arange(n), answered.truth]
    means = np.cumsum(-np.log(np.maximum(of_truth, CLIP))) / np.arange(1, n + 1)
    shown = np.unique(np.linspace(0, n - 1, min(n, POINTS)).astype(np.int64))
    return CumulativeLoss(learned=answered.learned[shown].tolist(), log_loss=means[shown].tolist())


def _reliability(answered: Answered, headline: Published | None) -> Reliability:
    if headline is None:
        return Reliability(probability=[], frequency=[], examples=[])
    said, happened, _ = _event(headline, answered.classes, answered.truth)
    bins = EqualMassBins.of(said)
    return Reliability(
        probability=bins.means(said).tolist(),
        frequency=bins.frequencies(happened).tolist(),
        examples=bins.counts.tolist(),
    )
