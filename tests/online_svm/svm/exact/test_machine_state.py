"""The kernels of a bank: what they write follows from coefficients and points alone."""

import numpy as np
import pytest

from online_svm.compiled.kernels import Kernel
from online_svm.svm.exact.machine_state import (
    arrive,
    clip,
    count_training,
    empty_bank,
    solve,
    sum_afresh,
)
from online_svm.svm.exact.rolling_machine import RollingMachine

KERNELS = [Kernel("rbf", 0.3), Kernel("poly", 0.2, 2, 1.0)]


def solved(kernel, n_classes=3, n=90, observers=20):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n + observers, 3))
    codes = rng.integers(0, n_classes, n + observers)
    machine = RollingMachine(kernel, np.ones(n_classes))
    machine.extend(X, codes, training=np.arange(n + observers) < n)
    machine.solve()
    return machine


def slots_in_use(machine):
    held = machine._held
    return held.training_slots(), held.observer_slots()


def sums_by_matrix(machine):
    """Weights times the kernel matrix, for training points and observers, shape (2S, n)."""
    bank, (training, observers) = machine._held.bank, slots_in_use(machine)
    points = bank.rows.points
    K = machine.kernel(points[training], points[np.concatenate([training, observers])])
    return bank.weights[:, training] @ K


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n", [30, 300], ids=["from the rows of the support", "of the points"])
def test_recomputed_sums_are_weights_times_the_kernel_matrix(kernel, n):
    machine = solved(kernel, n=n)
    bank, slots = machine._held.bank, np.concatenate(slots_in_use(machine))
    bank.members[:, :7] = 1.0
    bank.sums[:] = np.nan
    sum_afresh(bank)
    np.testing.assert_allclose(bank.sums[:, slots], sums_by_matrix(machine), atol=1e-10)


@pytest.mark.parametrize("kernel", KERNELS)
def test_clipped_coefficients_are_in_bounds_and_others_take_over_the_excess(kernel):
    machine = solved(kernel)
    bank, (training, observers) = machine._held.bank, slots_in_use(machine)
    bank.lower[:, training[:9]] = bank.upper[:, training[:9]] = 0.0
    clip(bank, training[:9])
    assert not bank.beta[:, training[:9]].any()
    assert (bank.beta >= bank.lower).all()
    assert (bank.beta <= bank.upper).all()
    np.testing.assert_allclose(bank.beta.sum(axis=1), 0.0, atol=1e-12)
    slots = np.concatenate([training, observers])
    np.testing.assert_allclose(bank.F[:, slots], sums_by_matrix(machine)[:3], atol=1e-10)


def test_training_points_are_counted_unless_a_code_is_no_class():
    codes, training = np.array([0, 2, 1, 2]), np.array([True, False, True, True])
    assert count_training(codes, training, 3) == 3
    assert count_training(codes, training, 2) == -1
    assert count_training(codes - 1, training, 3) == -1


def test_a_bank_whose_arrays_do_not_agree_is_refused():
    bank = empty_bank(KERNELS[0], 3, machines=2, train=128, seen=64, cache_bytes=1 << 20)
    nobody, X = np.zeros(0, dtype=bool), np.zeros((0, 3))
    none = np.zeros(0, dtype=np.int64)
    for wrong in (
        bank._replace(b=np.zeros(3)),
        bank._replace(z=np.zeros((2, 127))),
        bank._replace(rows=bank.rows._replace(owner=bank.rows.owner[:-1])),
        bank._replace(active=bank.active._replace(margin=np.zeros((1, 1)))),
    ):
        with pytest.raises(ValueError, match="elements, where"):
            solve(wrong, 1e-3, 10)
        with pytest.raises(ValueError, match="elements, where"):
            arrive(wrong, X, none, nobody, 0, np.ones(2))
    assert solve(bank, 1e-3, 10) == 0
