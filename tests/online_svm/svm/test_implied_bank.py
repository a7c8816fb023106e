"""Machines of a bank start near their optimum, and a packed bank decides as they do."""

import numpy as np
import pytest

from online_svm.compiled.kernels import Kernel
from online_svm.svm.exact.batch_solver import fixed_rows
from online_svm.svm.implied_bank import BankPlan, ImpliedBank, PackedBank, _start
from online_svm.svm.kernel_model import KernelModel
from online_svm.types import Floats


def bounds_of(rng: np.random.Generator, n: int) -> Floats:
    width = rng.uniform(0.5, 1.0, n)
    return np.stack(
        [np.where(np.arange(n) % 2, 0.0, -width), np.where(np.arange(n) % 2, width, 0.0)]
    )


@pytest.mark.parametrize("seed", range(20))
def test_a_start_lies_within_its_bounds_and_sums_to_zero(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 40))
    last_bounds, bounds = bounds_of(rng, n), bounds_of(rng, n)
    before, last = (low + rng.random(n) * (high - low) for low, high in (last_bounds, last_bounds))
    beta = np.empty(n)
    _start(before, last, last_bounds, bounds, beta)
    assert ((bounds[0] <= beta) & (beta <= bounds[1])).all()
    assert beta.sum() == pytest.approx(0.0, abs=1e-12)


def test_a_start_goes_on_along_the_line_and_stays_at_bounds() -> None:
    last_bounds = np.array([[0.0, 0.0, -1.0, -1.0], [1.0, 1.0, 0.0, 0.0]])
    before = np.array([0.3, 1.0, -0.4, -0.9])
    last = np.array([0.4, 1.0, -0.4, -1.0])
    bounds = np.array([[0.0, 0.0, -1.2, -1.2], [1.2, 1.2, 0.0, 0.0]])
    beta = np.empty(4)
    _start(before, last, last_bounds, bounds, beta)
    # The line gives .5 and -.4 for the free ones, 1.2 and -1.2 at the bounds: .1 too much.
    assert beta == pytest.approx([0.4, 1.2, -0.4, -1.2])


KERNELS = [Kernel("rbf", 0.3), Kernel("linear"), Kernel("poly", 0.2, 2, 1.0), Kernel("rbf", 9.0)]


def both(kernel: Kernel, C: float = 0.7, m: int = 21) -> tuple[ImpliedBank, PackedBank, Floats]:
    rng = np.random.default_rng(4)
    codes = rng.random(300) < 0.3
    X = rng.normal(size=(300, 5)) + 0.7 * codes[:, None]
    rows = fixed_rows(kernel, X, cache_mb=10.0)
    bank = ImpliedBank.fit(kernel, rows, codes, np.full(300, C), BankPlan(m))
    return bank, bank.packed(), rng.normal(size=(203, 5))


@pytest.mark.parametrize("kernel", KERNELS, ids=["rbf", "linear", "poly", "narrow"])
def test_decisions_are_those_of_the_bank_also_from_its_arrays(kernel: Kernel) -> None:
    bank, packed, X = both(kernel)
    expected = bank.model.scores(X)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(packed.decisions(X), expected, rtol=0, atol=1e-11 * scale)
    np.testing.assert_array_equal(packed.sides(X), np.sign(expected))
    arrays = packed.state()
    for values in arrays.values():
        values.flags.writeable = False
    copy = PackedBank.from_state(arrays, packed.kernel)
    np.testing.assert_array_equal(copy.decisions(X), packed.decisions(X))


def test_most_coefficients_are_not_kept_one_by_one() -> None:
    bank, packed, _ = both(KERNELS[0])
    kept = len(packed.packing.moves) + len(packed.packing.free)
    assert kept < np.count_nonzero(bank.model.coef) / 2


def test_coefficients_off_every_bound_are_kept_one_by_one() -> None:
    bank, _, X = both(KERNELS[0])
    nowhere = np.full(21, 99.0)
    packed = PackedBank.pack(bank.model, nowhere, -nowhere)
    assert len(packed.packing.moves) == 0
    np.testing.assert_array_equal(packed.sides(X), np.sign(bank.model.scores(X)))


def test_a_bank_without_vectors_decides_by_its_constants() -> None:
    constants = np.array([-1.0, 1.0])
    model = KernelModel.build(KERNELS[0], np.empty((0, 5)), np.empty((2, 0)), constants)
    packed = PackedBank.pack(model, np.ones(2), -np.ones(2))
    np.testing.assert_array_equal(packed.decisions(np.zeros((3, 5))), np.tile(constants, (3, 1)))
