"""Several e-values, chosen from."""

import numpy as np
from numpy.typing import ArrayLike

from online_svm.compiled.elementary import logs
from online_svm.errors import InvalidInput
from online_svm.types import Floats


def benjamini_hochberg(log_wealth: ArrayLike, level: float) -> list[int]:
    """Return which of several nulls to reject, with a false discovery rate of at most `level`.

    e-BH (Wang & Ramdas 2022, "False discovery rate control with e-values"): the k largest e-values,
    for the largest k of which the k-th is at least m / (k level). They may depend on one another.

    Parameters
    ----------
    log_wealth : array-like of shape (m,)
        Natural logarithms of e-values.
    level : float
        In (0, 1).

    Raises
    ------
    InvalidInput
        If the level is out of range, or a logarithm is NaN.

    Examples
    --------
    >>> benjamini_hochberg(np.log([30.0, 50.0, 1.0]), 0.1)
    [0, 1]
    """
    if not 0.0 < level < 1.0:
        raise InvalidInput(f"level: must lie in (0, 1), got {level}")
    values = _checked(log_wealth)
    order = np.argsort(-values, kind="stable")
    k = np.arange(1, len(values) + 1)
    enough = np.flatnonzero(values[order] >= logs(len(values) / (k * level)))
    return sorted(order[: enough[-1] + 1].tolist()) if len(enough) else []


def _checked(log_wealth: ArrayLike) -> Floats:
    values = np.array(log_wealth, dtype=np.float64)
    if values.ndim != 1 or np.isnan(values).any():
        raise InvalidInput("log_wealth: expected one number a test, none of them NaN")
    return values
