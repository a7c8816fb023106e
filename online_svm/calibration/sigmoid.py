"""Two minimisers of the cross-entropy of a sigmoid of the score, for `PlattScaling`.

Both work on p = 1 / (1 + exp(a f + b)) with scores |f| <= 1, target `high` for the positive
examples and `low` for the others, start at a = 0 with the given b, and return (a, b, loss).
`weights` says what each example counts for; where it is empty, each counts once.
"""

from online_svm.compiled.elementary import exp_nonpositive, log1p
from online_svm.compiled.jit import jit
from online_svm.types import Bools, Floats

Point = tuple[float, float, float]
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
def evaluate(
    scores: Floats, positive: Bools, weights: Floats, high: float, low: float, a: float, b: float
) -> tuple[float, float, float, float, float, float]:
    """Return the loss, its gradient (2) and its Hessian (aa, ab, bb).

    The loss is t z + log(1 + e^-z) or (t - 1) z + log(1 + e^z) with z = a f + b: whichever has a
    negative exponent (Lin, Lin & Weng 2007, section 3), so nothing overflows or cancels.
    """
    loss = grad_a = grad_b = hess_aa = hess_ab = hess_bb = 0.0
    for i in range(len(scores)):
        score = scores[i]
        target = high if positive[i] else low
        # 1. p and 1 - p, from the exponential that cannot overflow.
        z = a * score + b
        power = exp_nonpositive(-abs(z))
        larger = 1.0 / (1.0 + power)
        smaller = power * larger
        # 2. Loss, gradient and curvature of this example.
        term = log1p(power) + (target * z if z >= 0.0 else (target - 1.0) * z)
        residual = target - (smaller if z >= 0.0 else larger)
        weight = smaller * larger
        if len(weights):
            mass = weights[i]
            term, weight, residual = term * mass, weight * mass, residual * mass
        # 3. Add them up.
        loss += term
        grad_a += score * residual
        grad_b += residual
        hess_aa += score * score * weight
        hess_ab += score * weight
        hess_bb += weight
    return loss, grad_a, grad_b, hess_aa, hess_ab, hess_bb


@jit
def newton(
    scores: Floats, positive: Bools, weights: Floats, high: float, low: float, b: float
) -> Point:
    """Minimise by Newton's method with backtracking (Lin, Lin & Weng 2007)."""
    a = 0.0
    loss, grad_a, grad_b, aa, ab, bb = evaluate(scores, positive, weights, high, low, a, b)
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
        trial = evaluate(scores, positive, weights, high, low, a + step_a, b + step_b)
        while trial[0] > loss - SUFFICIENT_DECREASE * length * decrease and length > shortest:
            length *= 0.5
            trial = evaluate(
                scores, positive, weights, high, low, a + length * step_a, b + length * step_b
            )
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
    loss, grad_a, grad_b, aa, ab, bb = evaluate(scores, positive, weights, high, low, a, b)
    for _ in range(MAX_ITERATIONS):
        while damping < LARGEST_DAMPING:
            # 1. The damped Newton step.
            determinant = (aa + damping) * (bb + damping) - ab * ab
            new_a = a - ((bb + damping) * grad_a - ab * grad_b) / determinant
            new_b = b - ((aa + damping) * grad_b - ab * grad_a) / determinant
            trial = evaluate(scores, positive, weights, high, low, new_a, new_b)
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
