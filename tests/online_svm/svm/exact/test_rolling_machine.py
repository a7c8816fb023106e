import copy
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.svm import SVC

from online_svm.compiled.kernels import Kernel
from online_svm.errors import InvalidInput
from online_svm.svm.exact.held_points import GRANULE
from online_svm.svm.exact.rolling_machine import RollingMachine

KERNEL = Kernel("rbf", gamma=0.3)


def stream(n, n_classes=2, seed=0, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    edges = np.linspace(-1, 1, n_classes + 1)[1:-1]
    return X, np.searchsorted(edges, X[:, 0] + 0.5 * rng.normal(size=n))


def all_training(X):
    return np.ones(len(X), dtype=bool)


def machine_on(X, codes, n_classes=2, **settings):
    machine = RollingMachine(KERNEL, np.ones(n_classes), **settings)
    machine.extend(X, codes, training=all_training(X))
    machine.solve()
    return machine


def assert_same_state(a, b):
    first, second = a.state(), b.state()
    assert first.header | {"cache_mb": 0} == second.header | {"cache_mb": 0}
    assert first.arrays.keys() == second.arrays.keys()
    for name, values in first.arrays.items():
        np.testing.assert_array_equal(values, second.arrays[name], err_msg=name)


def assert_optimal_for(machine, X, codes, evaluated):
    """The machine is, class by class, what scikit-learn's SVC is on the same examples."""
    K, K_evaluated = KERNEL(X, X), KERNEL(evaluated, X)
    values = machine.model().scores(evaluated)
    classes = [1] if machine.n_classes == 2 else range(machine.n_classes)
    for s, c in enumerate(classes):
        svc = SVC(kernel="precomputed", tol=1e-6).fit(K, codes == c)
        alpha = svc.dual_coef_[0]
        objective = (
            np.abs(alpha).sum() - 0.5 * alpha @ K[np.ix_(svc.support_, svc.support_)] @ alpha
        )
        assert machine.dual_objective()[s] == pytest.approx(objective, rel=1e-6)
        np.testing.assert_allclose(values[:, s], svc.decision_function(K_evaluated), atol=2e-3)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_every_machine_is_the_svc_of_its_class_against_the_rest(n_classes):
    X, codes = stream(300, n_classes)
    machine = machine_on(X[:200], codes[:200], n_classes)
    assert_optimal_for(machine, X[:200], codes[:200], X[200:])


def test_the_sum_of_the_coefficients_stays_zero_through_learning_and_forgetting():
    X, codes = stream(400)
    machine = machine_on(X[:100], codes[:100])
    for i in range(100, 400, 10):
        machine.extend(X[i : i + 10], codes[i : i + 10], training=all_training(X[:10]))
        machine.forget(10)
        assert machine.coefficients().sum() == pytest.approx(0.0, abs=1e-11)
        machine.solve()
        assert machine.coefficients().sum() == pytest.approx(0.0, abs=1e-11)


def test_decision_values_of_held_points_are_those_of_the_model():
    X, codes = stream(300, 3)
    machine = machine_on(X[:100], codes[:100], 3)
    new = machine.extend(X[100:], codes[100:])
    np.testing.assert_allclose(new, machine.model().scores(X[100:]), atol=1e-12)
    machine.promote(80)
    machine.forget(40)
    machine.solve()
    scores = machine.model().scores(X[40:])
    np.testing.assert_allclose(machine.decision_values(), scores, atol=1e-12)
    np.testing.assert_array_equal(machine.observer_values(), machine.decision_values()[140:])
    np.testing.assert_array_equal(machine.training_values(), machine.decision_values()[:140])
    np.testing.assert_array_equal(machine.codes, codes[40:])
    np.testing.assert_array_equal(machine.training_points(), X[40:180])


def test_points_of_both_parts_leave_in_order_of_arrival():
    X, codes = stream(200)
    trains = np.random.default_rng(1).random(200) < 0.7
    machine = RollingMachine(KERNEL, [1.0, 1.0])
    machine.extend(X, codes, training=trains)
    machine.solve()
    machine.forget(60)
    machine.solve()
    np.testing.assert_array_equal(machine.training_mask, trains[60:])
    np.testing.assert_array_equal(machine.codes, codes[60:])
    scores = machine.model().scores(X[60:])
    np.testing.assert_allclose(machine.decision_values(), scores, atol=1e-12)
    assert_optimal_for(machine, X[60:][trains[60:]], codes[60:][trains[60:]], X)


def test_results_do_not_depend_on_how_rows_are_grouped_into_calls_of_extend():
    X, codes = stream(200, 3)
    whole, single = (machine_on(X[:100], codes[:100], 3) for _ in range(2))
    trains = np.arange(100) % 3 > 0
    values = whole.extend(X[100:], codes[100:], training=trains)
    rows = [slice(i, i + 1) for i in range(100)]
    one_by_one = [single.extend(X[100:][i], codes[100:][i], training=trains[i]) for i in rows]
    np.testing.assert_array_equal(np.concatenate(one_by_one), values)
    for machine in (whole, single):
        machine.solve()
    np.testing.assert_array_equal(whole.decision_values(), single.decision_values())


def advance(machine, X, codes, i):
    """One step of a rolling protocol with an oldest-first split."""
    machine.extend(X[i : i + 5], codes[i : i + 5])
    machine.promote(4)
    machine.forget(3)
    machine.solve()


@pytest.mark.parametrize("cache_mb", [200.0, 0.01])
def test_a_restored_machine_continues_bit_for_bit_whatever_the_cache_holds(cache_mb):
    X, codes = stream(600, 3)
    machine = machine_on(X[:200], codes[:200], 3, window=200)
    for i in range(200, 400, 5):
        advance(machine, X, codes, i)
    state = machine.state()
    header = json.loads(json.dumps(state.header))  # as a snapshot stores it
    restored = RollingMachine.from_state(state._replace(header=header | {"cache_mb": cache_mb}))
    for i in range(400, 600, 5):
        advance(machine, X, codes, i)
        advance(restored, X, codes, i)
        assert_same_state(machine, restored)


def test_a_restored_machine_has_the_kernel_it_had():
    machine = RollingMachine(Kernel("rbf", 0.3, wide=True), [1.0, 1.0])
    assert copy.deepcopy(machine).kernel == machine.kernel


def test_a_machine_restored_between_forgetting_and_solving_continues_bit_for_bit():
    X, codes = stream(200)
    machine = machine_on(X, codes)
    machine.forget(50)
    restored = copy.deepcopy(machine)
    assert machine.solve() == restored.solve()
    assert_same_state(machine, restored)


def test_growth_beyond_the_first_capacity_keeps_every_value():
    X, codes = stream(4 * GRANULE)
    machine = machine_on(X[:GRANULE], codes[:GRANULE])
    machine.extend(X[GRANULE:], codes[GRANULE:])
    values = machine.decision_values()
    machine.promote(2 * GRANULE)
    np.testing.assert_array_equal(machine.decision_values(), values)
    np.testing.assert_array_equal(machine.codes, codes)


@given(
    events=st.lists(
        st.tuples(st.sampled_from(["train", "observe", "promote", "forget"]), st.integers(1, 40)),
        min_size=1,
        max_size=15,
    ),
    seed=st.integers(0, 100),
)
@settings(max_examples=30, deadline=None, derandomize=True)
def test_any_sequence_of_events_ends_at_the_optimum_for_the_training_points_held(events, seed):
    X, codes = stream(2000, 3, seed)
    X = np.round(X, 1)  # duplicates and near-duplicates, some of opposite classes
    machine, held, next_row = RollingMachine(KERNEL, np.ones(3)), [], 0
    for event, count in events:
        if event in ("train", "observe"):
            new = slice(next_row, next_row + count)
            trains = event == "train" and machine.n_observers == 0
            machine.extend(X[new], codes[new], training=np.full(count, trains))
            held += [[row, trains] for row in range(next_row, next_row + count)]
            next_row += count
        elif event == "promote":
            count = min(count, machine.n_observers)
            for example in [example for example in held if not example[1]][:count]:
                example[1] = True
            machine.promote(count)
        else:
            count = min(count, len(held))
            machine.forget(count)
            held = held[count:]
        machine.solve()
    rows = [row for row, trains in held if trains]
    assert machine.n_training == len(rows)
    values = machine.model().scores(X[:30])
    for c in range(3):
        positive = codes[rows] == c
        if positive.all() or not positive.any():
            side = 1.0 if len(rows) and positive.all() else -1.0
            np.testing.assert_array_equal(values[:, c], side)
            np.testing.assert_array_equal(machine.decision_values()[:, c], side)
        else:
            svc = SVC(kernel="rbf", gamma=0.3, tol=1e-6).fit(X[rows], positive)
            np.testing.assert_allclose(values[:, c], svc.decision_function(X[:30]), atol=2e-3)


def test_forgetting_everything_leaves_a_machine_that_can_learn_again():
    X, codes = stream(300)
    machine = machine_on(X[:100], codes[:100])
    machine.forget(100)
    machine.solve()
    assert len(machine) == 0
    np.testing.assert_array_equal(machine.model().scores(X[:2]), -np.ones((2, 1)))
    machine.extend(X[100:], codes[100:], training=all_training(X[100:]))
    machine.solve()
    assert_optimal_for(machine, X[100:], codes[100:], X[:100])


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


def test_solving_again_changes_nothing():
    machine = machine_on(*stream(100))
    before = machine.state().arrays["weights"]
    assert machine.solve() == 0
    np.testing.assert_array_equal(machine.state().arrays["weights"], before)


def test_summing_afresh_moves_decision_values_by_rounding_only(monkeypatch):
    X, codes = stream(300)
    monkeypatch.setattr("online_svm.svm.exact.rolling_machine.REFRESH_STEPS", 100)
    machine = machine_on(X[:200], codes[:200])
    machine.extend(X[200:], codes[200:], training=all_training(X[200:]))
    values = machine.decision_values()
    machine.solve()
    assert machine.state().header["refreshed_at"] > 0
    scores = machine.model().scores(X)
    np.testing.assert_allclose(machine.decision_values(), scores, atol=1e-12)
    assert len(values) == len(scores)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.extend(np.zeros((2, 4)), np.zeros(2, dtype=int)), "^X: expected 3 features"),
        (lambda m: m.extend(np.zeros((2, 3)), np.zeros(3, dtype=int)), "^X and codes: expected"),
        (lambda m: m.extend(np.zeros((1, 3)), np.array([2])), "^codes: expected classes from 0"),
        (lambda m: m.promote(1), "^count: 1 of 0 observers"),
        (lambda m: m.forget(101), "^count: cannot forget 101 of 100"),
        (lambda m: m.set_penalties([1.0, 1.0, 1.0]), "^penalties: expected 2"),
        (lambda m: m.set_penalties([1.0, 0.0]), "^penalties: expected a positive number"),
    ],
)
def test_an_argument_that_cannot_be_used_is_named(call, message):
    machine = machine_on(*stream(100))
    with pytest.raises(InvalidInput, match=message):
        call(machine)


def test_an_observer_older_than_a_training_point_cannot_be_promoted():
    X, codes = stream(10)
    machine = RollingMachine(KERNEL, [1.0, 1.0])
    machine.extend(X, codes, training=np.arange(10) > 4)
    with pytest.raises(InvalidInput, match="a younger point already trains"):
        machine.promote(1)


def test_a_small_tolerance_is_met_in_few_steps():
    """Steps on slacks of 24 bits went round in circles where the tolerance was beyond those."""
    rng = np.random.default_rng(3)
    X, kernel = rng.normal(size=(400, 3)), Kernel("rbf", gamma=1 / 3)
    codes = (X[:, 0] + rng.normal(size=400) > 0).astype(np.int64)
    machine = RollingMachine(kernel, [1.0, 1.0], tol=1e-9, window=75)
    machine.extend(X[:50], codes[:50], training=np.ones(50, dtype=bool))
    machine.solve()
    for first in range(50, 400, 25):
        machine.forget(25 if first > 50 else 0)
        machine.extend(
            X[first : first + 25], codes[first : first + 25], training=np.ones(25, dtype=bool)
        )
        machine.solve()
        beta, held = machine.coefficients()[0], machine.training_points()
        z = np.where(machine.codes == 1, 1.0, -1.0)
        slack = z - kernel(held, held) @ beta
        can_grow = beta < np.where(z > 0, 1.0, 0.0)
        can_shrink = beta > np.where(z > 0, 0.0, -1.0)
        assert slack[can_grow].max() - slack[can_shrink].min() < 1e-9
    assert machine.steps < 20_000
