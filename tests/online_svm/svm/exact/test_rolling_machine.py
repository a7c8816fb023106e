import json

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.svm import SVC

from online_svm.compiled.kernels import Kernel
from online_svm.errors import InvalidInput
from online_svm.svm.exact.rolling_machine import RollingMachine

KERNEL = Kernel("rbf", gamma=0.3)
KINDS = ["train", "observe", "promote", "forget"]


def stream(n, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    edges = np.linspace(-1, 1, n_classes + 1)[1:-1]
    return X, np.searchsorted(edges, X[:, 0] + 0.5 * rng.normal(size=n))


def machine_on(X, codes, n_classes=2, kernel=KERNEL, **settings):
    machine = RollingMachine(kernel, np.ones(n_classes), **settings)
    machine.extend(X, codes, training=np.ones(len(X), dtype=bool))
    machine.solve()
    return machine


def assert_held(machine, X, codes, trains):
    """The machine holds these points, and their decision values are those of its model."""
    values = machine.decision_values()
    np.testing.assert_allclose(values, machine.model().scores(X), atol=1e-12)
    np.testing.assert_array_equal(machine.observer_values(), values[~trains])
    np.testing.assert_array_equal(machine.training_values(), values[trains])
    np.testing.assert_array_equal(machine.codes, codes)
    assert machine.training_points().tolist() == X[trains].tolist()


def assert_optimal_for(machine, X, codes, evaluated):
    """The machine is, class by class, what scikit-learn's SVC is on the same examples."""
    values = machine.model().scores(evaluated)
    for c in range(machine.n_classes):
        positive = codes == c
        if positive.all() or not positive.any():
            side = 1.0 if len(codes) and positive.all() else -1.0
            np.testing.assert_array_equal(values[:, c], side)
        else:
            svc = SVC(kernel="rbf", gamma=0.3, tol=1e-6).fit(X, positive)
            np.testing.assert_allclose(values[:, c], svc.decision_function(evaluated), atol=2e-3)


@given(
    events=st.lists(st.tuples(st.sampled_from(KINDS), st.integers(1, 40)), min_size=1, max_size=15),
    mixed=st.booleans(),
    seed=st.integers(0, 100),
)
@example([("train", 40), ("forget", 40), ("train", 290), ("forget", 120)], True, 0)
@example([("train", 150), ("forget", 40), ("observe", 150), ("promote", 80)], False, 0)
@settings(max_examples=30, deadline=None, derandomize=True)
def test_any_sequence_of_events_ends_at_the_optimum_for_the_training_points_held(
    events, mixed, seed
):
    """The points that train are the oldest of those held, or any of them if `mixed`."""
    X, codes = stream(2000, 3, seed)
    X, rng = np.round(X, 1), np.random.default_rng(seed)  # equal points, some of opposite classes
    machine, trains, first, stop = RollingMachine(KERNEL, np.ones(3)), np.zeros(2000, bool), 0, 0
    for event, count in events:
        if event in ("train", "observe"):
            new = slice(stop, stop + count)
            alike = event == "train" and machine.n_observers == 0
            trains[new] = rng.random(count) < 0.7 if mixed else alike
            expected = machine.model().scores(X[new]) if len(machine) else None
            values = machine.extend(X[new], codes[new], training=trains[new])
            if expected is not None:
                np.testing.assert_allclose(values, expected, atol=1e-12)
            stop += count
        elif event == "promote" and not mixed:
            count = min(count, machine.n_observers)
            machine.promote(count)
            trains[first + np.flatnonzero(~trains[first:stop])[:count]] = True
        elif event == "forget":
            count = min(count, len(machine))
            machine.forget(count)
            first += count
        np.testing.assert_allclose(machine.coefficients().sum(axis=1), 0.0, atol=1e-11)
        machine.solve()
        assert machine.solve() == 0, "solving again changes nothing"
        held = slice(first, stop)
        assert_held(machine, X[held], codes[held], trains[held])
    rows = first + np.flatnonzero(trains[first:stop])
    assert machine.n_training == len(rows)
    assert_optimal_for(machine, X[rows], codes[rows], X[:30])


def advance(machine, X, codes, i):
    """One step of a rolling protocol with an oldest-first split, left unsolved."""
    machine.solve()
    machine.extend(X[i : i + 5], codes[i : i + 5])
    machine.promote(4)
    machine.solve()
    machine.forget(3)


@pytest.mark.parametrize("cache_mb", [200.0, 0.01])
def test_a_restored_machine_continues_bit_for_bit_with_any_cache(cache_mb):
    X, codes = stream(600, 3)
    kernel = Kernel("rbf", gamma=0.3, wide=True)
    machine = machine_on(X[:200], codes[:200], 3, kernel, window=200)
    for i in range(200, 400, 5):
        advance(machine, X, codes, i)
    state = machine.state()
    header = json.loads(json.dumps(state.header))  # as a snapshot stores it
    restored = RollingMachine.from_state(state._replace(header=header | {"cache_mb": cache_mb}))
    for i in range(400, 600, 5):
        advance(machine, X, codes, i)
        advance(restored, X, codes, i)
        first, second = machine.state(), restored.state()
        assert first.header | {"cache_mb": cache_mb} == second.header
        assert first.arrays.keys() == second.arrays.keys()
        for name, values in first.arrays.items():
            np.testing.assert_array_equal(values, second.arrays[name], err_msg=name)


def test_changed_penalties_end_at_the_optimum_for_them():
    X, codes = stream(200)
    machine = machine_on(X, codes)
    machine.extend(X[:50], codes[:50])
    machine.set_penalties([0.1, 2.0])
    machine.solve()
    svc = SVC(gamma=0.3, tol=1e-6, class_weight={0: 0.1, 1: 2.0}).fit(X, codes)
    np.testing.assert_allclose(
        machine.observer_values()[:, 0], svc.decision_function(X[:50]), atol=2e-3
    )


def test_recomputing_sums_moves_decision_values_by_rounding_only(monkeypatch):
    X, codes = stream(300)
    monkeypatch.setattr("online_svm.svm.exact.rolling_machine.REFRESH_STEPS", 100)
    machine = machine_on(X[:200], codes[:200])
    machine.extend(X[200:], codes[200:], training=np.ones(100, dtype=bool))
    machine.solve()
    assert machine.state().header["refreshed_at"] > 0
    assert_held(machine, X, codes, np.ones(300, dtype=bool))


def promoted_late(machine):
    machine.extend(np.zeros((2, 3)), np.zeros(2, dtype=int), training=np.array([False, True]))
    machine.promote(1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.extend(np.zeros((2, 4)), np.zeros(2, dtype=int)), "^X: expected 3 features"),
        (lambda m: m.extend(np.zeros((2, 3)), np.zeros(3, dtype=int)), "^X and codes: expected"),
        (lambda m: m.extend(np.zeros((1, 3)), np.array([2])), "^codes: expected classes from 0"),
        (lambda m: m.promote(1), "^count: 1 of 0 observers"),
        (promoted_late, "a younger point already trains"),
        (lambda m: m.forget(101), "^count: cannot forget 101 of 100"),
        (lambda m: m.set_penalties([1.0, 1.0, 1.0]), "^penalties: expected 2"),
        (lambda m: m.set_penalties([1.0, 0.0]), "^penalties: expected a positive number"),
    ],
)
def test_an_argument_that_cannot_be_used_is_named(call, message):
    machine = machine_on(*stream(100))
    with pytest.raises(InvalidInput, match=message):
        call(machine)
