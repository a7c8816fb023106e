"""Calibration error without what chance adds to it.

The binned calibration error of a perfect forecaster is not zero: in each bin the frequency lies
away from the mean probability by chance. `squared_calibration_error` subtracts an estimate of
that, so that its expectation is that of infinitely many examples in the same bins (Broecker 2012,
"Estimating reliability and resolution of probability forecasts through decomposition of the
empirical score"; Kumar, Liang & Ma 2019, "Verified uncertainty calibration").
`calibration_error_floor` tells how large the common form is by chance alone.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from online_svm.calibration.argument_checks import check_n_bins
from online_svm.compiled.jit import jit
from online_svm.errors import InvalidInput
from online_svm.metrics.equal_mass_bins import EqualMassBins, bin_ends
from online_svm.metrics.sorted_events import sorted_events
from online_svm.types import Bools, Floats

DRAWS = 200  # the standard error of the floor is then below 2 % of it


def squared_calibration_error(
    probabilities: ArrayLike, outcomes: ArrayLike, n_bins: int = 15
) -> float:
    """Return the debiased mean over equal-mass bins of (frequency - mean probability)^2.

    With the residuals e = outcome - probability, the square of the mean residual of a bin exceeds
    that of its expectation by the variance of the mean, on average. Of a bin of m examples that is
    s^2 / m, where s^2 is the sample variance of its residuals, and it is subtracted. The result is
    zero on average for a perfect forecaster, whatever the probabilities, and may be negative. A bin
    with a single example, whose variance is unknown, is left out.

    Parameters
    ----------
    probabilities : array-like of shape (n_samples,)
        Of any event: P(positive), or the confidence in the predicted class.
    outcomes : array-like of shape (n_samples,)
        1 where the event happened, else 0.
    n_bins : int, default=15
        At most; never more than half as many as there are examples.

    Raises
    ------
    InvalidInput
        If a probability is not in [0, 1], an outcome not 0 or 1, or there are fewer than two
        examples.

    Examples
    --------
    >>> squared_calibration_error([0.5, 0.5, 0.5, 0.5], [1, 1, 1, 1])
    0.25
    >>> round(squared_calibration_error([0.5, 0.5, 0.5, 0.5], [0, 1, 0, 1]), 4)
    -0.0833
    """
    events = sorted_events(probabilities, outcomes)
    check_n_bins(n_bins)
    if len(events.happened) < 2:
        raise InvalidInput("outcomes: the calibration error needs at least two examples")
    return debiased_square(*events, n_bins)


@jit
def debiased_square(p: Floats, happened: Bools, n_bins: int) -> float:
    """Return it for events that `sorted_events` sorted; NaN for fewer than two.

    Examples
    --------
    >>> debiased_square(np.array([0.5, 0.5]), np.array([True, True]), 15)
    0.25
    """
    n = len(p)
    if n < 2:
        return math.nan
    ends = bin_ends(p, min(n_bins, n // 2))
    total, used, begin = 0.0, 0, 0
    for end in ends:
        count = end - begin
        if count > 1:
            residual = 0.0
            for i in range(begin, end):
                residual += happened[i] - p[i]
            mean, spread = residual / count, 0.0
            for i in range(begin, end):
                apart = happened[i] - p[i] - mean
                spread += apart * apart
            total += count * mean * mean - spread / (count - 1)
            used += count
        begin = end
    return total / used


def calibration_error(probabilities: ArrayLike, outcomes: ArrayLike, n_bins: int = 15) -> float:
    """Return the root of `squared_calibration_error`; 0 where that is negative.

    It has the unit of a probability. To average over runs, average the squares: a root of 0 hides
    how far below zero chance went.

    Parameters and errors are those of `squared_calibration_error`.

    Examples
    --------
    >>> calibration_error([0.5, 0.5, 0.5, 0.5], [1, 1, 1, 1])
    0.5
    >>> calibration_error([0.5, 0.5, 0.5, 0.5], [0, 1, 0, 1])
    0.0
    """
    return math.sqrt(max(0.0, squared_calibration_error(probabilities, outcomes, n_bins)))


def calibration_error_floor(
    probabilities: ArrayLike, n_bins: int = 15, draws: int = DRAWS, seed: int = 0
) -> float:
    """Return the mean `expected_calibration_error` of these probabilities if they are all right.

    The mean over `draws` simulations in which each event happens with its probability,
    independently.

    Parameters
    ----------
    probabilities : array-like of shape (n_samples,)
    n_bins : int, default=15
    draws : int, default=200
    seed : int, default=0
        Of the simulation.

    Raises
    ------
    InvalidInput
        If a probability is not in [0, 1], or there is no example.

    Examples
    --------
    >>> uniform = np.random.default_rng(1).random(300)
    >>> round(calibration_error_floor(uniform), 2)
    0.07
    """
    bins = EqualMassBins.of(probabilities, n_bins)
    expected = bins.means(bins.probabilities)
    rng = np.random.default_rng(seed)
    errors = [
        np.abs(bins.means(rng.random(len(bins.order)) < bins.probabilities) - expected)
        for _ in range(draws)
    ]
    return float(np.mean(errors, axis=0) @ bins.weights)
