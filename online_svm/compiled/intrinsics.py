"""Three machine instructions that numba does not name, usable inside a compiled function.

Each is one IEEE operation (or none: a cast), so its bits are the same in the vector body of a
loop, in its tail, and on a processor without the instruction.
"""

# ruff: noqa: ARG001  (numba types the arguments by position; the functions need only their number)
from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir  # type: ignore[import-untyped]  # ships no type information
from numba import types
from numba.extending import intrinsic


def _fma(_typing: Any, a: Any, b: Any, c: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return types.float64(types.float64, types.float64, types.float64), generate


def _bits_of(_typing: Any, x: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), generate


def _float_of(_typing: Any, bits: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate


fma = cast(Callable[[float, float, float], float], intrinsic(_fma))
"""fma(a, b, c) = a b + c rounded once, whether or not the compiler would have fused it."""

bits_of = cast(Callable[[float], int], intrinsic(_bits_of))
"""The 64 bits of a float64 as an int64."""

float_of = cast(Callable[[int], float], intrinsic(_float_of))
"""The float64 that has the 64 bits of an int64."""
