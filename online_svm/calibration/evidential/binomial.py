"""What k positives among n examples say about the next one, in three models of belief.

Closed forms of Xu et al. (2016), section 4.1, and the contours behind them: the plausibility of
each value tau of the unknown proportion. Without examples every model is vacuous.
"""

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from online_svm.calibration.evidential.masses import stack
from online_svm.types import Floats

BinomialModel = Literal["likelihood", "confidence", "dempster"]
BINOMIAL_MODELS: tuple[BinomialModel, ...] = ("likelihood", "confidence", "dempster")

# One call an element: the vector loop of np.exp may treat an element by its position.
_exp = np.vectorize(math.exp, otypes=[np.float64])


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
    >>> float(lower), float(upper)
    (0.5, 1.0)
    """
    positive, total = _counts(k, n)
    negative = total - positive
    none, all_ = positive == 0, negative == 0
    # The beta distribution has no density with a shape of zero: those bounds are set by hand.
    lower = special.betaincinv(np.where(none, 1.0, positive), negative + 1.0, alpha / 2.0)
    upper = special.betainccinv(positive + 1.0, np.where(all_, 1.0, negative), alpha / 2.0)
    return np.where(none, 0.0, lower), np.where(all_, 1.0, upper)


def likelihood_mass(k: ArrayLike, n: ArrayLike) -> Floats:
    """Masses of the relative likelihood as contour (eqs 29-31).

    The incomplete beta functions and the likelihood underflow apart (5e-266 at n = 1000) but
    their ratio does not, so they meet as logarithms. The upper integral is the lower one with
    its arguments swapped: failures play the part of successes.

    Examples
    --------
    >>> likelihood_mass(3, 3).tolist()
    [0.75, 0.0, 0.25]
    """
    positive, total = _counts(k, n)
    negative = total - positive
    mode = np.where(total > 0, positive / np.maximum(total, 1.0), 0.5)
    other = np.where(total > 0, negative / np.maximum(total, 1.0), 0.5)
    a, b = positive + 1.0, negative + 1.0
    area = _exp(
        special.betaln(a, b) - special.xlogy(positive, mode) - special.xlogy(negative, other)
    )
    below, above = area * special.betainc(a, b, mode), area * special.betainc(b, a, other)
    return stack(np.maximum(mode - below, 0.0), np.maximum(other - above, 0.0))


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
    share = positive / np.maximum(total, 1.0)
    likelihood = special.xlogy(positive, proportion) + special.xlog1py(negative, -proportion)
    if model == "dempster":
        log_choose = -special.betaln(positive + 1.0, negative + 1.0) - special.log1p(total)
        return np.asarray(_exp(log_choose + likelihood))
    top = special.xlogy(positive, share) + special.xlog1py(negative, -share)
    return np.asarray(np.minimum(_exp(likelihood - top), 1.0))


def _counts(k: ArrayLike, n: ArrayLike) -> tuple[Floats, Floats]:
    return np.asarray(k, dtype=np.float64), np.asarray(n, dtype=np.float64)
