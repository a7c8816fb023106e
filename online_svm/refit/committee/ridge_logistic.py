"""Logistic regression with a quadratic penalty, by Newton's method, with sums in a fixed order."""

from typing import NamedTuple

import numpy as np

from online_svm.compiled.kernel import kernel
from online_svm.types import Floats


class Regression(NamedTuple):
    """A penalised regression of n examples on p features; see `fit_ridge_logistic`."""

    # Shape (n_features, n); feature-major; a constant feature carries the intercept.
    features: Floats
    targets: Floats  # shape (n,); in [0, 1]
    costs: Floats  # shape (n,)
    # Shape (n_features,); centre and (positive) strength of the penalty on each weight.
    centre: Floats
    ridge: Floats


def fit_ridge_logistic(problem: Regression, weights: Floats, steps: int, tol: float) -> int:
    """Minimise a penalised logistic loss, in place; return the number of steps.

    The loss of the weights w is
    sum_i c_i (log(1 + exp(w.x_i)) - t_i w.x_i) + 1/2 sum_f ridge_f (w_f - centre_f)^2.

    The cost of a truncated Newton step (Dembo and Steihaug 1983) is linear in the number of
    features. A step is halved while the loss ascends at its end, so no step increases the loss by
    more than rounding.

    `weights`, shape (n_features,): the start, replaced by the solution.
    `steps`: maximum number of Newton steps.
    `tol`: the largest entry of the gradient at which to stop.
    """
    p, n = problem.features.shape
    return _fit(problem, weights, steps, tol, np.empty((4, n)), np.empty((8, p)))


@kernel
def _fit(
    problem: Regression,
    weights: Floats,
    steps: int,
    tol: float,
    of_rows: Floats,
    of_features: Floats,
) -> int:
    """Implement `fit_ridge_logistic`; `of_rows`, (4, n), and `of_features`, (8, p), are scratch."""
