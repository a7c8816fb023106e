"""The probability that a P-SVM reads off its decision value: 1/(1 + exp(-a f))."""

import numpy as np

from online_svm.compiled.elementary import log
from online_svm.compiled.logistic import logistics
from online_svm.types import Floats


def steepness(eta: float) -> float:
    """Return a = ln(1/eta - 1): f = +1 and f = -1 then have the probabilities 1 - eta and eta.

    Examples
    --------
    >>> round(steepness(0.1), 4)
    2.1972
    """
    return log(1.0 / eta - 1.0)


def posterior(f: Floats, a: float) -> Floats:
    """Return P(y = -1 | x) and P(y = 1 | x) = 1/(1 + exp(-a f)), shape (n, 2).

    Examples
    --------
    >>> posterior(np.array([0.0, 1.0]), steepness(0.1)).round(6)
    array([[0.5, 0.5],
           [0.1, 0.9]])
    """
    return np.column_stack((logistics(-a * f), logistics(a * f)))
