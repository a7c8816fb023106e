"""Logistic regression with a quadratic penalty, by Newton's method, every sum in a fixed order."""

from typing import NamedTuple

import numpy as np

from online_svm.compiled.intrinsics import fma
from online_svm.compiled.jit import inner, jit
from online_svm.compiled.logistic import logistic
from online_svm.compiled.ordered_sums import LANES, add_to_lanes, sum_of_lanes
from online_svm.types import Floats

# A direction is near enough to Newton's when this much of the gradient is left unexplained.
FORCING = 1e-3
MOST_PRODUCTS = 60  # with the Hessian, for one direction
OVERSHOOT = 0.1  # of the slope that a step begins with: as much uphill it may end with
MOST_HALVINGS = 30


class Regression(NamedTuple):
    """A penalised regression of n examples on p features; see `fit_ridge_logistic`.

    Attributes
    ----------
    features : ndarray of shape (n_features, n)
        Feature-major; a constant feature carries the intercept.
    targets : ndarray of shape (n,)
        In [0, 1].
    costs : ndarray of shape (n,)
    centre, ridge : ndarray of shape (n_features,)
        Where the penalty draws each weight, and how strongly: positive.
    """

    features: Floats
    targets: Floats
    costs: Floats
    centre: Floats
    ridge: Floats


class Work(NamedTuple):
    """Scratch: four times (n,), the lanes of a sum, and (5, p)."""

    values: Floats
    curvature: Floats
    residuals: Floats
    products: Floats
    lanes: Floats
    rows: Floats


@inner
def _inner(u: Floats, v: Floats, lanes: Floats) -> float:
    lanes[:] = 0.0
    add_to_lanes(u, v, lanes)
    return sum_of_lanes(lanes)


@inner
def _sums(features: Floats, weights: Floats, out: Floats) -> None:
    """Write sum_f weights_f features[f, i] to out[i]."""
    out[:] = 0.0
    for f in range(len(weights)):
        w, row = weights[f], features[f]
        for i in range(len(out)):
            out[i] = fma(w, row[i], out[i])


@inner
def _gradient(problem: Regression, weights: Floats, work: Work, gradient: Floats) -> None:
    """Write the gradient at `weights`, and the curvature c_i p_i (1 - p_i) of each example."""
    features, targets, costs, centre, ridge = problem
    values, curvature, residuals, _, lanes, _ = work
    _sums(features, weights, values)
    for i in range(len(values)):
        p = logistic(values[i])
        residuals[i] = costs[i] * (p - targets[i])
        curvature[i] = costs[i] * p * (1.0 - p)
    for f in range(len(weights)):
        penalty = ridge[f] * (weights[f] - centre[f])
        gradient[f] = _inner(features[f], residuals, lanes) + penalty


@inner
def _direction(problem: Regression, gradient: Floats, work: Work, direction: Floats) -> None:
    """Write H^-1 gradient, nearly, by conjugate gradients preconditioned by the diagonal of H."""
    features, ridge = problem.features, problem.ridge
    curvature, products, lanes, rows = work.curvature, work.products, work.lanes, work.rows
    diagonal, rest, scaled, search, image = rows[0], rows[1], rows[2], rows[3], rows[4]
    # 1. The diagonal; a start at zero, where all of the gradient is left.
    for f in range(len(ridge)):
        for i in range(len(products)):
            products[i] = curvature[i] * features[f, i]
        diagonal[f] = _inner(features[f], products, lanes) + ridge[f]
        direction[f], rest[f] = 0.0, gradient[f]
        search[f] = scaled[f] = rest[f] / diagonal[f]
    size = _inner(rest, scaled, lanes)
    enough = FORCING * FORCING * size
    for _ in range(MOST_PRODUCTS):
        if not size > enough:
            return
        # 2. The Hessian times the search direction.
        _sums(features, search, products)
        for i in range(len(products)):
            products[i] *= curvature[i]
        for f in range(len(ridge)):
            image[f] = _inner(features[f], products, lanes) + ridge[f] * search[f]
        # 3. To the minimum along it, and a new one that is conjugate to it.
        step = size / _inner(search, image, lanes)
        for f in range(len(ridge)):
            direction[f] += step * search[f]
            rest[f] -= step * image[f]
            scaled[f] = rest[f] / diagonal[f]
        before = size
        size = _inner(rest, scaled, lanes)
        for f in range(len(ridge)):
            search[f] = scaled[f] + size / before * search[f]


@jit
def fit_ridge_logistic(problem: Regression, weights: Floats, steps: int, tol: float) -> int:
    """Move `weights`, in place, to the minimum of a penalised logistic loss.

    The minimum over w of
    sum_i c_i (log(1 + exp(w.x_i)) - t_i w.x_i) + 1/2 sum_f ridge_f (w_f - centre_f)^2.

    Truncated Newton steps (Dembo and Steihaug 1983): the cost of one is linear in the number of
    features. A step that would go uphill at its end is halved, so none makes the objective worse
    by more than rounding.

    Parameters
    ----------
    problem : Regression
    weights : ndarray of shape (n_features,)
        The start; the solution afterwards.
    steps : int
        The most Newton steps.
    tol : float
        They end where no entry of the gradient is larger.

    Returns
    -------
    int
        Steps taken.

    Examples
    --------
    >>> weights, one = np.zeros(1), np.ones(1)
    >>> features, targets, costs = np.ones((1, 2)), np.array([0.0, 1.0]), np.ones(2)
    >>> problem = Regression(features, targets, costs, one, one)
    >>> fit_ridge_logistic(problem, weights, 9, 1e-9)
    3
    >>> weights.round(3)  # drawn to 1 by the penalty, to 0 by the examples
    array([0.675])
    """
    p, n = problem.features.shape
    work = Work(
        np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(LANES), np.empty((5, p))
    )
    gradient, direction, start = np.empty(p), np.empty(p), np.empty(p)
    _gradient(problem, weights, work, gradient)
    for taken in range(steps):
        # 1. Stop at the minimum.
        worst = 0.0
        for f in range(p):
            worst = max(worst, abs(gradient[f]))
        if not worst > tol:
            return taken
        # 2. Newton's direction; downhill it has the slope -|slope|.
        _direction(problem, gradient, work, direction)
        slope = _inner(gradient, direction, work.lanes)
        start[:] = weights
        step = 1.0
        # 3. Along it, until it would rise.
        for _ in range(MOST_HALVINGS):
            for f in range(p):
                weights[f] = start[f] - step * direction[f]
            _gradient(problem, weights, work, gradient)
            if -_inner(gradient, direction, work.lanes) <= OVERSHOOT * slope:
                break
            step *= 0.5
    return steps
