"""Compiled code finds, by a handle, the arrays of the bank it was made for."""

import numpy as np
import pytest

from online_svm.compiled.jit import jit
from online_svm.compiled.kernels import Kernel
from online_svm.svm.exact.addresses import bank_at, handle_of
from online_svm.svm.exact.machine_state import empty_bank


@jit
def number(handle):
    """Fill each array with a number of its own; a view comes after what it is a view of."""
    bank = bank_at(handle)
    bank.rows.X[:] = 1
    bank.rows.points[:] = 2
    bank.rows.diagonal[:] = 3
    bank.rows.values[:] = 4
    bank.rows.row_of[:] = 5
    bank.rows.owner[:] = 6
    bank.rows.used[:] = 7
    bank.rows.known[:] = 8
    bank.rows.rings[:] = 9
    bank.rows.sums[:] = 10
    bank.rows.row[:] = 11
    bank.codes[:] = 12
    bank.arrival[:] = 13
    bank.z[:] = 14
    bank.lower[:] = 15
    bank.upper[:] = 16
    bank.weights[:] = 17
    bank.beta[:] = 18
    bank.members[:] = 19
    bank.sums[:] = 20
    bank.F[:] = 21
    bank.R[:] = 22
    bank.b[:] = 23
    bank.before[:] = 24
    bank.work[:] = 25
    bank.active.K[:] = 26
    bank.active.slots[:] = 27
    bank.active.place[:] = 28
    bank.active.counts[:] = 29
    bank.active.margin[:] = 30
    bank.active.bounds[:] = 31
    bank.active.slacks[:] = 32
    bank.active.typed[:] = 33
    return bank.rows.shape


@jit
def lengths(handle):
    bank = bank_at(handle)
    return bank.rows.X.shape, bank.rows.values.shape, bank.active.K.shape, bank.b.shape


@pytest.fixture(params=[Kernel("rbf", gamma=0.5), Kernel("poly", 2.0, 3, 1.0)])
def bank(request):
    return empty_bank(request.param, 3, machines=2, train=128, seen=64, cache_bytes=1 << 20)


def test_each_field_is_the_array_of_its_name(bank):
    assert number(handle_of(bank)) == bank.rows.shape
    expected = {
        ("rows", "X"): 1,
        ("rows", "points"): 2,
        ("rows", "diagonal"): 3,
        ("rows", "values"): 4,
        ("rows", "row_of"): 5,
        ("rows", "owner"): 6,
        ("rows", "used"): 7,
        ("rows", "known"): 8,
        ("rows", "rings"): 9,
        ("rows", "sums"): 10,
        ("rows", "row"): 11,
        ("", "codes"): 12,
        ("", "arrival"): 13,
        ("", "z"): 14,
        ("", "lower"): 15,
        ("", "upper"): 16,
        ("", "weights"): 17,
        ("", "beta"): 18,
        ("", "members"): 19,
        ("", "sums"): 20,
        ("", "F"): 21,
        ("", "R"): 22,
        ("", "b"): 23,
        ("", "before"): 24,
        ("", "work"): 25,
        ("active", "K"): 26,
        ("active", "slots"): 27,
        ("active", "place"): 28,
        ("active", "counts"): 29,
        ("active", "margin"): 30,
        ("active", "bounds"): 31,
        ("active", "slacks"): 32,
        ("active", "typed"): 33,
    }
    for (owner, name), value in expected.items():
        array = getattr(getattr(bank, owner) if owner else bank, name)
        if name not in ("weights", "sums") or owner:
            np.testing.assert_array_equal(array, value)
    # The two that others are views of.
    np.testing.assert_array_equal(bank.weights[:2], expected["", "beta"])
    np.testing.assert_array_equal(bank.sums[2:], expected["", "R"])


def test_shapes_are_those_of_the_arrays(bank):
    assert lengths(handle_of(bank)) == (
        bank.rows.X.shape, bank.rows.values.shape, bank.active.K.shape, bank.b.shape,
    )  # fmt: skip
