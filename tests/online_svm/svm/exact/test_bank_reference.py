"""Compiled code is given a bank by one reference to it."""

import gc
import weakref

import numpy as np
import pytest

from online_svm.compiled.jit import jit
from online_svm.compiled.kernels import Kernel
from online_svm.svm.exact.bank_reference import bank_of, reference_to
from online_svm.svm.exact.machine_state import empty_bank


@jit
def write(reference, value):
    """Write to an array of the bank itself and of each of its two parts; return the kernel."""
    bank = bank_of(reference)
    bank.F[1, 3] = value
    bank.rows.X[2, 5] = value
    bank.active.K[1, 4, 6] = value
    return bank.rows.shape


@pytest.fixture(params=[Kernel("rbf", gamma=0.5), Kernel("poly", 2.0, 3, 1.0)])
def bank(request):
    return empty_bank(request.param, 3, machines=2, train=128, seen=64, cache_bytes=1 << 20)


def test_compiled_code_writes_to_the_arrays_of_the_bank(bank):
    assert write(reference_to(bank), 7.0) == bank.rows.shape
    for array, place in [(bank.F, (1, 3)), (bank.rows.X, (2, 5)), (bank.active.K, (1, 4, 6))]:
        assert array[place] == 7.0
        assert np.count_nonzero(array) == 1
    assert bank.sums[1, 3] == 7.0  # F is a view of it


def test_a_reference_keeps_the_arrays_alive_and_lets_go_of_them_with_itself(bank):
    array = np.full((2, 128 + 64), 5.0)
    watched = weakref.ref(array)
    reference = reference_to(bank._replace(F=array, b=np.zeros(2)))
    del array
    gc.collect()
    for _ in range(3):
        assert write(reference, 7.0) == bank.rows.shape
    assert watched() is not None
    assert watched()[1, 3] == 7.0
    del reference
    gc.collect()
    assert watched() is None
