"""Scores of a finished run of probabilities, for tables and benchmarks.

The binned calibration error of a perfect forecaster is positive: in each bin the frequency differs
from the mean probability by chance. `squared_calibration_error` subtracts an estimate of this
excess (Broecker 2012, "Estimating reliability and resolution of probability forecasts through
decomposition of the empirical score"; Kumar, Liang & Ma 2019, "Verified uncertainty calibration").
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from online_svm.calibration.diagram import (
    check_codes,
    check_labels,
    check_scores,
    pool_ties,
)
from online_svm.errors import InvalidInput
from online_svm.metrics.reliability import (
    bin_ends,
    check_probabilities,
    check_unit,
    debiased_square,
    sorted_events,
)
from online_svm.types import Floats, Ints

MIN_SCORED_PROBABILITY = 1e-6  # smaller probabilities are clipped, so that the log loss is finite
N_BINS = 15  # equal-mass bins of the calibration errors
N_SIMULATIONS = 200  # of the outcomes of perfect probabilities


def log_loss(probabilities: ArrayLike, codes: ArrayLike) -> float:
    """Return the mean natural-log loss of the true class, probabilities clipped below at 1e-6.

    `probabilities` has shape (n_samples, n_classes), `codes` the true class of each example. Raises
    InvalidInput if a probability is not in [0, 1], a code is out of range, or there are no
    examples.
    """
    p_of_truth = np.maximum(_of_truth(probabilities, codes), MIN_SCORED_PROBABILITY)
    return float(-np.log(p_of_truth).mean())


def clipped(probabilities: ArrayLike, codes: ArrayLike) -> int:
    """Return the number of probabilities that `log_loss` clips."""
    return int(np.count_nonzero(_of_truth(probabilities, codes) < MIN_SCORED_PROBABILITY))


def brier_factor(n_known: int) -> float:
    """Return the factor of the sum over classes in a printed Brier score: 1/2 for two classes.

    `n_known`: number of classes without the slot of unseen labels. The score of two classes is then
    (p - y)^2, whether they were declared or discovered.
    """
    return 0.5 if n_known == 2 else 1.0


def brier(probabilities: ArrayLike, codes: ArrayLike, n_known: int | None = None) -> float:
    """Return the mean Brier score: (p - y)^2 for two known classes, the sum over classes for more.

    `n_known`: as in `brier_factor`; by default the number of columns.
    """
    values, truth = _check(probabilities, codes)
    k = values.shape[1]
    errors = (values - (truth[:, np.newaxis] == np.arange(k))) ** 2
    sums = 2.0 * errors[:, 1] if k == 2 else errors.sum(axis=1)
    return brier_factor(k if n_known is None else n_known) * float(sums.mean())


def accuracy(predicted: ArrayLike, codes: ArrayLike) -> float:
    """Return the share of examples whose predicted class is correct; both shapes (n_samples,)."""
    values, truth = np.asarray(predicted), np.asarray(codes)
    if values.shape != truth.shape or values.ndim != 1 or not len(truth):
        raise InvalidInput(
            f"predicted: expected one class for each of at least one true class, got shapes "
            f"{values.shape} and {truth.shape}"
        )
    return float((values == truth).mean())


def auc(scores: ArrayLike, outcomes: ArrayLike) -> float:
    """Return the area under the ROC curve: P(a positive scores above a negative); ties count half.

    Raises InvalidInput if a score is not finite, an outcome is not 0 or 1, or one outcome is
    absent.
    """
    values = check_scores(scores)
    counts = pool_ties(values, check_labels(outcomes, len(values)))
    negatives = counts.totals - counts.positives
    pairs = int(counts.positives.sum()) * int(negatives.sum())
    if not pairs:
        raise InvalidInput("outcomes: the area under the ROC curve needs both 0 and 1")
    twice_below = 2 * np.cumsum(negatives) - negatives
    return int((counts.positives * twice_below).sum()) / (2 * pairs)


def macro_auc(probabilities: ArrayLike, codes: ArrayLike) -> float:
    """Return the mean over classes of the AUC of one class against the rest; `auc` for two classes.

    Parameters and errors are as in `log_loss`. Classes without examples are skipped; examples of
    one class only are an error.
    """
    values, truth = _check(probabilities, codes)
    present = np.unique(truth)
    if len(present) < 2:
        raise InvalidInput("codes: the area under the ROC curve needs two classes")
    if values.shape[1] == 2:
        return auc(values[:, 1], truth == 1)
    return float(np.mean([auc(values[:, code], truth == code) for code in present]))


@dataclass(frozen=True, slots=True)
class EqualMassBins:
    """Examples grouped by probability into at most `N_BINS` bins of about equal count.

    Equal probabilities share a bin, so the order of the examples has no effect.
    """

    probabilities: Floats  # in the given order, shape (n_samples,)
    order: Ints  # indices of the examples by ascending probability
    first: Ints  # position in `order` of each bin's first example
    counts: Ints  # number of examples in each bin, at least one

    @classmethod
    def of(cls, probabilities: ArrayLike) -> Self:
        """Group probabilities, shape (n_samples,), into bins.

        Raises InvalidInput if a probability is not in [0, 1], or there are none.
        """
        values = check_probabilities(probabilities)
        order = np.argsort(values, kind="stable")
        counts = np.diff(bin_ends(values[order], N_BINS), prepend=0)
        return cls(values, order, np.cumsum(counts) - counts, counts)

    @property
    def weights(self) -> Floats:
        """Share of the examples in each bin."""
        return np.asarray(self.counts / len(self.order))

    def means(self, values: ArrayLike) -> Floats:
        """Return the mean over each bin of values of shape (n_samples,)."""
        sums = np.add.reduceat(self.sorted(values), self.first)
        return np.asarray(sums / self.counts)

    def sorted(self, values: ArrayLike) -> Floats:
        """Return the values by ascending probability."""
        given = np.asarray(values, dtype=np.float64)
        if given.shape != self.order.shape:
            raise InvalidInput(f"expected {len(self.order)} values, got shape {given.shape}")
        return given[self.order]

    def frequencies(self, outcomes: ArrayLike) -> Floats:
        """Return the frequency of the event in each bin; outcomes are 0 or 1."""
        return self.means(check_labels(outcomes, len(self.order)))


def _of_truth(probabilities: ArrayLike, codes: ArrayLike) -> Floats:
    values, truth = _check(probabilities, codes)
    return values[np.arange(len(truth)), truth]


def _check(probabilities: ArrayLike, codes: ArrayLike) -> tuple[Floats, Ints]:
    values = np.asarray(probabilities, dtype=np.float64)
    if values.ndim != 2 or not values.size:
        raise InvalidInput(
            f"probabilities: expected one row an example and one column a class, got shape "
            f"{values.shape}"
        )
    return check_unit(values), check_codes(codes, *values.shape)


def squared_calibration_error(probabilities: ArrayLike, outcomes: ArrayLike) -> float:
    """Return the debiased mean over equal-mass bins of (frequency - mean probability)^2.

    The squared mean residual (outcome - probability) of a bin of m examples exceeds the square of
    its expectation by s^2 / m on average, with s^2 the sample variance of the residuals. This
    excess is subtracted. The result has mean zero for a perfect forecaster and can be negative.
    Bins with a single example are dropped because their variance is unknown. At most half the
    number of examples is used as the number of bins. Parameters and errors are as in
    `sorted_events`; fewer than two examples are an error.
    """
    events = sorted_events(probabilities, outcomes)
    if len(events.happened) < 2:
        raise InvalidInput("outcomes: the calibration error needs at least two examples")
    return debiased_square(*events, N_BINS)


@dataclass(frozen=True, slots=True)
class IntervalCoverage:
    """How often the mean interval of a bin contains the frequency of the bin."""

    coverage: float  # share of the examples in such bins
    of_perfect: float  # mean coverage if all probabilities were perfect: chance keeps it below 1
    width: float  # mean of upper - lower


def interval_coverage(
    probabilities: ArrayLike, intervals: ArrayLike, outcomes: ArrayLike
) -> IntervalCoverage:
    """Return the coverage of intervals, shape (n_samples, 2), over equal-mass bins.

    A single outcome, 0 or 1, is rarely inside an interval. So examples are grouped by probability,
    and the frequency of each bin is compared with the mean of its intervals. Raises InvalidInput
    as `sorted_events`, and if an interval is reversed or not finite.
    """
    bins = EqualMassBins.of(probabilities)
    lower, upper = np.asarray(intervals, dtype=np.float64).T
    low, high = bins.means(lower), bins.means(upper)
    widths = bins.sorted(upper) - bins.sorted(lower)
    if not (widths >= 0.0).all() or not np.isfinite(widths).all():
        raise InvalidInput("upper: must be finite and at least the lower end")
    rng = np.random.default_rng(0)

    def covered(frequencies: Floats) -> float:
        return float(bins.weights[(low <= frequencies) & (frequencies <= high)].sum())

    coverage = covered(bins.frequencies(outcomes))
    simulated = [
        covered(bins.means(rng.random(len(bins.order)) < bins.probabilities))
        for _ in range(N_SIMULATIONS)
    ]
    return IntervalCoverage(coverage, float(np.mean(simulated)), float(widths.mean()))
