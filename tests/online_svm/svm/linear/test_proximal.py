"""The proximal machine is at the optimum of its programme, and keeps what leaves."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.svm import LinearSVC

from online_svm.svm.linear.proximal import ROUNDS, ProximalMachine

EXACT = {"tol": 1e-9, "rounds": 20_000}


def problem(n=80, d=6, seed=0, classes=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    score = X[:, 0] + 0.5 * X[:, 1] + 0.7 * rng.normal(size=n)
    return X, np.digitize(score, np.quantile(score, np.arange(1, classes) / classes))


def reference(X, y, upper, past):
    """Solve the dual with scipy: minimise 1/2 |past + sum alpha y x|^2 - sum alpha."""
    rows = y[:, None] * np.column_stack([X, np.ones(len(X))])

    def dual(alpha):
        w = past + rows.T @ alpha
        return 0.5 * w @ w - alpha.sum(), rows @ w - 1.0

    bounds, tight = [(0.0, limit) for limit in upper], {"ftol": 1e-13, "maxiter": 1000}
    start = np.zeros(len(X))
    found = minimize(dual, start, jac=True, bounds=bounds, method="SLSQP", options=tight)
    assert found.success
    return past + rows.T @ found.x


def literal(X, y, upper, past, passes):
    """Dual coordinate ascent as it is written in the paper, one full pass after the other."""
    rows, alpha, w = np.column_stack([X, np.ones(len(X))]), np.zeros(len(X)), past.copy()
    for _ in range(passes):
        for i, x in enumerate(rows):
            new = min(max(alpha[i] + (1.0 - y[i] * (x @ w)) / (x @ x), 0.0), upper[i])
            w += (new - alpha[i]) * y[i] * x
            alpha[i] = new
    return w


@pytest.mark.parametrize("C", [0.01, 1.0, 50.0])
def test_without_a_past_it_is_the_linear_machine_of_scikit_learn(C):
    X, codes = problem()
    machine = ProximalMachine(2, 6, **EXACT)
    machine.extend(X, codes)
    w = machine.solve([C, C])[0]
    svc = LinearSVC(C=C, loss="hinge", tol=1e-8, max_iter=1_000_000).fit(X, codes)
    np.testing.assert_allclose(w[:-1], svc.coef_[0], atol=1e-4)
    np.testing.assert_allclose(w[-1], svc.intercept_[0], atol=1e-4)


@pytest.mark.parametrize("fading", [1.0, 0.98])
def test_with_a_past_it_is_at_the_optimum_of_the_proximal_programme(fading):
    X, codes = problem(120)
    y, upper = np.where(codes > 0, 1.0, -1.0), np.where(codes > 0, 1.0, 0.5)
    machine, past = ProximalMachine(2, 6, fading=fading, **EXACT), np.zeros(7)
    for part in (slice(0, 40), slice(40, 80), slice(80, 120)):
        machine.extend(X[part], codes[part])
        expected = reference(X[part], y[part], upper[part], past)
        np.testing.assert_allclose(machine.solve([0.5, 1.0])[0], expected, atol=1e-4)
        machine.release(40, steps=55)
        past = expected + (fading**55 - 1.0) * past  # what was gone before has faded


def test_a_round_is_a_pass_of_the_literal_ascent_and_then_some():
    X, codes = problem()
    y = np.where(codes > 0, 1.0, -1.0)
    machine = ProximalMachine(2, 6, rounds=1, tol=1e300)  # one pass is good enough
    machine.extend(X, codes)
    one = literal(X, y, np.ones(80), np.zeros(7), passes=1)
    np.testing.assert_allclose(machine.solve([1.0, 1.0])[0], one, atol=1e-12)
    machine = ProximalMachine(2, 6)
    machine.extend(X, codes)
    best = literal(X, y, np.ones(80), np.zeros(7), passes=5000)
    after = literal(X, y, np.ones(80), np.zeros(7), passes=ROUNDS)
    ours = machine.solve([1.0, 1.0])[0]
    assert np.abs(ours - best).max() < 0.5 * np.abs(after - best).max()


def test_points_that_leave_take_nothing_with_them_where_nothing_fades():
    X, codes = problem()
    machine = ProximalMachine(2, 6, **EXACT)
    machine.extend(X, codes)
    before = machine.solve([1.0, 1.0])
    machine.release(80)
    np.testing.assert_allclose(machine.solve([1.0, 1.0]), before, atol=1e-12)
    assert len(machine) == 0


def test_more_classes_are_one_machine_each():
    X, codes = problem(classes=3)
    machine = ProximalMachine(3, 6, **EXACT)
    machine.extend(X, codes)
    weights = machine.solve([1.0, 2.0, 0.5])
    assert weights.shape == (3, 7)
    for k in range(3):
        y, upper = np.where(codes == k, 1.0, -1.0), np.array([1.0, 2.0, 0.5])[codes]
        np.testing.assert_allclose(weights[k], reference(X, y, upper, np.zeros(7)), atol=1e-4)


@pytest.mark.parametrize(("codes", "score"), [([1, 1], 1.0), ([0, 0], -1.0), ([], -1.0)])
def test_a_machine_that_saw_one_side_only_answers_it_until_the_other_comes(codes, score):
    machine = ProximalMachine(2, 1, **EXACT)
    X = np.arange(float(len(codes)))[:, None]
    machine.extend(X, np.array(codes, dtype=np.int64))
    assert machine.solve([1.0, 1.0]).tolist() == [[0.0, score]]
    machine.release(len(codes))
    machine.extend(np.array([[-1.0], [1.0]]), np.array([0, 1]))
    assert machine.solve([1.0, 1.0])[0, 0] > 0.0


def test_lower_penalties_hold_for_points_that_are_there():
    X, codes = problem()
    machine, fresh = ProximalMachine(2, 6, **EXACT), ProximalMachine(2, 6, **EXACT)
    for one in (machine, fresh):
        one.extend(X, codes)
    machine.solve([5.0, 5.0])
    np.testing.assert_allclose(machine.solve([0.1, 0.2]), fresh.solve([0.1, 0.2]), atol=1e-6)


@settings(max_examples=20, deadline=None)
@given(events=st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=8))
def test_a_machine_goes_on_from_its_arrays_bit_for_bit(events):
    X, codes = problem(100, classes=3)
    machine, first, last = ProximalMachine(3, 6, fading=0.9), 0, 0
    for more, fewer in events:
        machine.extend(X[last : last + more], codes[last : last + more])
        last += more
        machine.solve([1.0, 1.0, 1.0])
        fewer = min(fewer, last - first)
        machine.release(fewer)
        first += fewer
        copy = ProximalMachine.from_state(machine.state(), X[first:last], 3, fading=0.9)
        assert copy.solve([1.0, 1.0, 1.0]).tobytes() == machine.solve([1.0, 1.0, 1.0]).tobytes()
        machine = copy
