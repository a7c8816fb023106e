"""Softmax of linear functions of rows, and the loss of such a function; additions in fixed order.

A function of K classes is given by a vector: for a `diagonal` one a_1 ... a_K, b_1 ... b_K, and
z_k = a_k x_k + b_k; else the rows of W one after the other, then b_1 ... b_K, and z = W x + b.

The target of an example is `high` for its class and shares the rest evenly over the others.
"""

from typing import NamedTuple

import numpy as np

from online_svm.compiled.elementary import exp_nonpositive, log
from online_svm.compiled.jit import jit
from online_svm.types import Floats, Ints


class Examples(NamedTuple):
    """What a function is fitted to.

    Attributes
    ----------
    X : ndarray of shape (n, K)
    codes : ndarray of shape (n,)
    highs : ndarray of shape (K,)
        `high` of each class.
    """

    X: Floats
    codes: Ints
    highs: Floats


@jit
def linear_into(x: Floats, theta: Floats, diagonal: bool, z: Floats) -> None:
    """Write the K values of the function at one row."""
    n_classes = len(z)
    biases = len(theta) - n_classes
    for k in range(n_classes):
        if diagonal:
            z[k] = theta[k] * x[k] + theta[biases + k]
        else:
            total = theta[biases + k]
            for j in range(n_classes):
                total += theta[k * n_classes + j] * x[j]
            z[k] = total


@jit
def softmax_in_place(z: Floats) -> float:
    """Replace a row by its softmax; return the logarithm of the sum of exponentials."""
    top = z.max()
    total = 0.0
    for k in range(len(z)):
        z[k] = exp_nonpositive(z[k] - top)
        total += z[k]
    for k in range(len(z)):
        z[k] /= total
    return float(top + log(total))


@jit
def probabilities_into(X: Floats, theta: Floats, diagonal: bool, found: Floats) -> None:
    """Write the softmax of the function at each row, shape (n, K); a row depends on no other."""
    for i in range(len(X)):
        linear_into(X[i], theta, diagonal, found[i])
        softmax_in_place(found[i])


@jit
def loss_and_gradient(
    examples: Examples, theta: Floats, diagonal: bool, ridge: float, gradient: Floats
) -> float:
    """Return the summed cross-entropy, with the ridge, and write its gradient.

    Parameters
    ----------
    examples : Examples
    theta, gradient : ndarray
        As the module says.
    diagonal : bool
    ridge : float
        The penalty is ridge / 2 times the squared distance of a from 1, or W from the identity.
    """
    X, codes, highs = examples
    n_classes = X.shape[1]
    z, p = np.empty(n_classes), np.empty(n_classes)
    biases = len(theta) - n_classes
    gradient[:] = 0.0
    loss = 0.0
    for i in range(len(X)):
        x, y = X[i], codes[i]
        low = (1.0 - highs[y]) / (n_classes - 1)
        # 1. Values, probabilities and the loss: log-sum-exp less the mean value by the target.
        linear_into(x, theta, diagonal, z)
        total = 0.0
        for k in range(n_classes):
            total += z[k]
            p[k] = z[k]
        loss += softmax_in_place(p) - (highs[y] - low) * z[y] - low * total
        # 2. Residuals, and what they add to the gradient.
        for k in range(n_classes):
            residual = p[k] - (highs[y] if k == y else low)
            gradient[biases + k] += residual
            if diagonal:
                gradient[k] += residual * x[k]
            else:
                for j in range(n_classes):
                    gradient[k * n_classes + j] += residual * x[j]
    # 3. The ridge.
    for k in range(n_classes):
        for j in range(n_classes):
            if diagonal and k != j:
                continue
            place = k if diagonal else k * n_classes + j
            distance = theta[place] - (1.0 if k == j else 0.0)
            loss += 0.5 * ridge * distance * distance
            gradient[place] += ridge * distance
    return loss


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
