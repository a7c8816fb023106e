"""The logistic function, with bits that depend on its argument alone."""

import numpy as np

from online_svm.compiled.jit import jit
from online_svm.compiled.kernels import exp_nonpositive
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
def logistic_of(values: Floats) -> Floats:
    """Return `logistic` of each of several values, shape (m,).

    numpy's exp may give the last value of an array other bits than the first.

    Examples
    --------
    >>> logistic_of(np.array([0.0, np.log(3.0)])).round(3).tolist()
    [0.5, 0.75]
    """
    out = np.empty(len(values))
    for i in range(len(values)):
        out[i] = logistic(values[i])
    return out
