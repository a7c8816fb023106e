"""The logistic line of maximum likelihood, and the likelihood around it."""

import math
from dataclasses import dataclass

import numpy as np

from online_svm.calibration.evidential.profile import moments, profile
from online_svm.calibration.platt import PlattScaling, Targets
from online_svm.compiled.elementary import exp, log
from online_svm.compiled.logistic import logit, logits
from online_svm.types import Bools, Floats

MAX_STEPS = 200  # bisection alone needs fewer; Newton's method needs two or three
OPTIMAL = 1e-14  # log-likelihood that a last step may still promise
# Farther out a line has reached its limit long ago, and squares still fit a float.
FARTHEST = 1e100
LONGEST = 4.0  # step in log-odds: beyond it the parabola of Newton's method means nothing


@dataclass(frozen=True, slots=True)
class FittedLine:
    """log-odds = offset + slope t at the standardised score t = (score - centre) / width.

    Attributes
    ----------
    centre, width : float
        Mean and deviation of the scores by their information p (1 - p). A width of 0 says that
        there is one distinct score, the centre.
    offset, slope : float
        The line of maximum likelihood.
    w0, w1, w2 : float
        Sums of p (1 - p), times t and times t^2: the information matrix.
    """

    centre: float
    width: float
    offset: float
    slope: float
    w0: float
    w1: float
    w2: float

    def standardise(self, scores: Floats) -> Floats:
        """Return the standardised scores, cut off at `FARTHEST`."""
        if self.width == 0.0:
            return np.zeros(len(scores))
        with np.errstate(over="ignore"):  # an infinity is cut off too
            return np.clip((scores - self.centre) / self.width, -FARTHEST, FARTHEST)

    def undetermined(self, scores: Floats) -> Bools:
        """Say where the examples do not tell the line's value: they have one score, not this."""
        return np.asarray((scores != self.centre) & (self.width == 0.0))

    def log_odds(self, t: Floats) -> Floats:
        """Return the line's value at standardised scores."""
        return self.offset + self.slope * t

    def deviation(self, t: Floats) -> Floats:
        """Return the asymptotic standard deviation of the line's value at standardised scores."""
        if self.width == 0.0:
            return np.full(len(t), 1.0 / math.sqrt(self.w0))
        determinant = self.w0 * self.w2 - self.w1 * self.w1
        return np.asarray(np.sqrt((self.w2 - 2.0 * self.w1 * t + self.w0 * t * t) / determinant))


@dataclass(frozen=True, slots=True, eq=False)
class Likelihood:
    """The examples a line was fitted to.

    Attributes
    ----------
    line : FittedLine
    scores, targets : ndarray of shape (n_samples,)
        Standardised scores, and the probability that each label stands for.
    top : float
        Log-likelihood of the line.
    """

    line: FittedLine
    scores: Floats
    targets: Floats
    top: float

    def log_flat(self) -> float:
        """Return the relative log-likelihood of the best line without a slope."""
        mean = math.fsum(self.targets) / len(self.targets)
        terms = (share * log(share) for share in (mean, 1.0 - mean) if share > 0.0)
        return min(len(self.targets) * sum(terms) - self.top, 0.0)

    def contour(self, t: float, tau: Floats) -> Floats:
        """Return the plausibility of the proportions tau at a standardised score (eq. 40)."""
        d = self.scores - t
        return np.array([self._plausible(d, u) for u in logits(tau).tolist()])

    def _plausible(self, d: Floats, u: float) -> float:
        if math.isinf(u):
            return 0.0
        return exp(min(profile(d, self.targets, u, self.line.slope)[1] - self.top, 0.0))


def fit_line(scores: Floats, positive: Bools, targets: Targets) -> Likelihood:
    """Maximise the likelihood of a line, starting from Platt's optimum.

    Platt's map never falls with the score; here the slope may have either sign.

    Parameters
    ----------
    scores : ndarray of shape (n_samples,), n_samples >= 1
    positive : ndarray of bool of shape (n_samples,)
    targets : {"platt", "raw"}

    Raises
    ------
    InvalidInput
        If raw targets have no finite optimum.
    """
    start = PlattScaling(targets=targets).fit(scores, positive)
    if targets == "raw":  # a line may fall, so scores that separate the other way have none either
        PlattScaling(targets=targets).fit(-scores, positive)
    values = _target_values(positive, targets)
    low, high = float(scores.min()), float(scores.max())
    centre, half = 0.5 * low + 0.5 * high, 0.5 * high - 0.5 * low
    if half < np.finfo(np.float64).tiny:
        return _at_one_score(low, values)
    # Twice: the frame that suits the integrals is known once the line is.
    framed = (scores - centre) / half
    offset, slope = _optimum(framed, values, -start.A_ * centre - start.B_, -start.A_ * half)
    middle, spread = _informative(framed, values, offset, slope)
    frame = FittedLine(centre + half * middle, half * spread, 0.0, 0.0, 0.0, 0.0, 0.0)
    t = frame.standardise(scores)
    offset, slope = _optimum(t, values, offset + slope * middle, slope * spread)
    return _around(frame.centre, frame.width, offset, slope, t, values)


def _target_values(positive: Bools, targets: Targets) -> Floats:
    if targets == "raw":
        return positive.astype(np.float64)
    n_positive = int(np.count_nonzero(positive))
    n_negative = len(positive) - n_positive
    return np.where(positive, (n_positive + 1.0) / (n_positive + 2.0), 1.0 / (n_negative + 2.0))


def _at_one_score(score: float, targets: Floats) -> Likelihood:
    """Return the best constant: without two different scores there is no slope to speak of."""
    mean = math.fsum(targets) / len(targets)
    return _around(score, 0.0, logit(mean), 0.0, np.zeros(len(targets)), targets)


def _around(
    centre: float, width: float, offset: float, slope: float, t: Floats, targets: Floats
) -> Likelihood:
    top, _, _, w0, w1, w2 = moments(t, targets, offset, slope)
    return Likelihood(FittedLine(centre, width, offset, slope, w0, w1, w2), t, targets, top)


def _optimum(t: Floats, targets: Floats, u: float, a: float) -> tuple[float, float]:
    """Maximise over both parameters: Newton, inside a bracket, over the value at t = 0."""
    low, high = -math.inf, math.inf
    for _ in range(MAX_STEPS):
        a, _, derivative, curvature, tangent = profile(t, targets, u, a)
        step = derivative / curvature
        if derivative * step <= OPTIMAL:
            return u + step, a + tangent * step
        low, high = (u, high) if derivative > 0.0 else (low, u)
        step = min(max(step, -LONGEST), LONGEST)
        if not low < u + step < high:
            step = 0.5 * (low + high) - u
        u, a = u + step, a + tangent * step
    return u, a


def _informative(t: Floats, targets: Floats, offset: float, slope: float) -> tuple[float, float]:
    """Return mean and deviation of the scores by their information."""
    _, _, _, w0, w1, _ = moments(t, targets, offset, slope)
    middle = w1 / w0
    _, _, _, w0, _, w2 = moments(t - middle, targets, offset + slope * middle, slope)
    return middle, math.sqrt(w2 / w0)
