"""Gauss-Legendre quadrature, from the recurrence alone.

The routines of numpy and scipy start from eigenvalues, whose last bits may depend on the linear
algebra library and its threads; an answer must not.
"""

import math
from functools import cache

import numpy as np

from online_svm.types import Floats

NEWTON_STEPS = 8  # from a guess that is good to 1e-3, four double the digits to the last


@cache
def gauss_legendre(n: int) -> Floats:
    """Return nodes (ascending) and weights on [0, 1], as the rows of an array.

    Parameters
    ----------
    n : int
        Number of nodes; polynomials of degree 2 n - 1 are integrated exactly.

    Returns
    -------
    ndarray of shape (2, n)
        Read-only, since it is computed once.

    Examples
    --------
    >>> gauss_legendre(2).round(4)
    array([[0.2113, 0.7887],
           [0.5   , 0.5   ]])
    """
    rule = np.array([_node(n, i) for i in range(n)]).T.copy()
    rule.setflags(write=False)
    return rule


def _node(n: int, i: int) -> tuple[float, float]:
    """Return the i-th root of the n-th Legendre polynomial and its weight, moved to [0, 1]."""
    x = _sine(math.pi * (0.5 - (n - i - 0.25) / (n + 0.5)))
    for _ in range(NEWTON_STEPS):
        value, slope = _legendre(n, x)
        x -= value / slope
    slope = _legendre(n, x)[1]
    return 0.5 * (1.0 + x), 1.0 / ((1.0 - x * x) * slope * slope)


def _sine(x: float) -> float:
    """Return sin(x) to 4e-6 for |x| <= pi/2, by its Taylor polynomial: it makes Tricomi's guess."""
    z = x * x
    return x * (1.0 - z / 6.0 * (1.0 - z / 20.0 * (1.0 - z / 42.0 * (1.0 - z / 72.0))))


def _legendre(n: int, x: float) -> tuple[float, float]:
    """Return the n-th Legendre polynomial and its derivative, by the three-term recurrence."""
    before, value = 1.0, x
    for k in range(2, n + 1):
        before, value = value, ((2 * k - 1) * x * value - (k - 1) * before) / k
    return value, n * (before - x * value) / (1.0 - x * x)
