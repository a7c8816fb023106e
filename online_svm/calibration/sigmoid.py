"""Two minimisers of the cross-entropy of a sigmoid of the score, for `PlattScaling`.

Both work on p = 1 / (1 + exp(a f + b)) with scores |f| <= 1, target `high` for the positive
examples and `low` for the others, start at a = 0 with the given b, and return (a, b, loss).
`weights` says what each example counts for; where it is empty, each counts once.
"""

import numpy as np

from online_svm.compiled.elementary import exp_nonpositive, log1p
from online_svm.compiled.intrinsics import fma
from online_svm.compiled.jit import jit
from online_svm.types import Bools, Floats

Point = tuple[float, float, float]
Derivatives = tuple[float, float, float, float, float, float]
LANES = 32  # sums that run side by side, in a fixed order
MAX_ITERATIONS = 100  # Lin, Lin & Weng's and Platt's; five to ten are usual
RIDGE = 1e-12  # Lin, Lin & Weng: keeps the Hessian positive definite
SUFFICIENT_DECREASE = 1e-4  # Armijo's constant, as in Lin, Lin & Weng
SHORTEST_STEP = 1e-10
# Relative to the loss. One more full Newton step squares this, which is below rounding.
NEARLY_OPTIMAL = 1e-10
# Platt's listing stops at changes of 1e-3, which can be that far from the optimum.
NO_CHANGE = 1e-9
LARGEST_DAMPING = 1e6


@jit
def evaluate(scores: Floats, targets: Floats, weights: Floats, a: float, b: float) -> Derivatives:
    """Return the loss, its gradient (2) and its Hessian (aa, ab, bb).

    The loss is t z + log(1 + e^-z) or (t - 1) z + log(1 + e^z) with z = a f + b: whichever has a
    negative exponent (Lin, Lin & Weng 2007, section 3), so nothing overflows or cancels.
    """
    lanes = np.zeros(6 * LANES)
    for first in range(0, len(scores), LANES):
        stop = min(first + LANES, len(scores))
        _add(scores[first:stop], targets[first:stop], weights[first:stop], a, b, lanes)
    sums = np.zeros(6)
    for i in range(6 * LANES):
        sums[i // LANES] += lanes[i]
    return sums[0], sums[1], sums[2], sums[3], sums[4], sums[5]


@jit
def _add(
    scores: Floats, targets: Floats, weights: Floats, a: float, b: float, lanes: Floats
) -> None:
    """Add the terms of one example to each lane; no branch, so that several are taken at a time."""
    for i in range(len(scores)):
        score, target, mass = scores[i], targets[i], weights[i]
        # 1. p and 1 - p, from the exponential that cannot overflow.
        z = fma(a, score, b)
        power = exp_nonpositive(-abs(z))
        larger = 1.0 / (1.0 + power)
        smaller = power * larger
        # 2. Loss, gradient and curvature of this example.
        term = mass * (log1p(power) + (target * z if z >= 0.0 else (target - 1.0) * z))
        residual = mass * (target - (smaller if z >= 0.0 else larger))
        weight = mass * (smaller * larger)
        # 3. Add them up.
        lanes[i] += term
        lanes[LANES + i] = fma(score, residual, lanes[LANES + i])
        lanes[2 * LANES + i] += residual
        lanes[3 * LANES + i] = fma(score * weight, score, lanes[3 * LANES + i])
        lanes[4 * LANES + i] = fma(score, weight, lanes[4 * LANES + i])
        lanes[5 * LANES + i] += weight


@jit
def _of_examples(
    positive: Bools, weights: Floats, high: float, low: float
) -> tuple[Floats, Floats]:
    """Return the target and the weight of each example."""
    targets = np.empty(len(positive))
    for i in range(len(positive)):
        targets[i] = high if positive[i] else low
    return targets, weights if len(weights) else np.ones(len(positive))


@jit
def newton(
    scores: Floats, positive: Bools, weights: Floats, high: float, low: float, b: float
) -> Point:
    """Minimise by Newton's method with backtracking (Lin, Lin & Weng 2007)."""
    a = 0.0
    targets, masses = _of_examples(positive, weights, high, low)
    loss, grad_a, grad_b, aa, ab, bb = evaluate(scores, targets, masses, a, b)
    for _ in range(MAX_ITERATIONS):
        # 1. The Newton direction, by the inverse of the 2 x 2 Hessian.
        aa += RIDGE
        bb += RIDGE
        determinant = aa * bb - ab * ab
        step_a = (ab * grad_b - bb * grad_a) / determinant
        step_b = (ab * grad_a - aa * grad_b) / determinant
        decrease = -(grad_a * step_a + grad_b * step_b)
        if not decrease > 0.0:  # nothing to gain, or the Hessian is lost in rounding
            break
        # 2. Line search: halve the step until the loss falls enough (Armijo).
        last = decrease <= NEARLY_OPTIMAL * loss
        shortest = 1.0 if last else SHORTEST_STEP
        length = 1.0
        trial = evaluate(scores, targets, masses, a + step_a, b + step_b)
        while trial[0] > loss - SUFFICIENT_DECREASE * length * decrease and length > shortest:
            length *= 0.5
            trial = evaluate(scores, targets, masses, a + length * step_a, b + length * step_b)
        # 3. Move there, unless nothing is gained.
        if not trial[0] < loss:
            break
        a += length * step_a
        b += length * step_b
        loss, grad_a, grad_b, aa, ab, bb = trial
        if last:
            break
    return a, b, loss


@jit
def model_trust(
    scores: Floats, positive: Bools, weights: Floats, high: float, low: float, b: float
) -> Point:
    """Minimise by the Levenberg-Marquardt iteration of Platt's appendix.

    Three things differ from the printed listing: the inner sum uses each example's own target
    (the listing keeps the last one), the loss is the stable one (there log 0 is -200) and must
    not grow, and the change that counts as none is smaller.
    """
    a, damping, unchanged = 0.0, 1e-3, 0
    targets, masses = _of_examples(positive, weights, high, low)
    loss, grad_a, grad_b, aa, ab, bb = evaluate(scores, targets, masses, a, b)
    for _ in range(MAX_ITERATIONS):
        while damping < LARGEST_DAMPING:
            # 1. The damped Newton step.
            determinant = (aa + damping) * (bb + damping) - ab * ab
            new_a = a - ((bb + damping) * grad_a - ab * grad_b) / determinant
            new_b = b - ((aa + damping) * grad_b - ab * grad_a) / determinant
            trial = evaluate(scores, targets, masses, new_a, new_b)
            # 2. Damp more until the loss does not grow.
            if trial[0] <= loss:
                break
            damping *= 10.0
        if damping >= LARGEST_DAMPING:
            break
        # 3. Move there, damp less the next time; stop after three steps without a change.
        damping *= 0.1
        unchanged = unchanged + 1 if loss - trial[0] <= NO_CHANGE * loss else 0
        a, b = new_a, new_b
        loss, grad_a, grad_b, aa, ab, bb = trial
        if unchanged == 3:
            break
    return a, b, loss
