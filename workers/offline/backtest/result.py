"""The figures of one configuration over one history, as they are stored and printed."""

import math

import numpy as np
from pydantic import BaseModel, ConfigDict

from online_svm.config import SCORE
from online_svm.metrics.scores import (
    MIN_SCORED_PROBABILITY,
    EqualMassBins,
    accuracy,
    brier,
    clipped,
    interval_coverage,
    log_loss,
    macro_auc,
    squared_calibration_error,
)
from online_svm.types import Bools, Floats, Ints
from workers.offline.backtest.money import MoneyResult, money_of
from workers.offline.backtest.prequential import HEADLINE, Classes, HistoryOutcome, Published

CURVE_POINTS = 200  # points of a cumulative curve, at most
MIN_SCORED = 2  # scored answers needed for figures: a calibration error needs two


class _Kept(BaseModel):
    """Part of a result; validated, because it may be loaded from a file."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Scores(_Kept):
    """Figures of one published probability.

    For two classes calibration, coverage and width refer to P(second class), and the Brier score is
    (p - y)^2. For more, calibration, coverage and width refer to the class with the largest
    probability; the Brier score is summed over the classes, and the one-vs-rest AUC is averaged
    over them. `auc` is None if all scored examples are of one class; coverage and width are None if
    the method gives no interval.
    """

    log_loss: float
    clipped: int
    brier: float
    accuracy: float
    auc: float | None
    calibration_error: float
    squared_calibration_error: float
    coverage: float | None
    coverage_of_perfect: float | None
    width: float | None


class EntryCounts(_Kept):
    """Counts of the entries by outcome; see `HistoryOutcome`."""

    entries: int
    learned: int
    scored: int
    warming: int
    unlabelled: int
    repeated: int
    rejected: dict[str, int]
    reason: str | None


class CumulativeLoss(_Kept):
    """Cumulative mean log loss of the headline, at up to `CURVE_POINTS` scored answers."""

    learned: list[int]
    log_loss: list[float]


class Reliability(_Kept):
    """Reliability diagram of the headline: each equal-mass bin's mean, frequency and size."""

    probability: list[float]
    frequency: list[float]
    examples: list[int]


SURE_STANDARD_ERRORS = 2.0  # standard errors from which a gain by older rows is significant


class OlderRowsResult(_Kept):
    """Effect of older rows on a logistic regression; see `online_svm.refit.older_rows`."""

    window: int
    most: int
    is_all: bool
    window_loss: float
    older_loss: float
    errors: float
    blocks: int
    # Whether older rows would help the headline: the gain is significant, and the regression with
    # them has a lower log loss than the headline
    helps: bool


class BacktestResult(_Kept):
    """All figures of one configuration."""

    classes: list[str | None]
    counts: EntryCounts
    methods: dict[str, Scores]  # the headline first; empty below `MIN_SCORED` scored answers
    microseconds: float  # processor time per entry: decode, answer, learn and refit
    loss: CumulativeLoss
    reliability: Reliability
    # Of a given score as it came; None without one
    score_reliability: Reliability | None = None
    older_rows: OlderRowsResult | None = None  # None without a window, or with too few examples
    # None without costs
    money: MoneyResult | None = None


def result_of(answered: HistoryOutcome) -> BacktestResult:
    """Return the figures of the outcome of a history."""
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
    is_enough = len(answered.truth) >= MIN_SCORED
    methods = answered.methods if is_enough else {}
    classes, truth = answered.classes, answered.truth
    figures = {name: scores(method, classes, truth) for name, method in methods.items()}
    return BacktestResult(
        classes=list(classes),
        counts=counts,
        methods=figures,
        microseconds=1e6 * answered.seconds / max(1, answered.n_entries),
        loss=_cumulative(answered, methods.get(HEADLINE)),
        reliability=_reliability(answered, methods.get(HEADLINE)),
        score_reliability=_reliability(answered, methods[SCORE]) if SCORE in methods else None,
        older_rows=_older_rows(answered, figures.get(HEADLINE)),
        money=money_of(answered) if is_enough else None,
    )


def _older_rows(answered: HistoryOutcome, headline: Scores | None) -> OlderRowsResult | None:
    found = answered.older_rows
    if found is None or headline is None:
        return None
    helps = found.errors >= SURE_STANDARD_ERRORS and found.older_loss < headline.log_loss
    return OlderRowsResult(**found._asdict(), helps=helps)


def scores(method: Published, classes: Classes, truth: Ints) -> Scores:
    """Return the figures of a method, for at least `MIN_SCORED` scored answers."""
    values = method.probabilities
    predicted, happened, intervals = _event(method, classes, truth)
    squared = squared_calibration_error(predicted, happened)
    covered = None if intervals is None else interval_coverage(predicted, intervals, happened)
    return Scores(
        log_loss=log_loss(values, truth),
        clipped=clipped(values, truth),
        brier=brier(values, truth, sum(name is not None for name in classes)),
        accuracy=accuracy(values.argmax(axis=1), truth),
        auc=_auc(values, classes, truth),
        calibration_error=math.sqrt(max(0.0, squared)),
        squared_calibration_error=squared,
        coverage=covered and covered.coverage,
        coverage_of_perfect=covered and covered.of_perfect,
        width=covered and covered.width,
    )


def _are_two(classes: Classes) -> bool:
    return sum(name is not None for name in classes) == 2


def _event(method: Published, classes: Classes, truth: Ints) -> tuple[Floats, Bools, Floats | None]:
    """Return the event whose calibration is measured: probability, outcome, interval."""
    values, rows = method.probabilities, np.arange(len(truth))
    chosen = np.ones(len(truth), np.int64) if _are_two(classes) else values.argmax(axis=1)
    intervals = None if method.intervals is None else method.intervals[rows, chosen]
    return values[rows, chosen], truth == chosen, intervals


def _auc(values: Floats, classes: Classes, truth: Ints) -> float | None:
    if len(np.unique(truth)) < 2:
        return None
    return macro_auc(values[:, :2] if _are_two(classes) and truth.max() < 2 else values, truth)


def _cumulative(answered: HistoryOutcome, headline: Published | None) -> CumulativeLoss:
    if headline is None:
        return CumulativeLoss(learned=[], log_loss=[])
    n = len(answered.truth)
    p = headline.probabilities[np.arange(n), answered.truth]
    means = np.cumsum(-np.log(np.maximum(p, MIN_SCORED_PROBABILITY))) / np.arange(1, n + 1)
    shown = np.unique(np.linspace(0, n - 1, min(n, CURVE_POINTS)).astype(np.int64))
    return CumulativeLoss(learned=answered.learned[shown].tolist(), log_loss=means[shown].tolist())


def _reliability(answered: HistoryOutcome, headline: Published | None) -> Reliability:
    if headline is None:
        return Reliability(probability=[], frequency=[], examples=[])
    predicted, happened, _ = _event(headline, answered.classes, answered.truth)
    bins = EqualMassBins.of(predicted)
    return Reliability(
        probability=bins.means(predicted).tolist(),
        frequency=bins.frequencies(happened).tolist(),
        examples=bins.counts.tolist(),
    )
