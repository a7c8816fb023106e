"""Sums of bounded quantities that stay below a boundary for ever, with a given probability.

For X_t in an interval of length at most 1 that holds a predictable g_t, with conditional mean m_t,
exp(l S_t - (-ln(1 - l) - l) V_t), where S is the sum of X - m and V that of (X - g)^2, is a
supermartingale for each l in [0, 1) (Fan, Grama & Liu 2015; Howard, Ramdas, McAuliffe & Sekhon
2021, "Time-uniform, nonparametric, nonasymptotic confidence sequences", theorem 4). Its mixture
over l, with a gamma density of 1 - l, has a closed form (their proposition 9). Its gamma functions
cancel: it is the ratio of x^-a e^x gamma(a, x) at a = V + rho, x = S + a to that at a = x = rho,
with the lower incomplete gamma function.
"""

import math

import numpy as np

from online_svm.compiled.elementary import exp, log
from online_svm.compiled.jit import jit
from online_svm.compiled.special import log_lower_gamma
from online_svm.types import Floats

RHO = 10.0
"""Of the mixture: within a tenth of the tightest for variances from 20 to 2,000."""

STEPS = 100  # of Newton's method; seven or so are usual
EXACT = 1e-13  # of the boundary: a step that is smaller is the last


@jit
def log_mixture(s: float, v: float, rho: float = RHO) -> float:
    """Return the logarithm of the gamma-exponential mixture.

    While its null holds, that is a supermartingale that begins at 1.

    Parameters
    ----------
    s : float
        Sum of X - m.
    v : float
        Sum of (X - g)^2, >= 0.
    rho : float
        Of the mixture, > 0.

    Examples
    --------
    >>> log_mixture(0.0, 0.0)
    0.0
    >>> round(log_mixture(30.0, 100.0), 3), log_mixture(-30.0, 100.0) < 0
    (2.874, True)
    """
    if s + v + rho <= 0.0:
        return -np.inf
    return log_lower_gamma(v + rho, s) - log_lower_gamma(rho, 0.0)


def boundary(v: float, level: float, rho: float = RHO) -> float:
    """Return the sum that S exceeds, at any time, with probability at most `level`.

    Parameters
    ----------
    v : float
        Sum of (X - g)^2, >= 0.
    level : float
        In (0, 1).

    Examples
    --------
    >>> round(boundary(100.0, 0.05), 2)
    30.56
    """
    return boundary_of_mean(v, -log(level), np.array([rho]))


@jit
def log_mean_mixture(s: float, v: float, rhos: Floats) -> tuple[float, float]:
    """Return the logarithm of the mean of several mixtures, and its derivative by s.

    Examples
    --------
    >>> log_mean_mixture(0.0, 0.0, np.array([5.0, 50.0]))[0]
    0.0
    """
    top = -np.inf
    for rho in rhos:
        top = max(top, log_mixture(s, v, rho))
    if top == -np.inf:
        return top, 0.0
    total = slopes = 0.0
    for rho in rhos:
        a, found = v + rho, log_mixture(s, v, rho)
        weight = exp(found - top)
        total += weight
        # The derivative of x^-a e^x gamma(a, x) by x is (1 - a/x) of itself, and 1/x.
        slopes += weight * (s + exp(-found - log_lower_gamma(rho, 0.0))) / (s + a)
    return top + log(total / len(rhos)), slopes / total


@jit
def boundary_of_mean(v: float, wanted: float, rhos: Floats) -> float:
    """Return the sum at which the mean of several mixtures has the logarithm `wanted`, > 0.

    The logarithm is convex in the sum: from a start above the root Newton's method falls to it.

    Examples
    --------
    >>> found = boundary_of_mean(100.0, 3.0, np.array([5.0, 50.0]))
    >>> round(log_mean_mixture(found, 100.0, np.array([5.0, 50.0]))[0], 9)
    3.0
    """
    s = 1.0 + math.sqrt(v + rhos[0]) + wanted
    value, slope = log_mean_mixture(s, v, rhos)
    while value < wanted:
        s *= 2.0
        value, slope = log_mean_mixture(s, v, rhos)
    for _ in range(STEPS):
        step = (value - wanted) / slope
        s -= step
        if not step > EXACT * s:
            break
        value, slope = log_mean_mixture(s, v, rhos)
    return s
