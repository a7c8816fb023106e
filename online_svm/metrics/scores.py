"""Scores of a finished run of probabilities: for tables and benchmarks, not for the stream."""

import numpy as np
from numpy.typing import ArrayLike

from online_svm.calibration.argument_checks import check_codes, check_labels, check_scores
from online_svm.calibration.binning import equal_count_bins
from online_svm.calibration.diagram import pool_ties
from online_svm.errors import InvalidInput
from online_svm.types import Bools, Floats, Ints

CLIP = 1e-6  # a probability below it counts as this much in the log loss: an infinity says nothing


def log_loss(probabilities: ArrayLike, codes: ArrayLike) -> float:
    """Return the mean natural-log loss of the true class, probabilities clipped below at 1e-6.

    Parameters
    ----------
    probabilities : array-like of shape (n_samples, n_classes)
    codes : array-like of int of shape (n_samples,)
        True class of each example, from 0.

    Raises
    ------
    InvalidInput
        If a probability is not in [0, 1], a code is out of range, or there is no example.

    Examples
    --------
    >>> round(log_loss([[0.5, 0.5], [0.0, 1.0]], [0, 1]), 4)
    0.3466
    """
    return float(-np.log(np.maximum(_of_truth(probabilities, codes), CLIP)).mean())


def clipped(probabilities: ArrayLike, codes: ArrayLike) -> int:
    """Return how many true classes had a probability below 1e-6, where `log_loss` clips.

    Parameters and errors are those of `log_loss`.

    Examples
    --------
    >>> clipped([[0.5, 0.5], [0.0, 1.0]], [0, 0])
    1
    """
    return int(np.count_nonzero(_of_truth(probabilities, codes) < CLIP))


def brier(probabilities: ArrayLike, codes: ArrayLike) -> float:
    """Return the mean Brier score: (p - y)^2 for two classes, the sum over classes for more.

    Parameters and errors are those of `log_loss`.

    Examples
    --------
    >>> brier([[0.5, 0.5], [0.0, 1.0]], [0, 1])
    0.125
    """
    values, truth = _check(probabilities, codes)
    errors = (values - (truth[:, np.newaxis] == np.arange(values.shape[1]))) ** 2
    return float((errors[:, 1] if values.shape[1] == 2 else errors.sum(axis=1)).mean())


def accuracy(predicted: ArrayLike, codes: ArrayLike) -> float:
    """Return the share of examples whose predicted class is the true one.

    Parameters
    ----------
    predicted, codes : array-like of int of shape (n_samples,)

    Raises
    ------
    InvalidInput
        If the shapes differ or there is no example.

    Examples
    --------
    >>> accuracy([0, 1, 1, 1], [0, 1, 1, 0])
    0.75
    """
    values, truth = np.asarray(predicted), np.asarray(codes)
    if values.shape != truth.shape or values.ndim != 1 or not len(truth):
        raise InvalidInput(
            f"predicted: expected one class for each of at least one true class, got shapes "
            f"{values.shape} and {truth.shape}"
        )
    return float((values == truth).mean())


def expected_calibration_error(
    probabilities: ArrayLike, outcomes: ArrayLike, n_bins: int = 15
) -> float:
    """Return the mean over equal-mass bins of |frequency - mean probability|, weighted by count.

    Equal probabilities share a bin (that of the middle one), so that the order of the examples
    does not matter (Nixon et al. 2019 call the equal-mass form adaptive).

    Parameters
    ----------
    probabilities : array-like of shape (n_samples,)
        Of any event: P(positive), or the confidence in the predicted class.
    outcomes : array-like of shape (n_samples,)
        1 where the event happened, else 0.
    n_bins : int, default=15

    Raises
    ------
    InvalidInput
        If a probability is not in [0, 1], an outcome not 0 or 1, or there is no example.

    Examples
    --------
    >>> round(expected_calibration_error([0.1, 0.1, 0.9, 0.9], [0, 0, 1, 1], n_bins=2), 3)
    0.1
    """
    values, happened = _check_events(probabilities, outcomes)
    counts = pool_ties(values, happened)
    bins = equal_count_bins(counts, n_bins)
    first = np.searchsorted(counts.scores, bins.lower)
    expected = np.add.reduceat(counts.scores * counts.totals, first)
    return float(np.abs(bins.positives - expected).sum() / len(values))


def auc(scores: ArrayLike, outcomes: ArrayLike) -> float:
    """Return the area under the ROC curve: P(positive scores above negative), ties one half.

    Parameters
    ----------
    scores : array-like of shape (n_samples,)
    outcomes : array-like of shape (n_samples,)
        1 or 0.

    Raises
    ------
    InvalidInput
        If a score is not finite, an outcome not 0 or 1, or there are not both outcomes.

    Examples
    --------
    >>> auc([0.1, 0.4, 0.4, 0.8], [0, 0, 1, 1])
    0.875
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
    """Return the mean over the classes of the area under the curve of each against the rest.

    A class that no example has, or every one, has no area and is left out. For two classes it is
    `auc` of the second.

    Parameters
    ----------
    probabilities : array-like of shape (n_samples, n_classes)
    codes : array-like of int of shape (n_samples,)
        True class of each example, from 0.

    Raises
    ------
    InvalidInput
        As for `log_loss`, or if all examples are of one class.

    Examples
    --------
    >>> macro_auc([[0.9, 0.1], [0.6, 0.4], [0.6, 0.4], [0.2, 0.8]], [0, 0, 1, 1])
    0.875
    """
    values, truth = _check(probabilities, codes)
    there = np.unique(truth)
    if len(there) < 2:
        raise InvalidInput("codes: the area under the ROC curve needs two classes")
    if values.shape[1] == 2:
        return auc(values[:, 1], truth == 1)
    return float(np.mean([auc(values[:, code], truth == code) for code in there]))


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
    return _check_unit(values), check_codes(codes, *values.shape)


def _check_events(probabilities: ArrayLike, outcomes: ArrayLike) -> tuple[Floats, Bools]:
    values = _check_unit(check_scores(probabilities))
    if not len(values):
        raise InvalidInput("probabilities: there is no example to score")
    return values, check_labels(outcomes, len(values))


def _check_unit(values: Floats) -> Floats:
    if not ((values >= 0.0) & (values <= 1.0)).all():
        raise InvalidInput("probabilities: must lie in [0, 1]")
    return values
