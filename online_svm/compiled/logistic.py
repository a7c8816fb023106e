"""The logistic function and its inverse, with bits that depend on the argument alone."""

import numpy as np

from online_svm.compiled.elementary import exp_nonpositive, log, log1p
from online_svm.compiled.jit import jit
from online_svm.types import Floats


@jit
def logistic(value: float) -> float:
    """Return 1 / (1 + exp(-value)), without overflow.

    Examples
    --------
    >>> logistic(0.0), logistic(-800.0)
    (0.5, 0.0)
    """
    e = exp_nonpositive(-abs(value))
    return 1.0 / (1.0 + e) if value >= 0.0 else e / (1.0 + e)


@jit
def logit(p: float) -> float:
    """Return log(p / (1 - p)): infinite at 0 and 1.

    Examples
    --------
    >>> logit(0.5), logit(0.0), logit(1.0)
    (0.0, -inf, inf)
    """
    odds = p / (1.0 - p)
    return log1p((2.0 * p - 1.0) / (1.0 - p)) if 0.5 < odds < 2.0 else log(odds)


def logistics(values: Floats) -> Floats:
    """Return the logistic function of each value, in an array of the same shape.

    Examples
    --------
    >>> logistics(np.array([0.0, 800.0]))
    array([0.5, 1. ])
    """
    found = np.array(values, dtype=np.float64, order="C")
    _logistic_each(found.reshape(-1))
    return found


def logits(values: Floats) -> Floats:
    """Return the logit of each value, in an array of the same shape.

    Examples
    --------
    >>> logits(np.array([0.5, 1.0]))
    array([ 0., inf])
    """
    found = np.array(values, dtype=np.float64, order="C")
    _logit_each(found.reshape(-1))
    return found


@jit
def _logistic_each(values: Floats) -> None:
    for i in range(len(values)):
        values[i] = logistic(values[i])


@jit
def _logit_each(values: Floats) -> None:
    for i in range(len(values)):
        values[i] = logit(values[i])
