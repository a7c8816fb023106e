"""SMO and Newton steps end at the optimum of a programme, whatever rows the cache holds."""

import numpy as np
import pytest
from sklearn.svm import SVC

from online_svm.compiled.kernels import Kernel
from online_svm.svm.exact.batch_solver import (
    Programme,
    add_rows,
    advance,
    factorise,
    fixed_rows,
    free_step,
    free_variables,
    maximise,
    solve_factorised,
    sum_rows,
)
from online_svm.types import Floats

KERNELS = [
    Kernel("rbf", 0.3),
    Kernel("rbf", 0.3, wide=True),
    Kernel("linear"),
    Kernel("poly", 0.2, 2, 1.0),
]
TWO_ROWS, ALL_ROWS = 1e-6, 10.0  # MiB


def classes(n: int) -> tuple[Floats, Floats]:
    """Return points and labels of two classes that overlap."""
    rng = np.random.default_rng(n)
    z = np.where(rng.random(n) < 0.4, 1.0, -1.0)
    return rng.normal(size=(n, 3)) + 0.5 * z[:, None], z


def solved(
    kernel: Kernel, X: Floats, z: Floats, C: float, cache_mb: float
) -> tuple[Programme, tuple[int, float, float]]:
    """Return the programme of a classifier, solved, and what the solver returned."""
    n = len(z)
    lower, upper = np.where(z > 0.0, 0.0, -C), np.where(z > 0.0, C, 0.0)
    programme = Programme(z, lower, upper, np.zeros(n), np.zeros(n))
    rows = fixed_rows(kernel, X, cache_mb)
    return programme, maximise(rows, programme, 1e-6, 10**6, np.empty((3, n)))


@pytest.mark.parametrize("n", [2, 63, 64, 65, 200])
@pytest.mark.parametrize("kernel", KERNELS, ids=["rbf", "wide rbf", "linear", "poly"])
def test_the_decision_function_is_that_of_scikit_learn(kernel: Kernel, n: int) -> None:
    X, z = classes(n)
    z[:2] = 1.0, -1.0
    programme, (_, highest, lowest) = solved(kernel, X, z, 0.7, ALL_ROWS)
    svc = SVC(
        C=0.7, kernel=kernel.name, gamma=kernel.gamma, degree=kernel.degree, coef0=kernel.coef0,
        tol=1e-8,
    ).fit(X, z)  # fmt: skip
    b = 0.5 * (highest + lowest)
    assert pytest.approx(kernel(X, X) @ programme.beta, abs=1e-9) == programme.F
    np.testing.assert_allclose(programme.F + b, svc.decision_function(X), atol=1e-4)


@pytest.mark.parametrize("kernel", KERNELS, ids=["rbf", "wide rbf", "linear", "poly"])
def test_what_the_cache_holds_changes_no_bit(kernel: Kernel) -> None:
    X, z = classes(150)
    few, found_few = solved(kernel, X, z, 10.0, TWO_ROWS)
    many, found_many = solved(kernel, X, z, 10.0, ALL_ROWS)
    assert found_few == found_many
    np.testing.assert_array_equal(few.beta, many.beta)
    np.testing.assert_array_equal(few.F, many.F)


def test_variables_without_room_take_no_part() -> None:
    X, z = classes(100)
    part = np.arange(100) % 3 > 0
    C = np.where(part, 1.0, 0.0)
    lower, upper = np.where(z > 0.0, 0.0, -C), np.where(z > 0.0, C, 0.0)
    whole = Programme(z, lower, upper, np.zeros(100), np.zeros(100))
    maximise(fixed_rows(KERNELS[0], X, ALL_ROWS), whole, 1e-6, 10**6, np.empty((3, 100)))
    alone, _ = solved(KERNELS[0], X[part], z[part], 1.0, ALL_ROWS)
    assert not whole.beta[~part].any()
    np.testing.assert_array_equal(whole.beta[part], alone.beta)


def test_examples_of_one_side_are_left_where_they_are() -> None:
    X = np.eye(3)
    programme, (steps, highest, lowest) = solved(KERNELS[0], X, np.ones(3), 1.0, ALL_ROWS)
    assert (steps, highest, lowest) == (0, 1.0, np.inf)
    assert not programme.beta.any()


def problem(seed, n=40, C=1.0, gamma=1.0):
    """A feasible start: every multiplier well inside its bounds, and the sum zero."""
    rng = np.random.default_rng(seed)
    X, kernel = rng.normal(size=(n, 2)), Kernel("rbf", gamma=gamma, wide=True)
    z = np.where(np.arange(n) % 2, 1.0, -1.0)
    lower, upper = np.where(z > 0, 0.0, -C), np.where(z > 0, C, 0.0)
    rows, programme = (
        fixed_rows(kernel, X, 10.0),
        Programme(z, lower, upper, z * C / 2, np.zeros(n)),
    )
    sum_rows(rows, programme.beta, programme.F)
    return rows, programme, kernel(X, X)


def objective(beta, z, K):
    return beta @ z - 0.5 * beta @ K @ beta


def test_an_unblocked_step_reaches_the_maximum_over_the_free_variables():
    rows, start, K = problem(1, gamma=20.0)
    programme = start._replace(lower=np.full(40, -100.0), upper=np.full(40, 100.0))
    assert not free_step(rows, programme, np.arange(40))
    # Lagrange: K beta + b = z and sum beta = 0.
    system = np.block([[K, np.ones((40, 1))], [np.ones((1, 40)), np.zeros((1, 1))]])
    expected = np.linalg.solve(system, np.append(programme.z, 0.0))[:40]
    assert programme.beta == pytest.approx(expected, abs=1e-7)
    assert pytest.approx(K @ programme.beta, abs=1e-9) == programme.F


def test_a_blocked_step_stops_exactly_at_the_bound_it_meets_first_and_gains():
    rows, programme, K = problem(2, C=0.3)
    z, lower, upper, beta, F = programme
    before = objective(beta, z, K)
    assert free_step(rows, programme, free_variables(lower, upper, beta))
    assert len(free_variables(lower, upper, beta)) == len(beta) - 1
    assert ((lower <= beta) & (beta <= upper)).all()
    assert beta.sum() == pytest.approx(0.0, abs=1e-12)
    assert objective(beta, z, K) > before
    assert pytest.approx(K @ beta, abs=1e-9) == F


def test_equal_points_with_opposite_targets_move_to_their_bounds():
    """Their kernel matrix is singular."""
    rows = fixed_rows(Kernel("rbf", gamma=1.0, wide=True), np.zeros((2, 1)), 1.0)
    z, beta = np.array([1.0, -1.0]), np.array([1.0, -1.0])
    bounds = (np.array([0.0, -2.0]), np.array([2.0, 0.0]))
    assert free_step(rows, Programme(z, *bounds, beta, np.zeros(2)), np.arange(2))
    assert beta == pytest.approx(np.array([2.0, -2.0]), abs=1e-8)


@pytest.mark.parametrize("n", [0, 1, 2, 9, 40])
def test_factors_are_those_of_cholesky_and_solve_the_system(n):
    rng = np.random.default_rng(n)
    A = rng.normal(size=(n, n + 2))
    A = A @ A.T
    U, x = A.copy(), rng.normal(size=n)
    expected = np.linalg.solve(A, x)
    assert factorise(U)
    np.testing.assert_allclose(np.triu(U), np.linalg.cholesky(A).T, atol=1e-12)
    solve_factorised(U, x)
    np.testing.assert_allclose(x, expected, rtol=1e-6)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("n_cached", [0, 3, 8, 30])
def test_sums_of_rows_are_a_matrix_product_for_any_cache(wide, n_cached):
    rng = np.random.default_rng(n_cached)
    X, kernel = rng.normal(size=(30, 3)), Kernel("rbf", 0.5, wide=wide)
    rows, slots = fixed_rows(kernel, X, 1.0), rng.permutation(30)[:11]
    weights, start = rng.normal(size=11), rng.normal(size=30)
    sum_rows(rows, np.where(np.arange(30) < n_cached, 1.0, 0.0), np.empty(30))
    out = start.copy()
    add_rows(rows, slots, weights, out)
    np.testing.assert_allclose(out, start + weights @ kernel(X[slots], X), atol=1e-12)


def test_a_matrix_that_is_not_positive_definite_is_noticed():
    assert not factorise(np.array([[1.0, 2.0], [2.0, 1.0]]))
    assert not factorise(np.array([[0.0]]))


def test_newton_steps_save_four_fifths_of_the_pair_steps():
    rows, programme, K = problem(4, n=200, C=1000.0, gamma=0.05)
    z, lower, upper, beta, F = programme
    beta[:], F[:], steps, done = 0.0, 0.0, 0, False
    work = np.empty((3, 200))
    while not done:
        taken, done = advance(rows, programme, 1e-6, 10**6, work)
        steps += taken
    slack = z - K @ beta
    assert slack[beta < upper].max() - slack[beta > lower].min() < 1e-5
    alone, G = np.zeros(200), np.zeros(200)
    steps_alone, _, _ = maximise(rows, Programme(z, lower, upper, alone, G), 1e-6, 10**7, work)
    assert objective(beta, z, K) == pytest.approx(objective(alone, z, K), rel=1e-6)
    assert 5 * steps < steps_alone
