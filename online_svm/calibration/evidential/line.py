"""The maximum likelihood line of logistic regression, and the profile likelihood around it.

The line is eta(x) = u + a (x - s) with the log-odds u at the score s and the slope a. The
likelihood of u, maximised over a and relative to the overall maximum, is the plausibility of u
(Xu et al. 2016, eq. 40). Scores are given as distances d = x - s; targets lie in [0, 1].
"""

import math
from dataclasses import dataclass

import numpy as np

from online_svm.calibration.platt import PlattScaling, Targets, target_values
from online_svm.compiled.elementary import exp, log, logit, logits
from online_svm.compiled.kernel import kernel
from online_svm.types import Bools, Floats

Moments = tuple[float, float, float, float, float, float]
Profile = tuple[float, float, float, float, float]


@kernel
def moments(d: Floats, targets: Floats, u: float, a: float) -> Moments:
    """Return the log-likelihood, its derivatives by u and a, and the sums of w, w d and w d^2.

    The weights are w = p (1 - p), so the sums form the information matrix.
    """


@kernel
def profile(d: Floats, targets: Floats, u: float, a: float) -> Profile:
    """Maximise the likelihood over the slope by bracketed Newton steps, starting at `a`.

    Returns the best slope, its log-likelihood, the first and minus the second derivative of the
    maximum by u, and the derivative of the best slope by u.
    """


@kernel
def log_ignorance(
    d: Floats, targets: Floats, u_hat: float, a_hat: float, top: float, rule: Floats
) -> float:
    """Return the log mean plausibility of the proportions below the best one, tau = expit(u_hat).

    That is log of (1 / tau) times the integral of the contour from 0 to tau; at most 0. The line
    has the value `u_hat` at the score, the slope `a_hat` and the log-likelihood `top`. `rule`,
    shape (2, n_nodes), holds ascending nodes and weights of a quadrature on [0, 1].
    """


MAX_STEPS = 200  # bisection alone needs fewer; Newton's method needs two or three
MIN_GAIN_OF_A_STEP = 1e-14  # stop when a Newton step would gain less log-likelihood
# Standardised scores are clipped here: the line has reached its limit, and squares stay finite.
MAX_STANDARDISED_SCORE = 1e100
MAX_NEWTON_STEP = 4.0  # in log-odds: Newton's quadratic model is useless for longer steps


@dataclass(frozen=True, slots=True)
class FittedLine:
    """log-odds = offset + slope t at the standardised score t = (score - centre) / width."""

    centre: float  # mean of the scores, weighted by their information p (1 - p)
    width: float  # their standard deviation, weighted likewise; 0 for a single distinct score
    offset: float
    slope: float  # with the offset, it maximises the likelihood
    w0: float  # sum of p (1 - p)
    w1: float  # sum of p (1 - p) t
    w2: float  # sum of p (1 - p) t^2; with w0 and w1 the information matrix

    def standardise(self, scores: Floats) -> Floats:
        """Return the standardised scores, clipped at `MAX_STANDARDISED_SCORE`."""
        if self.width == 0.0:
            return np.zeros(len(scores))
        with np.errstate(over="ignore"):  # infinities are clipped too
            return np.clip(
                (scores - self.centre) / self.width, -MAX_STANDARDISED_SCORE, MAX_STANDARDISED_SCORE
            )

    def undetermined(self, scores: Floats) -> Bools:
        """Return a mask of scores without a fitted value: all examples have one other score."""
        return np.asarray((scores != self.centre) & (self.width == 0.0))

    def log_odds(self, t: Floats) -> Floats:
        """Return the log-odds at standardised scores."""
        return self.offset + self.slope * t

    def deviation(self, t: Floats) -> Floats:
        """Return the asymptotic standard deviation of the log-odds at standardised scores."""
        if self.width == 0.0:
            return np.full(len(t), 1.0 / math.sqrt(self.w0))
        determinant = self.w0 * self.w2 - self.w1 * self.w1
        return np.asarray(np.sqrt((self.w2 - 2.0 * self.w1 * t + self.w0 * t * t) / determinant))


@dataclass(frozen=True, slots=True, eq=False)
class Likelihood:
    """The examples that a line was fitted to."""

    line: FittedLine
    scores: Floats  # standardised, shape (n_samples,)
    targets: Floats  # target probability of each example, shape (n_samples,)
    top: float  # log-likelihood of the line

    def log_flat(self) -> float:
        """Return the relative log-likelihood of the best line of slope zero."""
        mean = math.fsum(self.targets) / len(self.targets)
        terms = (share * log(share) for share in (mean, 1.0 - mean) if share > 0.0)
        return min(len(self.targets) * sum(terms) - self.top, 0.0)

    def contour(self, t: float, tau: Floats) -> Floats:
        """Return the plausibility of the proportions `tau` at a standardised score (eq. 40)."""
        d = self.scores - t
        return np.array([self._plausible(d, u) for u in logits(tau).tolist()])

    def _plausible(self, d: Floats, u: float) -> float:
        if math.isinf(u):
            return 0.0
        return exp(min(profile(d, self.targets, u, self.line.slope)[1] - self.top, 0.0))


def fit_line(scores: Floats, positive: Bools, targets: Targets) -> Likelihood:
    """Fit a logistic line by maximum likelihood, starting from Platt's optimum.

    Unlike Platt's map, the line may have a slope of either sign. There must be at least one
    example. Raises InvalidInput if raw targets have no finite optimum.
    """
    start = PlattScaling(targets=targets).fit(scores, positive)
    if targets == "raw":  # reversed separable scores have no finite optimum either
        PlattScaling(targets=targets).fit(-scores, positive)
    n_positive = int(np.count_nonzero(positive))
    sides = target_values(targets, (n_positive, len(positive) - n_positive))
    values = np.where(positive, *sides)
    low, high = float(scores.min()), float(scores.max())
    centre, half = 0.5 * low + 0.5 * high, 0.5 * high - 0.5 * low
    if half < np.finfo(np.float64).tiny:
        return _at_one_score(low, values)
    # Fit twice: the frame that suits the integrals depends on the line.
    framed = (scores - centre) / half
    offset, slope = _optimum(framed, values, -start.A_ * centre - start.B_, -start.A_ * half)
    middle, spread = _informative(framed, values, offset, slope)
    frame = FittedLine(centre + half * middle, half * spread, 0.0, 0.0, 0.0, 0.0, 0.0)
    t = frame.standardise(scores)
    offset, slope = _optimum(t, values, offset + slope * middle, slope * spread)
    return _around(frame.centre, frame.width, offset, slope, t, values)


def _at_one_score(score: float, targets: Floats) -> Likelihood:
    """Return the best constant: a single distinct score does not determine a slope."""
    mean = math.fsum(targets) / len(targets)
    return _around(score, 0.0, logit(mean), 0.0, np.zeros(len(targets)), targets)


def _around(
    centre: float, width: float, offset: float, slope: float, t: Floats, targets: Floats
) -> Likelihood:
    top, _, _, w0, w1, w2 = moments(t, targets, offset, slope)
    return Likelihood(FittedLine(centre, width, offset, slope, w0, w1, w2), t, targets, top)


def _optimum(t: Floats, targets: Floats, u: float, a: float) -> tuple[float, float]:
    """Maximise over both parameters by bracketed Newton steps in the value at t = 0."""
    low, high = -math.inf, math.inf
    for _ in range(MAX_STEPS):
        a, _, derivative, curvature, tangent = profile(t, targets, u, a)
        step = derivative / curvature
        if derivative * step <= MIN_GAIN_OF_A_STEP:
            return u + step, a + tangent * step
        low, high = (u, high) if derivative > 0.0 else (low, u)
        step = min(max(step, -MAX_NEWTON_STEP), MAX_NEWTON_STEP)
        if not low < u + step < high:
            step = 0.5 * (low + high) - u
        u, a = u + step, a + tangent * step
    return u, a


def _informative(t: Floats, targets: Floats, offset: float, slope: float) -> tuple[float, float]:
    """Return the mean and standard deviation of the scores, weighted by their information."""
    _, _, _, w0, w1, _ = moments(t, targets, offset, slope)
    middle = w1 / w0
    _, _, _, w0, _, w2 = moments(t - middle, targets, offset + slope * middle, slope)
    return middle, math.sqrt(w2 / w0)
