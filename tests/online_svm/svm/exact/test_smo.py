import numpy as np
import pytest
from scipy.optimize import minimize

from online_svm.compiled.kernels import Kernel
from online_svm.svm.exact.kernel_cache import TRAIN_TAIL, empty_rows
from online_svm.svm.exact.smo import intercept, maximise


def rows_over(kernel, X):
    """Kernel rows over the points of X, all of them training points."""
    rows = empty_rows(kernel, X.shape[1], len(X), 1, 1 << 24)
    rows.X[:, : len(X)] = X.T
    rows.points[: len(X)] = X
    rows.diagonal[: len(X)] = kernel.diagonal(X)
    rows.rings[TRAIN_TAIL] = len(X)
    return rows


def solve(kernel, X, z, lower, upper, tol=1e-9, max_steps=100_000):
    beta, F = np.zeros(len(X)), np.zeros(len(X))
    steps, highest, lowest = maximise(
        rows_over(kernel, X), z, lower, upper, beta, F, tol, max_steps, np.zeros((3, len(X)))
    )
    return beta, F, steps, highest, lowest


def best_by_scipy(K, z, lower, upper):
    """The same programme, by a general method."""
    result = minimize(
        lambda beta: 0.5 * beta @ K @ beta - z @ beta,
        np.zeros(len(z)),
        jac=lambda beta: K @ beta - z,
        method="SLSQP",
        bounds=list(zip(lower, upper, strict=True)),
        constraints={"type": "eq", "fun": np.sum, "jac": np.ones_like},
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    return -result.fun


@pytest.mark.parametrize("seed", range(3))
def test_the_optimum_of_a_general_programme_is_that_of_a_general_method(seed):
    """Linear terms that are no labels, and bounds of either sign, as a regression tube has."""
    rng = np.random.default_rng(seed)
    kernel, X = Kernel("rbf", gamma=0.5), rng.normal(size=(12, 2))
    z = rng.normal(size=12)
    lower, upper = -rng.uniform(0, 2, 12), rng.uniform(0, 2, 12)
    lower[:3], upper[3:6] = 0.0, 0.0
    K = kernel(X, X)
    beta, F, *_ = solve(kernel, X, z, lower, upper)
    np.testing.assert_allclose(F, K @ beta, atol=1e-12)
    assert z @ beta - 0.5 * beta @ K @ beta == pytest.approx(
        best_by_scipy(K, z, lower, upper), abs=1e-6
    )


def test_a_solution_meets_its_constraints_and_its_tolerance():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), np.where(rng.random(200) < 0.4, 1.0, -1.0)
    lower, upper = np.minimum(y, 0.0), np.maximum(y, 0.0)
    beta, F, _, highest, lowest = solve(Kernel("rbf", gamma=0.5), X, y, lower, upper, tol=1e-4)
    assert (beta >= lower).all()
    assert (beta <= upper).all()
    assert beta.sum() == pytest.approx(0.0, abs=1e-12)
    slack = y - F
    assert slack[beta < upper].max() - slack[beta > lower].min() < 1e-4
    assert highest == pytest.approx(slack[beta < upper].max())
    assert lowest == pytest.approx(slack[beta > lower].min())


def test_the_solver_stops_at_the_limit_of_steps():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 2)), np.where(np.arange(50) % 2, 1.0, -1.0)
    *_, steps, _, _ = solve(
        Kernel("rbf"), X, y, np.minimum(y, 0.0), np.maximum(y, 0.0), max_steps=7
    )
    assert steps == 7


def test_equal_points_of_opposite_classes_end_on_their_bounds():
    X, y = np.ones((4, 1)), np.array([1.0, -1.0, 1.0, -1.0])
    beta, *_ = solve(Kernel("rbf"), X, y, np.minimum(y, 0.0), np.maximum(y, 0.0))
    np.testing.assert_array_equal(beta, y)


def test_the_constant_is_the_mean_over_free_variables_else_the_midpoint_or_the_finite_end():
    slack = np.array([0.75, -1.5, 1.0])
    nobody, everybody = np.full(3, -np.inf), np.full(3, np.inf)
    up = np.array([0.75, -1.5, -np.inf])  # the third is at its upper bound, the others free
    assert intercept(up, slack, 9.0, 9.0) == (0.75 - 1.5) / 2
    assert intercept(nobody, slack, 1.0, 0.5) == 0.75
    assert intercept(nobody, slack, -np.inf, 0.5) == 0.5
    assert intercept(slack, everybody, 1.0, np.inf) == 1.0
