"""Choosing the best of many in one pass: a value and its place packed into one integer.

The keys order like the values they are made of, to eleven bits (of 32) or 40 (of 64), and equal
ones by their place, the first first. An integer maximum vectorises and does not depend on the
order in which it is taken; a search for the place of the maximum does not vectorise. All functions
take numbers of one type, float32 or float64, and keep to it: numba itself would widen them.
"""

# ruff: noqa: ARG001  (numba types the arguments by position; the functions need only their number)
from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir  # type: ignore[import-untyped]  # ships no type information
from numba import types
from numba.extending import intrinsic

PLACE_BITS = 12
PLACES = 1 << PLACE_BITS  # a key tells so many places apart


def _integer(x: Any) -> Any:
    """Return numba's integer of the width of a float, or the type itself."""
    return {types.float32: types.int32, types.float64: types.int64}.get(x, x)


def _bits(builder: Any, x: Any) -> Any:
    width = 32 if x.type == ir.FloatType() else 64
    return builder.bitcast(x, ir.IntType(width))


def _with_place(builder: Any, key: Any, place: Any) -> Any:
    """Replace the low bits of a key by those of a place, so that a lower place is larger."""
    kind = key.type
    last = ir.Constant(kind, PLACES - 1)
    number = place if kind.width == place.type.width else builder.trunc(place, kind)
    high = builder.and_(key, ir.Constant(kind, -PLACES))
    return builder.or_(high, builder.sub(last, number))


def _rising(_typing: Any, x: Any, place: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        bits = _bits(builder, arguments[0])
        width = bits.type.width
        sign = builder.ashr(bits, ir.Constant(bits.type, width - 1))
        magnitude = ir.Constant(bits.type, (1 << (width - 1)) - 1)
        key = builder.xor(bits, builder.and_(sign, magnitude))
        return _with_place(builder, key, arguments[1])

    return _integer(x)(x, types.int64), generate


def _gaining(_typing: Any, violation: Any, curvature: Any, place: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        rise, bend = _bits(builder, arguments[0]), _bits(builder, arguments[1])
        half = builder.ashr(bend, ir.Constant(bend.type, 1))
        return _with_place(builder, builder.sub(rise, half), arguments[2])

    return _integer(violation)(violation, violation, types.int64), generate


def _violation(_typing: Any, top: Any, slack: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        difference = builder.fsub(*arguments)
        zero = ir.Constant(difference.type, 0.0)
        return builder.select(builder.fcmp_ordered(">", difference, zero), difference, zero)

    return top(top, top), generate


def _curvature(_typing: Any, value: Any, own: Any, other: Any, least: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        value, own, other, least = arguments
        twice = builder.fadd(value, value)
        curvature = builder.fsub(builder.fadd(own, other), twice)
        return builder.select(builder.fcmp_ordered(">", curvature, least), curvature, least)

    return value(value, value, value, value), generate


def _moved(_typing: Any, step: Any, row_i: Any, row_j: Any, slack: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        step, row_i, row_j, slack = arguments
        return builder.fma(step, builder.fsub(row_j, row_i), slack)

    return slack(slack, slack, slack, slack), generate


def _larger(_typing: Any, a: Any, b: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.select(builder.icmp_signed(">", *arguments), *arguments)

    return a(a, a), generate


def _lowest(_typing: Any, x: Any) -> Any:
    def generate(_context: Any, _builder: Any, _signature: Any, arguments: Any) -> Any:
        width = 32 if arguments[0].type == ir.FloatType() else 64
        return ir.Constant(ir.IntType(width), -(1 << (width - 1)))

    return _integer(x)(x), generate


def _pattern(_typing: Any, x: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return _bits(builder, arguments[0])

    return _integer(x)(x), generate


def _place(_typing: Any, key: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        last = ir.Constant(arguments[0].type, PLACES - 1)
        place = builder.sub(last, builder.and_(arguments[0], last))
        return place if place.type.width == 64 else builder.zext(place, ir.IntType(64))

    return types.int64(key), generate


rising = cast(Callable[[float, int], int], intrinsic(_rising))
"""rising(x, place): a key that grows with x."""

gaining = cast(Callable[[float, float, int], int], intrinsic(_gaining))
"""gaining(v, c, place): a key that grows with v^2 / c, where v >= 0 and c > 0.

The bits of a positive float are, but for a constant factor and term, its logarithm to a tenth; so
the key is that of log v - 1/2 log c."""

violation_of = cast(Callable[[float, float], float], intrinsic(_violation))
"""violation_of(top, slack) = max(top - slack, 0)."""

curvature_of = cast(Callable[[float, float, float, float], float], intrinsic(_curvature))
"""curvature_of(k_ij, k_ii, k_jj, least) = max(k_ii + k_jj - 2 k_ij, least)."""

moved = cast(Callable[[float, float, float, float], float], intrinsic(_moved))
"""moved(step, k_ik, k_jk, slack): the slack of k after a step along (i, j)."""

lowest_key = cast(Callable[[float], int], intrinsic(_lowest))
"""lowest_key(x): the least integer of the width of x."""

larger = cast(Callable[[int, int], int], intrinsic(_larger))
"""The larger of two integers of the same type."""

pattern = cast(Callable[[float], int], intrinsic(_pattern))
"""The bits of a float: of those that are not negative they are ordered as they are."""

place_of = cast(Callable[[int], int], intrinsic(_place))
"""The place in a key."""
