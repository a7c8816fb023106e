"""Ignorance of a logistic line at every score, from a table of it at some scores.

The integrals behind Bel and Pl cost a sweep over the examples each. They are smooth in the score,
so they are taken at about a hundred scores and their logarithms interpolated by a cubic spline.

Quadrature and spline are our own: the routines of numpy and scipy start from eigenvalues, whose
last bits may depend on the linear algebra library and its threads; an answer must not.
"""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from online_svm.calibration.evidential.line import Likelihood
from online_svm.calibration.evidential.profile import log_ignorance
from online_svm.compiled.jit import jit
from online_svm.types import Floats

# Knots before the tails. Over the shapes of data in the tests the spline is within 5e-6.
N_CENTRAL = 121
N_NODES = 16  # of Gauss-Legendre; up to `profile.DROP` its error is below 1e-7
FAR = 1e3  # times sqrt(n): by then the limit at infinity is reached


@dataclass(frozen=True, slots=True, eq=False)
class IgnoranceTable:
    """Splines of the two mean plausibilities, on the whole line of scores.

    Attributes
    ----------
    knots : ndarray of shape (m,)
        Compactified scores, from -1 (minus infinity) to 1; see `compactify`.
    coefficients : ndarray of shape (4, m - 1, 2)
        Cubic pieces of the logarithms of the mean plausibility below and above the best
        proportion.
    """

    knots: Floats
    coefficients: Floats

    @classmethod
    def build(cls, likelihood: Likelihood) -> "IgnoranceTable":
        """Compute the table around a fitted line."""
        if likelihood.line.width == 0.0:
            return cls._constant(_both_sides(likelihood, 0.0, gauss_legendre(N_NODES)))
        knots = _knots(len(likelihood.scores))
        rule = gauss_legendre(N_NODES)
        inside = knots[1:-1]
        scores = 2.0 * inside / (1.0 - inside * inside)
        inner = [_both_sides(likelihood, score, rule) for score in scores.tolist()]
        values = np.array([_limit(likelihood, -1.0), *inner, _limit(likelihood, 1.0)])
        return cls(knots, cubic_spline(knots, values))

    @classmethod
    def _constant(cls, values: tuple[float, float]) -> "IgnoranceTable":
        coefficients = np.zeros((4, 1, 2))
        coefficients[-1, 0] = values
        return cls(np.array([-1.0, 1.0]), coefficients)

    def evaluate(self, scores: Floats) -> tuple[Floats, Floats]:
        """Return the logarithms of both mean plausibilities at standardised scores."""
        logs = np.minimum(evaluate(self.knots, self.coefficients, compactify(scores)), 0.0)
        return logs[:, 0], logs[:, 1]


def compactify(scores: Floats) -> Floats:
    """Map the line onto (-1, 1) by t / (1 + sqrt(1 + t^2)), smooth up to infinity.

    Examples
    --------
    >>> compactify(np.array([0.0, 0.75, 1e308])).round(3).tolist()
    [0.0, 0.333, 1.0]
    """
    finite = np.clip(scores, -1e150, 1e150)  # beyond it the result is 1, and its square infinite
    return np.asarray(finite / (1.0 + np.sqrt(1.0 + finite * finite)))


def _knots(n: int) -> Floats:
    """Even knots, and beyond them ever farther ones until `FAR` sqrt(n), and infinity."""
    central = np.linspace(-1.0, 1.0, N_CENTRAL)[1:-1]
    gap = (1.0 - central[-1]) / 2.0
    halvings = max(math.frexp(FAR * math.sqrt(n) * gap)[1] - 1, 1)
    tail = 1.0 - np.ldexp(gap, -np.arange(halvings))
    return np.concatenate([[-1.0], -tail[::-1], central, tail, [1.0]])


def _both_sides(likelihood: Likelihood, t: float, rule: Floats) -> tuple[float, float]:
    """Return the logarithms of the mean plausibility below and above the best proportion.

    Above is below for the exchanged classes.
    """
    line, targets, top = likelihood.line, likelihood.targets, likelihood.top
    d, u = likelihood.scores - t, line.offset + line.slope * t
    below = log_ignorance(d, targets, u, line.slope, top, rule)
    return below, log_ignorance(d, 1.0 - targets, -u, -line.slope, top, rule)


def _limit(likelihood: Likelihood, side: float) -> tuple[float, float]:
    """Return the values at an infinite score.

    The smallest change of slope moves the line there by any amount. So every proportion between
    0 and 1 is as plausible as slope zero, and the log-odds above the best are as plausible as it.
    """
    rise = likelihood.line.slope * side
    flat = likelihood.log_flat()
    return (flat if rise > 0.0 else 0.0, flat if rise < 0.0 else 0.0)


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


def cubic_spline(knots: Floats, values: Floats) -> Floats:
    """Return the cubic pieces of the spline through values, with no knot after the first and last.

    Its first two pieces are one polynomial, and so are its last two ("not a knot"). At least four
    knots.

    Parameters
    ----------
    knots : ndarray of shape (m,)
        Ascending.
    values : ndarray of shape (m, k)
        Of k functions.

    Returns
    -------
    ndarray of shape (4, m - 1, k)
        Of (x - knot)^3, (x - knot)^2, x - knot and 1, where the knot is that at which the piece
        begins.

    Examples
    --------
    >>> knots = np.arange(5.0)
    >>> cubic_spline(knots, knots[:, None] ** 3)[:, 2, 0].round(9).tolist()
    [1.0, 6.0, 12.0, 8.0]
    """
    found = np.empty((4, len(knots) - 1, values.shape[1]))
    _fit(knots, values, found)
    return found


def evaluate(knots: Floats, coefficients: Floats, x: Floats) -> Floats:
    """Return the values of a spline, shape (n, k); those beyond the knots by the outermost pieces.

    Examples
    --------
    >>> knots = np.arange(5.0)
    >>> found = evaluate(knots, cubic_spline(knots, knots[:, None] ** 3), np.array([1.5, 5.0]))
    >>> found[:, 0].round(9).tolist()
    [3.375, 125.0]
    """
    piece = np.clip(np.searchsorted(knots, x, side="right") - 1, 0, len(knots) - 2)
    at = (x - knots[piece])[:, None]
    a, b, c, d = coefficients[:, piece]
    return np.asarray(((a * at + b) * at + c) * at + d)


@jit
def _fit(knots: Floats, values: Floats, found: Floats) -> None:
    """Find the slopes at the knots from a tridiagonal system, by elimination from the front."""
    m = len(knots)
    h = knots[1:] - knots[:-1]
    diagonal, above, slopes = np.empty(m), np.empty(m), np.empty(m)
    for k in range(values.shape[1]):
        rise = (values[1:, k] - values[:-1, k]) / h
        # 1. At the first knot the third derivative does not jump after the first piece.
        first, last = h[0] + h[1], h[m - 2] + h[m - 3]
        diagonal[0], above[0] = h[1], first
        slopes[0] = ((h[0] + 2.0 * first) * h[1] * rise[0] + h[0] * h[0] * rise[1]) / first
        # 2. At inner knots the second derivative does not jump.
        for i in range(1, m - 1):
            factor = h[i] / diagonal[i - 1]
            diagonal[i] = 2.0 * (h[i - 1] + h[i]) - factor * above[i - 1]
            above[i] = h[i - 1]
            slopes[i] = 3.0 * (h[i] * rise[i - 1] + h[i - 1] * rise[i]) - factor * slopes[i - 1]
        # 3. At the last as at the first; then back.
        end = (2.0 * last + h[m - 2]) * h[m - 3] * rise[m - 2] + h[m - 2] * h[m - 2] * rise[m - 3]
        factor = last / diagonal[m - 2]
        slopes[m - 1] = (end / last - factor * slopes[m - 2]) / (h[m - 3] - factor * above[m - 2])
        for i in range(m - 2, -1, -1):
            slopes[i] = (slopes[i] - above[i] * slopes[i + 1]) / diagonal[i]
        # 4. The pieces, from values and slopes at their ends.
        for i in range(m - 1):
            bend = (slopes[i] + slopes[i + 1] - 2.0 * rise[i]) / h[i]
            found[0, i, k] = bend / h[i]
            found[1, i, k] = (rise[i] - slopes[i]) / h[i] - bend
            found[2, i, k], found[3, i, k] = slopes[i], values[i, k]
