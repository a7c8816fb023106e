"""Several e-values made one, or chosen from."""

import numpy as np
from numpy.typing import ArrayLike

from online_svm.errors import InvalidInput
from online_svm.types import Floats


def log_average(log_wealth: ArrayLike) -> float:
    """Return the logarithm of the mean of several wealths.

    A mean of e-values is an e-value, whatever the dependence between them; their product is not.

    Parameters
    ----------
    log_wealth : array-like of shape (m,)
        Natural logarithms.

    Raises
    ------
    InvalidInput
        If there is none.

    Examples
    --------
    >>> round(log_average([0.0, np.log(3.0)]), 4)
    0.6931
    """
    logs = _checked(log_wealth)
    if not len(logs):
        raise InvalidInput("log_wealth: there is nothing to average")
    return float(np.logaddexp.reduce(logs) - np.log(len(logs)))


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
    logs = _checked(log_wealth)
    order = np.argsort(-logs, kind="stable")
    k = np.arange(1, len(logs) + 1)
    enough = np.flatnonzero(logs[order] >= np.log(len(logs) / (k * level)) if len(logs) else [])
    return sorted(order[: enough[-1] + 1].tolist()) if len(enough) else []


def _checked(log_wealth: ArrayLike) -> Floats:
    logs = np.asarray(log_wealth, dtype=np.float64)
    if logs.ndim != 1 or np.isnan(logs).any():
        raise InvalidInput("log_wealth: expected one number a test, none of them NaN")
    return logs
