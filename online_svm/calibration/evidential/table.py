"""Ignorance of a logistic line at every score, from a table of it at some scores.

The integrals behind Bel and Pl cost a sweep over the examples each. They are smooth in the score,
so they are taken at about a hundred scores and their logarithms interpolated by a cubic spline.
"""

import math
from dataclasses import dataclass

import numpy as np

from online_svm.calibration.evidential.line import Likelihood
from online_svm.calibration.evidential.profile import log_ignorance
from online_svm.calibration.evidential.quadrature import gauss_legendre
from online_svm.calibration.evidential.spline import cubic_spline, evaluate
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
