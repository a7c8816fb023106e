"""The active set is a matter of speed: after every step the optimum holds over all variables."""

import numpy as np
import pytest

from online_svm.compiled.kernels import Kernel
from online_svm.svm.exact.machine_state import FITS, SIZE, VACANT
from online_svm.svm.exact.rolling_machine import RollingMachine

KERNELS = [
    Kernel("rbf", 0.3),
    Kernel("rbf", 0.3, wide=True),
    Kernel("linear"),
    Kernel("poly", gamma=0.2, degree=2, coef0=1.0),
]


def stream(n, n_classes=2, seed=0, d=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).round(1)
    X[::7] = X[0]  # equal points, of all classes
    edges = np.linspace(-1, 1, n_classes + 1)[1:-1]
    return X, np.searchsorted(edges, X[:, 0] + 0.4 * rng.normal(size=n))


def roll(machine, X, codes, i, count=1):
    machine.forget(count)
    machine.extend(X[i : i + count], codes[i : i + count], training=np.ones(count, dtype=bool))
    machine.solve()


def rolling(kernel, penalties, X, codes, window, **settings):
    machine = RollingMachine(kernel, penalties, window=window, **settings)
    machine.extend(X[:window], codes[:window], training=np.ones(window, dtype=bool))
    machine.solve()
    return machine


def assert_no_variable_violates(machine):
    """Slacks summed afresh from the coefficients alone, active or not."""
    X, beta = machine.training_points(), machine.coefficients()
    F, codes = beta @ machine.kernel(X, X), machine.codes
    for s in range(machine.n_machines):
        positive = codes == (1 if machine.n_machines == 1 else s)
        if positive.all() or not positive.any():
            continue
        bound = machine._penalties[codes]
        lower, upper = np.where(positive, 0.0, -bound), np.where(positive, bound, 0.0)
        slack = np.where(positive, 1.0, -1.0) - F[s]
        assert (beta[s] >= lower).all()
        assert (beta[s] <= upper).all()
        grow, shrink = slack[beta[s] < upper], slack[beta[s] > lower]
        assert grow.max(initial=-np.inf) - shrink.min(initial=np.inf) < machine.tol
        values = machine.training_values()[:, s] - machine.intercept[s]
        np.testing.assert_allclose(values, F[s], atol=1e-9 * (1 + np.abs(F[s]).max()))


def is_compact(machine):
    return bool(machine._held.bank.active.counts[:, FITS].any())


CASES = [
    *((kernel, n_classes, 1.0, 1e-3) for kernel in KERNELS for n_classes in (2, 4)),
    *((KERNELS[0], 2, C, 1e-3) for C in (1e-3, 1e3)),
    *((KERNELS[0], 2, 1.0, tol) for tol in (1e-2, 1e-6)),
]


@pytest.mark.parametrize(("kernel", "n_classes", "C", "tol"), CASES)
def test_no_variable_violates_optimality_after_any_step(kernel, n_classes, C, tol):
    X, codes = stream(340, n_classes)
    machine = rolling(kernel, C * np.linspace(0.5, 2.0, n_classes), X, codes, 250, tol=tol)
    compact = 0
    for i in range(250, 340):
        roll(machine, X, codes, i)
        assert_no_variable_violates(machine)
        compact += is_compact(machine)
    assert compact > 0  # else this test would say nothing of active sets


def test_a_small_tolerance_is_met_in_few_steps():
    """Steps on slacks of 24 bits went round in circles where the tolerance was beyond those."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 3))
    codes = (X[:, 0] + rng.normal(size=400) > 0).astype(np.int64)
    machine = rolling(Kernel("rbf", gamma=1 / 3), [1.0, 1.0], X, codes, 75, tol=1e-9)
    for i in range(75, 400, 25):
        roll(machine, X, codes, i, count=25)
        assert_no_variable_violates(machine)
    assert machine.steps < 20_000


def test_the_kernel_matrix_of_the_active_set_follows_the_points():
    X, codes = stream(600)
    machine = rolling(KERNELS[0], [1.0, 1.0], X, codes, 300)
    for i in range(300, 600):
        roll(machine, X, codes, i)
    active, points = machine._held.bank.active, machine._held.bank.rows.points
    places = np.flatnonzero(active.slots[0, : active.counts[0, SIZE]] != VACANT)
    slots = active.slots[0, places]
    np.testing.assert_array_equal(active.place[0, slots], places)
    assert np.count_nonzero(active.place[0] != VACANT) == len(slots) > 0
    expected = machine.kernel(points[slots], points[slots])
    np.testing.assert_array_equal(active.K[0][np.ix_(places, places)], expected)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("code", [0, 1])
def test_of_equal_variables_the_first_is_moved(kernel, code):
    X, codes = stream(250)
    machine = rolling(kernel, [1.0, 1.0], X, codes, 250)
    assert is_compact(machine)
    before = machine.coefficients()[0]
    wrong = X[:1].copy()
    wrong[0, 0] = 3.0 - 6.0 * code
    machine.extend(np.repeat(wrong, 3, axis=0), np.full(3, code), training=np.ones(3, dtype=bool))
    machine.max_steps = 1
    assert machine.solve() == 1
    assert np.flatnonzero(machine.coefficients()[0, 250:]).tolist() == [0]
    assert np.count_nonzero(machine.coefficients()[0, :250] != before) == 1


@pytest.mark.parametrize(("C", "expected"), [(0.1, -0.15), (10.0, -1.0 / 3.0)])
def test_the_constant_is_the_mean_over_free_variables_else_the_midpoint(C, expected):
    """At C = 0.1 both coefficients are at a bound: their slacks are -0.7 and 0.4."""
    machine = RollingMachine(Kernel("linear"), [C, C], tol=1e-9)
    machine.extend(np.array([[-1.0], [2.0]]), np.array([0, 1]), training=np.ones(2, dtype=bool))
    machine.solve()
    assert machine.intercept == pytest.approx([expected])
