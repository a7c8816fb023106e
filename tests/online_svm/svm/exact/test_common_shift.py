import numpy as np
import pytest
from sklearn.svm import SVC

from online_svm.compiled.kernels import Kernel
from online_svm.svm.exact.rolling_machine import RollingMachine

NARROW = Kernel("rbf", gamma=12.5)


def grid_points(n, seed=0):
    """Points at distances of one and more, as unscaled codes of categories are."""
    rng = np.random.default_rng(seed)
    X = rng.permutation(np.indices((4, 4, 4, 4, 4)).reshape(5, -1).T.astype(float))[:n]
    return X, (rng.random(n) < 0.2).astype(np.int64)


def streamed(X, codes, start, window=None):
    machine = RollingMachine(NARROW, [1.0, 1.0], window=window)
    machine.extend(X[:start], codes[:start], training=np.ones(start, dtype=bool))
    machine.solve()
    for i in range(start, len(X)):
        machine.extend(X[i : i + 1], codes[i : i + 1], training=np.ones(1, dtype=bool))
        machine.forget(0 if window is None else len(machine) - window)
        machine.solve()
    return machine


@pytest.mark.parametrize("window", [None, 150], ids=["all are held", "the oldest are forgotten"])
def test_a_new_example_takes_few_steps_with_a_narrow_kernel(window):
    X, codes = grid_points(500)
    machine = streamed(X, codes, 150, window)
    assert machine.steps < 10 * len(X)
    held = slice(500 - len(machine), None)
    svc = SVC(gamma=12.5, tol=1e-6).fit(X[held], codes[held])
    values = machine.model().scores(X)[:, 0]
    np.testing.assert_allclose(values, svc.decision_function(X), atol=2e-3)


def test_observers_follow_common_shifts():
    X, codes = grid_points(400)
    machine = streamed(X[:250], codes[:250], 200)
    machine.extend(X[250:], codes[250:])
    for _ in range(50):
        machine.promote(1)
        machine.solve()
    scores = machine.model().scores(X[300:])
    np.testing.assert_allclose(machine.observer_values(), scores, atol=1e-11)


@pytest.mark.parametrize("gamma", [0.1, 1.0, 12.5])
def test_kept_sums_over_members_equal_recomputed_ones(gamma):
    X, codes = grid_points(300)
    machine = RollingMachine(Kernel("rbf", gamma), [1.0, 1.0], window=150)
    for i in range(300):
        machine.extend(X[i : i + 1], codes[i : i + 1], training=np.ones(1, dtype=bool))
        machine.forget(max(0, len(machine) - 150))
        machine.solve()
    arrays = machine.state().arrays
    K = machine.kernel(arrays["X"], arrays["X"])
    np.testing.assert_allclose(arrays["sums"], arrays["weights"] @ K, atol=1e-10)
