"""The best temperature: a root of one increasing function."""

import numpy as np

from online_svm.calibration.joint.softmax import softmax_in_place
from online_svm.compiled.jit import jit
from online_svm.types import Floats, Ints

MAX_ITERATIONS = 200  # ten are usual
NEARLY_FLAT = 1e-9  # of the derivative, an example, in units of the largest score


@jit
def inverse_temperature(scores: Floats, codes: Ints, highs: Floats) -> float:
    """Return the beta >= 0 with the least cross-entropy of softmax(beta s).

    Parameters
    ----------
    scores : ndarray of shape (n, K)
        The largest of each row is 0, none is below -2, one is at or below -1.
    codes : ndarray of shape (n,)
    highs : ndarray of shape (K,)
        Target of the own class; the others share the rest.
    """
    enough = NEARLY_FLAT * len(scores)
    slope, _ = _derivatives(scores, codes, highs, 0.0)
    if slope >= 0.0:  # the scores point the wrong way, or nowhere
        return 0.0
    # 1. A bracket of the root of the derivative, which increases: the loss is convex.
    below, above = 0.0, 1.0
    while _derivatives(scores, codes, highs, above)[0] < 0.0 and above < 1e9:
        below, above = above, 2.0 * above
    # 2. Newton's method inside it; a step that leaves it is replaced by its middle.
    beta = 0.5 * (below + above)
    for _ in range(MAX_ITERATIONS):
        slope, curvature = _derivatives(scores, codes, highs, beta)
        if abs(slope) <= enough:
            break
        if slope < 0.0:
            below = beta
        else:
            above = beta
        step = beta - slope / curvature if curvature > 0.0 else below
        beta = step if below < step < above else 0.5 * (below + above)
    return beta


@jit
def _derivatives(scores: Floats, codes: Ints, highs: Floats, beta: float) -> tuple[float, float]:
    """Return the first and second derivative of the cross-entropy at beta."""
    n_classes = scores.shape[1]
    p = np.empty(n_classes)
    slope = curvature = 0.0
    for i in range(len(scores)):
        s, y = scores[i], codes[i]
        low = (1.0 - highs[y]) / (n_classes - 1)
        for k in range(n_classes):
            p[k] = beta * s[k]
        softmax_in_place(p)
        mean = square = by_target = 0.0
        for k in range(n_classes):
            mean += p[k] * s[k]
            square += p[k] * s[k] * s[k]
            by_target += (highs[y] if k == y else low) * s[k]
        slope += mean - by_target
        curvature += square - mean * mean
    return slope, curvature
