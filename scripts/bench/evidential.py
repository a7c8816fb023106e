"""Evidential logistic regression against its definition, evaluated score by score, in one run."""

import math
from dataclasses import dataclass

import numpy as np
from scipy import integrate, optimize, special

from online_svm.calibration.evidential import EvidentialLogistic
from online_svm.types import Bools, Floats
from scripts.bench.report import Row
from scripts.bench.timing import best_of, timed

N_SCORES = 16_281  # the test part of Adult
N_TIMED = 50  # scores the peer is timed on; its cost is the same for each, so it is scaled up
CALIBRATION_SIZES = (20, 60, 200)
REPEATS = 3  # of ours; the best counts, so that other work on the machine matters less
AGREEMENT = 1e-5


def run(n_scores: int = N_SCORES, n_timed: int = N_TIMED) -> list[Row]:
    """Measure fit plus the masses of `n_scores` scores, for three sizes of calibration set.

    The peer maximises the likelihood along the line for each proportion, and integrates over the
    proportions, for each score by itself (Xu et al. 2016, eqs 22, 23 and 40) with scipy's
    quadrature and Brent's method. Its time is that of `n_timed` scores, scaled to `n_scores`.

    Raises
    ------
    ArithmeticError
        If the two disagree: then there is nothing to compare.

    Examples
    --------
    >>> [row.ratio > 1 for row in run(n_scores=1000, n_timed=1)]
    [True, True, True]
    """
    EvidentialLogistic().fit([0.0, 1.0], [0, 1])  # compiles, or loads what was compiled
    return [_row(n, n_scores, n_timed) for n in CALIBRATION_SIZES]


def _row(n_calibration: int, n_scores: int, n_timed: int) -> Row:
    random = np.random.default_rng(n_calibration)
    labels = random.random(n_calibration) < 0.5
    scores = random.normal(size=n_calibration) + 1.5 * labels
    queries = random.normal(size=n_scores) + 1.5 * (random.random(n_scores) < 0.5)
    ours, interval = best_of(REPEATS, lambda: _ours(scores, labels, queries))
    peer, expected = timed(lambda: _peer(scores, labels, queries[:n_timed]))
    if np.abs(interval[:n_timed] - expected).max() > AGREEMENT:
        raise ArithmeticError(f"n = {n_calibration}: the table and the definition disagree")
    name = f"evidential logistic, {n_calibration} examples, {n_scores} scores"
    return Row(name, ours, peer * n_scores / n_timed)


def _ours(scores: Floats, labels: Bools, queries: Floats) -> Floats:
    return EvidentialLogistic().fit(scores, labels).predict_interval(queries)


def _peer(scores: Floats, labels: Bools, queries: Floats) -> Floats:
    definition = PointByPoint.fit(scores, labels)
    return np.array([definition.bounds(score) for score in queries.tolist()])


@dataclass(frozen=True, slots=True, eq=False)
class PointByPoint:
    """Belief and plausibility of a logistic line, by their definition.

    Attributes
    ----------
    scores, targets : ndarray of shape (n_samples,)
        The calibration set, with Platt's targets.
    offset, slope, loss : float
        The line of maximum likelihood and its negative log-likelihood.
    """

    scores: Floats
    targets: Floats
    offset: float
    slope: float
    loss: float

    @classmethod
    def fit(cls, scores: Floats, labels: Bools) -> "PointByPoint":
        """Find the line of maximum likelihood by BFGS.

        Examples
        --------
        >>> PointByPoint.fit(np.array([-1.0, 1.0]), np.array([False, True])).slope > 0
        True
        """
        positive, negative = np.count_nonzero(labels), np.count_nonzero(~labels)
        targets = np.where(labels, (positive + 1) / (positive + 2), 1 / (negative + 2))

        def loss(line: Floats) -> float:
            return _loss(line[0] + line[1] * scores, targets)

        best = optimize.minimize(loss, np.zeros(2), method="BFGS")
        return cls(scores, targets, float(best.x[0]), float(best.x[1]), float(best.fun))

    def bounds(self, score: float) -> tuple[float, float]:
        """Return Bel({1}) and Pl({1}) at a score (eqs 22 and 23).

        Examples
        --------
        >>> line = PointByPoint.fit(np.array([-1.0, 1.0]), np.array([False, True]))
        >>> [round(bound, 3) for bound in line.bounds(0.0)]
        [0.151, 0.849]
        """
        best = float(special.expit(self.offset + self.slope * score))
        return best - self._area(score, 0.0, best), best + self._area(score, best, 1.0)

    def _area(self, score: float, low: float, high: float) -> float:
        area, _ = integrate.quad(self._contour, low, high, args=(score,), epsabs=1e-7)
        return float(area)

    def _contour(self, tau: float, score: float) -> float:
        """Maximise the relative likelihood over the lines through tau at the score (eq. 40)."""
        u, d = math.log(tau / (1.0 - tau)), self.scores - score
        along = optimize.minimize_scalar(lambda slope: _loss(u + slope * d, self.targets))
        return math.exp(min(self.loss - along.fun, 0.0))


def _loss(eta: Floats, targets: Floats) -> float:
    return float(np.sum(np.logaddexp(0.0, eta) - targets * eta))
