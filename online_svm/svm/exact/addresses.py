"""Handle: a bank by the addresses of its arrays, so that a call from Python takes a moment.

Numba takes every array of every tuple apart when compiled code is entered. For a bank, which has
thirty-three, that takes as long as a step of the solver. A handle is made once for a bank, and
compiled code puts the bank together from it without asking Python.

A handle does not keep the arrays alive: `HeldPoints` holds both, and replaces both at once.
"""

# ruff: noqa: ARG001  (numba types the arguments by position; the functions need only their number)
from collections.abc import Callable, Iterator
from typing import Any, cast

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]  # ships no type information
from numba import carray, types  # type: ignore[attr-defined]  # its hints leave `carray` out
from numba.extending import intrinsic
from numpy.typing import NDArray

from online_svm.compiled.jit import making
from online_svm.compiled.kernels import Shape
from online_svm.svm.exact.active_set import ActiveSet
from online_svm.svm.exact.kernel_rows import Rows
from online_svm.svm.exact.machine_state import Bank
from online_svm.types import Floats, Ints, Values

Handle = tuple[Ints, Values, Shape]
"""Where the arrays of a bank are, an array of the type of its kernel values, and the kernel."""


def handle_of(bank: Bank) -> Handle:
    """Return the handle of a bank, whose arrays must live as long and are never replaced.

    Examples
    --------
    >>> from online_svm.compiled.kernels import Kernel
    >>> from online_svm.svm.exact.machine_state import empty_bank
    >>> bank = empty_bank(Kernel("rbf"), 2, machines=1, train=64, seen=64, cache_bytes=1 << 20)
    >>> table, typed, shape = handle_of(bank)
    >>> table.shape, typed.dtype, shape == bank.rows.shape
    ((33, 4), dtype('float32'), True)
    """
    arrays = list(_arrays(bank))
    table = np.zeros((len(arrays), 4), dtype=np.int64)
    for entry, array in zip(table, arrays, strict=True):
        assert array.flags.c_contiguous
        entry[0] = array.ctypes.data
        entry[1 : 1 + array.ndim] = array.shape
    return table, bank.active.typed, bank.rows.shape


def _arrays(part: Any) -> Iterator[NDArray[Any]]:
    """Yield the arrays of a bank in the order of its fields."""
    for field in part:
        if isinstance(field, np.ndarray):
            yield field
        elif isinstance(field, Rows | ActiveSet):
            yield from _arrays(field)


def _pointer_at(_typing: Any, address: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())

    return types.voidptr(types.int64), generate


pointer_at = cast(Callable[[int], Any], intrinsic(_pointer_at))
"""The address as a pointer."""


@making
def _ints1(table: Ints, k: int) -> Ints:
    return carray(pointer_at(table[k, 0]), (table[k, 1],), np.int64)


@making
def _ints2(table: Ints, k: int) -> Ints:
    return carray(pointer_at(table[k, 0]), (table[k, 1], table[k, 2]), np.int64)


@making
def _floats1(table: Ints, k: int) -> Floats:
    return carray(pointer_at(table[k, 0]), (table[k, 1],), np.float64)


@making
def _floats2(table: Ints, k: int) -> Floats:
    return carray(pointer_at(table[k, 0]), (table[k, 1], table[k, 2]), np.float64)


@making
def _values1(table: Ints, k: int, typed: Values) -> Values:
    return carray(pointer_at(table[k, 0]), (table[k, 1],), typed.dtype)


@making
def _values2(table: Ints, k: int, typed: Values) -> Values:
    return carray(pointer_at(table[k, 0]), (table[k, 1], table[k, 2]), typed.dtype)


@making
def _values3(table: Ints, k: int, typed: Values) -> Values:
    return carray(pointer_at(table[k, 0]), (table[k, 1], table[k, 2], table[k, 3]), typed.dtype)


@making
def bank_at(handle: Handle) -> Bank:
    """Return the bank of a handle, within compiled code."""
    t, typed, shape = handle
    rows = Rows(
        shape, _floats2(t, 0), _floats2(t, 1), _floats1(t, 2), _values2(t, 3, typed), _ints1(t, 4),
        _ints1(t, 5), _ints1(t, 6), _ints2(t, 7), _ints1(t, 8), _floats1(t, 9),
        _values1(t, 10, typed),
    )  # fmt: skip
    active = ActiveSet(
        _values3(t, 25, typed), _ints2(t, 26), _ints2(t, 27), _ints2(t, 28), _floats2(t, 29),
        _floats2(t, 30), _values2(t, 31, typed), _values1(t, 32, typed),
    )  # fmt: skip
    return Bank(
        rows, _ints1(t, 11), _ints1(t, 12), _floats2(t, 13), _floats2(t, 14), _floats2(t, 15),
        _floats2(t, 16), _floats2(t, 17), _floats2(t, 18), _floats2(t, 19), _floats2(t, 20),
        _floats2(t, 21), _floats1(t, 22), _floats2(t, 23), _floats2(t, 24), active,
    )  # fmt: skip
