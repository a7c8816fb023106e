"""The likelihood of a logistic line with its value at one score held fixed.

The line is eta(x) = u + a (x - s): u is the log-odds at the score s, a the slope. For each u the
slope that fits best is found; the relative likelihood that is left is the plausibility of u
(Xu et al. 2016, eq. 40). Scores come as distances d = x - s; targets lie in [0, 1].
"""

import math

import numpy as np

from online_svm.compiled.elementary import exp, exp_nonpositive, log, log1p
from online_svm.compiled.intrinsics import fma
from online_svm.compiled.jit import jit
from online_svm.types import Floats

SOLVED = 1e-9  # stop when a Newton step promises less log-likelihood; what it leaves is cubic in it
MAX_STEPS = 200  # bisection alone, from any bracket, needs fewer
DROP = 22.0  # integrate until the integrand has fallen by this many nepers, to 3e-10 of its top

LANES = 32  # sums that run side by side, in a fixed order
FOLDED = 400 * LANES  # examples after which a product of factors of at most two is 2^400, 1e120

Moments = tuple[float, float, float, float, float, float]
Profile = tuple[float, float, float, float, float]


@jit
def moments(d: Floats, targets: Floats, u: float, a: float) -> Moments:
    """Return log-likelihood, its derivatives by u and a, and the weighted moments of d.

    The moments are the sums of w, w d and w d^2 with w = p (1 - p): the information matrix.
    """
    lanes = np.zeros(7 * LANES)
    lanes[:LANES] = 1.0
    # 1. Add the examples to the lanes; fold the product before it overflows.
    for first in range(0, len(d), LANES):
        if first % FOLDED == FOLDED - LANES:
            _fold(lanes)
        stop = min(first + LANES, len(d))
        _add(d[first:stop], targets[first:stop], u, a, lanes)
    _fold(lanes)
    # 2. Sum over the lanes.
    sums = np.zeros(7)
    for i in range(LANES, 7 * LANES):
        sums[i // LANES] += lanes[i]
    return sums[1], sums[2], sums[3], sums[4], sums[5], sums[6]


@jit
def _add(d: Floats, targets: Floats, u: float, a: float, lanes: Floats) -> None:
    """Add one term to each lane of the product of 1 + exp(-|eta|) and of the six sums.

    The lanes lie in one array at fixed distances: so the compiler can tell that they are apart,
    and takes several examples at a time.
    """
    for i in range(len(d)):
        # 1. The line, and p and 1 - p without overflow.
        x = d[i]
        eta = fma(a, x, u)
        small = exp_nonpositive(-abs(eta))
        large = 1.0 / (1.0 + small)
        # 2. Derivatives of the log-likelihood of this example.
        residual = targets[i] - (large if eta >= 0.0 else small * large)
        weight = small * large * large
        # 3. Add to the lanes: log-likelihood, gradient, information.
        lanes[i] *= 1.0 + small
        lanes[LANES + i] += targets[i] * eta - (eta if eta > 0.0 else 0.0)
        lanes[2 * LANES + i] += residual
        lanes[3 * LANES + i] = fma(x, residual, lanes[3 * LANES + i])
        lanes[4 * LANES + i] += weight
        lanes[5 * LANES + i] = fma(weight, x, lanes[5 * LANES + i])
        lanes[6 * LANES + i] = fma(weight * x, x, lanes[6 * LANES + i])


@jit
def _fold(lanes: Floats) -> None:
    """Take the logarithms of the products off the log-likelihood; the products begin anew."""
    product = 1.0
    for i in range(LANES):
        product *= lanes[i]
        lanes[i] = 1.0
        if product > 1e120:
            lanes[LANES] -= log(product)
            product = 1.0
    lanes[LANES] -= log(product)


@jit
def profile(d: Floats, targets: Floats, u: float, a: float) -> Profile:
    """Maximise the likelihood over the slope, from the slope `a`, by Newton inside a bracket.

    Returns
    -------
    slope, log_likelihood : float
        The best slope and what it reaches.
    derivative, curvature : float
        First and minus second derivative of that maximum by u.
    tangent : float
        Derivative of the best slope by u.
    """
    low, high, limit = -math.inf, math.inf, 1.0
    value, du, da, w0, w1, w2 = moments(d, targets, u, a)
    for _ in range(MAX_STEPS):
        # 1. Stop when a Newton step would gain next to nothing.
        if da * da <= 2.0 * SOLVED * w2:
            break
        # 2. The bracket of the best slope.
        low, high = (a, high) if da > 0.0 else (low, a)
        # 3. The Newton step, kept inside the bracket.
        step = da / w2 if w2 > 0.0 else math.copysign(math.inf, da)
        if not low < a + step < high:  # never with an open side in that direction
            step = 0.5 * (low + high) - a
        # Where the line saturates the curvature vanishes and a step means little: grow by doubling.
        step, limit = min(max(step, -limit), limit), 2.0 * limit
        # 4. Log-likelihood and derivatives at the new slope.
        a += step
        value, du, da, w0, w1, w2 = moments(d, targets, u, a)
    if w2 <= 0.0:  # every score is s: the slope changes nothing
        return a, value, du, w0, 0.0
    # The last step is taken on paper.
    return a + da / w2, value + 0.5 * da * da / w2, du - w1 * da / w2, w0 - w1 * w1 / w2, -w1 / w2


@jit
def _log_density(u: float) -> float:
    """Return the logarithm of d tau / d u = tau (1 - tau)."""
    return -abs(u) - 2.0 * log1p(exp_nonpositive(-abs(u)))


@jit
def _slope_of_density(u: float) -> float:
    """Return minus the derivative of `_log_density`, tanh(u / 2)."""
    small = exp_nonpositive(-abs(u))
    return math.copysign((1.0 - small) / (1.0 + small), u)


@jit
def _mode(d: Floats, targets: Floats, u_hat: float, a_hat: float) -> tuple[float, float, float]:
    """Return where plausibility times density is largest below u_hat: u, slope, width.

    Left of zero the density falls towards smaller u as the plausibility does, so the top is at
    u_hat itself, or between zero and u_hat.
    """
    a, _, derivative, curvature, tangent = profile(d, targets, u_hat, a_hat)
    u, low, high = u_hat, 0.0, u_hat
    if u_hat <= 0.0:
        density = exp(_log_density(u))
        return u, a, 1.0 / (-_slope_of_density(u) + math.sqrt(curvature + 2.0 * density))
    for _ in range(MAX_STEPS):
        # 1. First and minus second derivative of the log of plausibility times density.
        slope = derivative - _slope_of_density(u)
        bend = curvature + 2.0 * exp(_log_density(u))
        # 2. The Newton step, kept inside the bracket.
        low, high = (u, high) if slope > 0.0 else (low, u)
        target = u + slope / bend
        if not low < target < high:
            target = 0.5 * (low + high)
        if abs(target - u) * (math.sqrt(bend) + abs(slope)) < 0.2:  # it only places the nodes
            break
        # 3. The best slope of the line there, from a linear guess.
        a, _, derivative, curvature, tangent = profile(
            d, targets, target, a + tangent * (target - u)
        )
        u = target
    return u, a, 1.0 / math.sqrt(bend)


@jit
def _reach(d: Floats, targets: Floats, u: float, a: float, distance: float) -> float:
    """Return a distance from u (with the sign of `distance`) at which the integrand is negligible.

    The integrand is log-concave, so its fall grows at least as fast as the distance.
    """
    a, value, _, _, tangent = profile(d, targets, u, a)
    top = value + _log_density(u)
    for _ in range(MAX_STEPS):
        end = u + distance
        drop = top - profile(d, targets, end, a + tangent * distance)[1] - _log_density(end)
        if 0.8 * DROP <= drop <= 1.6 * DROP:
            break
        # Between the rule of a straight line and that of a parabola; at most four times at once.
        root = math.sqrt(min(max(DROP / max(drop, 0.1), 0.2), 6.0))
        distance *= root * math.sqrt(root)
    return distance


@jit
def _panel(d: Floats, targets: Floats, span: Floats, a: float, top: float, rule: Floats) -> float:
    """Integrate plausibility times density, over exp(top), from span[0] to span[1]."""
    start, length, total = span[0], span[1] - span[0], 0.0
    u, tangent = start, 0.0
    for j in range(rule.shape[1]):
        target = start + length * rule[0, j]
        a, value, _, _, tangent = profile(d, targets, target, a + tangent * (target - u))
        u = target
        total += rule[1, j] * exp(value + _log_density(u) - top)
    return float(total * abs(length))


@jit
def log_ignorance(
    d: Floats, targets: Floats, u_hat: float, a_hat: float, top: float, rule: Floats
) -> float:
    """Return the logarithm of the mean plausibility of the proportions below the best one.

    Parameters
    ----------
    d, targets : ndarray of shape (n_samples,)
    u_hat, a_hat : float
        The line of maximum likelihood: its value at the score and its slope.
    top : float
        That maximum log-likelihood.
    rule : ndarray of shape (2, n_nodes)
        Nodes and weights of a quadrature on [0, 1], nodes ascending.

    Returns
    -------
    float
        log of (1 / tau) times the integral of the contour from 0 to tau, tau = expit(u_hat);
        it is at most 0.
    """
    # 1. Where the integrand is largest, and how wide it is.
    u, a, width = _mode(d, targets, u_hat, a_hat)
    peak = profile(d, targets, u, a)[1] + _log_density(u)
    # 2. Integrate from there to where it is negligible, on either side.
    distance = width * math.sqrt(2.0 * DROP)
    low = u + _reach(d, targets, u, a, -distance)
    total = _panel(d, targets, np.array([u, low]), a, peak, rule)
    if u < u_hat:
        high = min(u + _reach(d, targets, u, a, distance), u_hat)
        total += _panel(d, targets, np.array([u, high]), a, peak, rule)
    # 3. Divide by tau, in logarithms.
    log_tau = min(u_hat, 0.0) - log1p(exp_nonpositive(-abs(u_hat)))
    return min(peak + log(total) - top - log_tau, 0.0)
