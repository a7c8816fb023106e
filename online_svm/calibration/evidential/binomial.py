"""Binomial models: what k positives among n examples say about the next one, in three models.

Closed forms of Xu et al. (2016), section 4.1, and the contours behind them: the plausibility of
each value tau of the unknown proportion. Without examples every model is vacuous.
"""

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from online_svm.calibration.evidential.masses import stack
from online_svm.compiled.elementary import exp, log, log1p
from online_svm.compiled.jit import jit
from online_svm.compiled.special import beta_fraction, beta_quantile, log_beta
from online_svm.types import Floats

BinomialModel = Literal["likelihood", "confidence", "dempster"]
BINOMIAL_MODELS: tuple[BinomialModel, ...] = ("likelihood", "confidence", "dempster")


def binomial_mass(model: BinomialModel, k: ArrayLike, n: ArrayLike, alpha: float = 0.05) -> Floats:
    """Return the predictive masses after k positives among n examples.

    Parameters
    ----------
    model : {"likelihood", "confidence", "dempster"}
    k, n : array-like of shape (...)
        Whole numbers, 0 <= k <= n.
    alpha : float
        One minus the confidence level; only for "confidence".

    Returns
    -------
    ndarray of shape (..., 3)

    Examples
    --------
    >>> binomial_mass("dempster", 3, 4).tolist()
    [0.6, 0.2, 0.2]
    """
    if model == "dempster":
        return dempster_mass(k, n)
    return likelihood_mass(k, n) if model == "likelihood" else confidence_mass(k, n, alpha)


def dempster_mass(k: ArrayLike, n: ArrayLike) -> Floats:
    """Dempster's model (eq. 24): one further example was seen, but not its label.

    Examples
    --------
    >>> dempster_mass([0, 1], [0, 1]).tolist()
    [[0.0, 0.0, 1.0], [0.5, 0.0, 0.5]]
    """
    positive, total = _counts(k, n)
    return stack(positive / (total + 1.0), (total - positive) / (total + 1.0))


def confidence_mass(k: ArrayLike, n: ArrayLike, alpha: float) -> Floats:
    """Masses of the Clopper-Pearson interval (eqs 26-28), discounted by alpha.

    The bound next to k = 0 or k = n is 0 or 1; the other keeps alpha / 2.

    Examples
    --------
    >>> confidence_mass(0, 1, alpha=0.2).round(3).tolist()
    [0.0, 0.08, 0.92]
    """
    return interval_mass(*clopper_pearson(k, n, alpha), alpha)


def interval_mass(lower: Floats, upper: Floats, alpha: float) -> Floats:
    """Masses of a confidence interval (eqs 26 and 27)."""
    return stack((1.0 - alpha) * lower, (1.0 - alpha) * (1.0 - upper))


def clopper_pearson(k: ArrayLike, n: ArrayLike, alpha: float) -> tuple[Floats, Floats]:
    """Return the exact confidence interval of a proportion at level 1 - alpha (eq. 28).

    Returns
    -------
    lower, upper : ndarray of shape (...)

    Examples
    --------
    >>> lower, upper = clopper_pearson(2, 2, alpha=0.5)
    >>> round(float(lower), 9), float(upper)
    (0.5, 1.0)
    """
    positive, total = _counts(k, n)
    negative = total - positive
    # The upper bound is one less the lower bound of the negatives.
    return _lower_bound(positive, negative, alpha), 1.0 - _lower_bound(negative, positive, alpha)


def likelihood_mass(k: ArrayLike, n: ArrayLike) -> Floats:
    """Masses of the relative likelihood as contour (eqs 29-31).

    The upper integral is the lower one with its arguments swapped: failures play the part of
    successes.

    Examples
    --------
    >>> likelihood_mass(3, 3).tolist()
    [0.75, 0.0, 0.25]
    """
    positive, total = _counts(k, n)
    negative = total - positive
    return stack(_belief(positive, negative), _belief(negative, positive))


def binomial_contour(
    model: BinomialModel, k: ArrayLike, n: ArrayLike, tau: ArrayLike, alpha: float = 0.05
) -> Floats:
    """Return the plausibility of each proportion tau after k positives among n examples.

    "likelihood" is eq. 29 and "confidence" eq. 25. Dempster's model is the random interval
    between the k-th and the next of n uniform order statistics, which covers tau with the
    binomial probability of k.

    Parameters
    ----------
    model : {"likelihood", "confidence", "dempster"}
    k, n, tau : array-like, broadcast against each other
        Counts, and proportions in [0, 1].
    alpha : float

    Examples
    --------
    >>> binomial_contour("likelihood", 1, 2, [0.0, 0.5, 1.0]).tolist()
    [0.0, 1.0, 0.0]
    >>> binomial_contour("dempster", 1, 2, 0.5).round(12).tolist()
    0.5
    """
    positive, total = _counts(k, n)
    proportion = np.asarray(tau, dtype=np.float64)
    if model == "confidence":
        lower, upper = clopper_pearson(positive, total, alpha)
        return np.where((lower <= proportion) & (proportion <= upper), 1.0, alpha)
    negative = total - positive
    write = _write_relative_likelihood if model == "likelihood" else _write_probability
    return _each(write, positive, negative, proportion)


def _lower_bound(hits: Floats, misses: Floats, alpha: float) -> Floats:
    return _each(_write_lower_bound, hits, misses, np.float64(alpha / 2.0))


def _belief(hits: Floats, misses: Floats) -> Floats:
    return _each(_write_belief, hits, misses)


def _each(write: Callable[..., None], *values: ArrayLike) -> Floats:
    """Return what a compiled function writes for each element of arrays, broadcast together."""
    whole = [np.array(each) for each in np.broadcast_arrays(*values)]
    found = np.empty(whole[0].shape)
    write(*(each.reshape(-1) for each in whole), found.reshape(-1))
    return found


@jit
def _write_lower_bound(hits: Floats, misses: Floats, tail: Floats, found: Floats) -> None:
    for i in range(len(found)):
        # The beta distribution has no density with a shape of zero.
        found[i] = beta_quantile(hits[i], misses[i] + 1.0, tail[i]) if hits[i] > 0.0 else 0.0


@jit
def _write_belief(hits: Floats, misses: Floats, found: Floats) -> None:
    """Write the most likely share of hits, less the integral of the contour below it.

    The integral is B(a, b) I_x(a, b) over the likelihood at x: of x^a (1 - x)^b over
    x^(a - 1) (1 - x)^(b - 1) only x (1 - x) is left, so nothing underflows.
    """
    for i in range(len(found)):
        total = hits[i] + misses[i]
        share = hits[i] / total if total > 0.0 else 0.5
        a, b = hits[i] + 1.0, misses[i] + 1.0
        below = (1.0 - share) * beta_fraction(a, b, share) / a if share < 1.0 else 1.0 / a
        found[i] = max(share * (1.0 - below), 0.0)


@jit
def _write_relative_likelihood(hits: Floats, misses: Floats, shares: Floats, found: Floats) -> None:
    for i in range(len(found)):
        best = log_likelihood(hits[i], misses[i], hits[i] / max(hits[i] + misses[i], 1.0))
        found[i] = min(exp(log_likelihood(hits[i], misses[i], shares[i]) - best), 1.0)


@jit
def _write_probability(hits: Floats, misses: Floats, shares: Floats, found: Floats) -> None:
    """Write the binomial probability of the hits."""
    for i in range(len(found)):
        log_ways = -log_beta(hits[i] + 1.0, misses[i] + 1.0) - log1p(hits[i] + misses[i])
        found[i] = min(exp(log_ways + log_likelihood(hits[i], misses[i], shares[i])), 1.0)


@jit
def log_likelihood(hits: float, misses: float, share: float) -> float:
    """Return the logarithm of share^hits (1 - share)^misses, where 0^0 is 1.

    Examples
    --------
    >>> log_likelihood(0.0, 2.0, 0.0), log_likelihood(1.0, 0.0, 0.0)
    (0.0, -inf)
    """
    value = hits * log(share) if hits > 0.0 else 0.0
    return value + (misses * log1p(-share) if misses > 0.0 else 0.0)


def _counts(k: ArrayLike, n: ArrayLike) -> tuple[Floats, Floats]:
    return np.asarray(k, dtype=np.float64), np.asarray(n, dtype=np.float64)
