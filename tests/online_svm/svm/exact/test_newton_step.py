import numpy as np
import pytest

from online_svm.compiled.kernels import Kernel
from online_svm.svm.exact.batch_solver import advance, fixed_rows, sum_rows
from online_svm.svm.exact.newton_step import factorise, free_step, free_variables
from online_svm.svm.exact.smo import Programme, maximise


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


def test_a_matrix_that_is_not_positive_definite_is_noticed():
    assert not factorise(np.array([[1.0, 2.0], [2.0, 1.0]]))
    assert not factorise(np.array([[0.0]]))


def test_rounds_with_newton_steps_reach_the_same_optimum_in_a_fifth_of_the_pair_steps():
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
    steps_alone, _, _ = maximise(rows, z, lower, upper, alone, G, 1e-6, 10**7, work)
    assert objective(beta, z, K) == pytest.approx(objective(alone, z, K), rel=1e-6)
    assert 5 * steps < steps_alone
