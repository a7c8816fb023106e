import numpy as np
import pytest
from scipy.linalg import cho_factor

from online_svm.compiled.kernels import Kernel
from online_svm.svm.exact.batch_solver import advance, constant, fixed_rows, sum_rows
from online_svm.svm.exact.newton_step import (
    add_rows,
    factorise,
    free_step,
    free_variables,
    solve_factorised,
)
from online_svm.svm.exact.smo import Programme, maximise


def problem(seed, n=40, C=1.0, gamma=1.0):
    """A feasible start: every multiplier well inside its bounds, and the sum zero."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    z = np.where(np.arange(n) % 2, 1.0, -1.0)
    lower, upper = np.where(z > 0, 0.0, -C), np.where(z > 0, C, 0.0)
    beta = z * C / 2
    rows = fixed_rows(Kernel("rbf", gamma=gamma, wide=True), X, cache_mb=10.0)
    F = np.zeros(n)
    sum_rows(rows, beta, F)
    return rows, z, lower, upper, beta, F, Kernel("rbf", gamma=gamma, wide=True)(X, X)


def objective(beta, z, K):
    return beta @ z - 0.5 * beta @ K @ beta


def test_the_factor_and_the_solution_are_those_of_lapack():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(30, 30))
    A, right = root @ root.T + np.eye(30), rng.normal(size=30)
    expected = cho_factor(A)[0]
    factor = A.copy()
    assert factorise(factor)
    assert np.triu(factor) == pytest.approx(np.triu(expected), abs=1e-10)
    solution = right.copy()
    solve_factorised(factor, solution)
    assert A @ solution == pytest.approx(right, abs=1e-9)


def test_a_matrix_that_is_not_positive_definite_is_noticed():
    assert not factorise(np.array([[1.0, 2.0], [2.0, 1.0]]))
    assert not factorise(np.array([[0.0]]))


def test_an_unblocked_step_reaches_the_maximum_over_the_free_variables():
    rows, z, _, _, beta, F, K = problem(1, gamma=20.0)
    upper = np.full(40, 100.0)
    lower = -upper
    free = free_variables(lower, upper, beta)
    assert len(free) == len(beta)
    assert not free_step(rows, Programme(z, lower, upper, beta, F), free)
    # Lagrange: K beta + b = z and sum beta = 0.
    system = np.block([[K, np.ones((40, 1))], [np.ones((1, 40)), np.zeros((1, 1))]])
    expected = np.linalg.solve(system, np.append(z, 0.0))[:40]
    assert beta == pytest.approx(expected, abs=1e-7)
    assert pytest.approx(K @ beta, abs=1e-9) == F


def test_a_blocked_step_stops_exactly_at_the_bound_it_meets_first_and_gains():
    rows, z, lower, upper, beta, F, K = problem(2, C=0.3)
    before = objective(beta, z, K)
    assert free_step(rows, Programme(z, lower, upper, beta, F), free_variables(lower, upper, beta))
    assert len(free_variables(lower, upper, beta)) == len(beta) - 1
    assert (lower <= beta).all()
    assert (beta <= upper).all()
    assert beta.sum() == pytest.approx(0.0, abs=1e-12)
    assert objective(beta, z, K) > before
    assert pytest.approx(K @ beta, abs=1e-9) == F


def test_equal_points_with_opposite_targets_move_to_their_bounds():
    kernel = Kernel("rbf", gamma=1.0, wide=True)
    rows = fixed_rows(kernel, np.array([[0.0], [0.0]]), cache_mb=1.0)
    z, lower, upper = np.array([1.0, -1.0]), np.array([0.0, -2.0]), np.array([2.0, 0.0])
    beta, F = np.array([1.0, -1.0]), np.zeros(2)
    assert free_step(rows, Programme(z, lower, upper, beta, F), free_variables(lower, upper, beta))
    assert beta == pytest.approx(np.array([2.0, -2.0]), abs=1e-8)


def test_rows_add_up_to_the_same_bits_whether_cached_or_fetched():
    rng = np.random.default_rng(3)
    X, weights, slots = rng.normal(size=(50, 3)), rng.normal(size=23), np.arange(0, 46, 2)
    sums = []
    for cache_mb in (10.0, 1e-3):
        rows = fixed_rows(Kernel("rbf", gamma=0.7), X, cache_mb)
        for _ in range(2):  # the second time round, the large cache holds every row
            out = np.zeros(50)
            add_rows(rows, slots, weights, out)
            sums.append(out.tobytes())
    assert len(set(sums)) == 1


def test_rounds_with_newton_steps_reach_the_same_optimum_in_a_fifth_of_the_pair_steps():
    rows, z, lower, upper, beta, F, K = problem(4, n=200, C=1000.0, gamma=0.05)
    beta[:], F[:], steps, done = 0.0, 0.0, 0, False
    work = np.empty((3, 200))
    while not done:
        taken, done = advance(rows, Programme(z, lower, upper, beta, F), 1e-6, 10**6, work)
        steps += taken
    slack = z - K @ beta
    assert slack[beta < upper].max() - slack[beta > lower].min() < 1e-5
    alone, G = np.zeros(200), np.zeros(200)
    steps_alone, _, _ = maximise(rows, z, lower, upper, alone, G, 1e-6, 10**7, work)
    assert objective(beta, z, K) == pytest.approx(objective(alone, z, K), rel=1e-6)
    assert 5 * steps < steps_alone


@pytest.mark.parametrize(
    ("grow", "shrink", "free", "expected"),
    [
        ([0.1, 0.5], [0.9, 0.7], [], 0.6),
        ([0.1], [], [], 0.1),
        ([-np.inf], [0.3], [], 0.3),
        ([], [], [], 0.0),
        ([0.0], [9.0], [1.0, 2.0], 1.5),
    ],
)
def test_the_constant_is_the_mean_of_the_free_else_the_midpoint_else_the_finite_end(
    grow, shrink, free, expected
):
    assert constant(np.array(grow), np.array(shrink), np.array(free)) == pytest.approx(expected)
