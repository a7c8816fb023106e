"""The exponential and the logarithm, made of IEEE operations alone: the same bits on any machine.

The C library chooses its exp and log by the processor, and another C library has others; numpy's
differ with the width of its vectors. These are additions, multiplications, divisions and fused
multiply-adds in one order. A processor without a fused multiply-add calls the C library's, which
rounds as the instruction does and is slower. None has a loop or a table, so that compilers take
several values at a time.

Each result is within one unit in the last place (`tests/online_svm/compiled/test_elementary.py`).
"""

import numpy as np

from online_svm.compiled.intrinsics import bits_of, float_of, fma
from online_svm.compiled.jit import jit
from online_svm.types import Floats

LOG2_E = 1.4426950408889634
LN2_HIGH = float.fromhex("0x1.62e42fee00000p-1")  # 32 bits: exact when multiplied by an exponent
LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
ROUNDER = 6755399441055744.0  # 1.5 * 2^52: adding it rounds to an integer, kept in the low bits
LAST = 1.0 / 6227020800.0  # 1 / 13!, of the last term of exp's Taylor polynomial
UNDERFLOW = -708.0  # below it exp is under 3.4e-308, next to the subnormal numbers

LEAST, LARGEST = -746.0, 710.0  # exp is 0 below and infinite above
LEAST_NORMAL = 2.0**-1022
SQRT_HALF = 0x3FE6A09E667F3BCD  # the bits of sqrt(1/2)
NEAR = 0.29  # 1 + x lies between sqrt(1/2) and sqrt(2): log1p takes x as it is


@jit
def exp_nonpositive(x: float) -> float:
    """Return exp(x) for x <= 0 without a branch; 0 below `UNDERFLOW`.

    exp(x) = 2^n exp(r) with |r| <= ln(2)/2 (Cody and Waite); exp(r) is its Taylor polynomial of
    degree 13, whose remainder there is below 5e-18.

    Examples
    --------
    >>> exp_nonpositive(0.0), exp_nonpositive(-1e4)
    (1.0, 0.0)
    """
    # 1. Reduce: x = n ln 2 + r.
    shifted = fma(x, LOG2_E, ROUNDER)
    n = shifted - ROUNDER
    r = fma(-n, LN2_LOW, fma(-n, LN2_HIGH, x))
    # 2. exp(r), and 2^n by its bits.
    p = fma(r, fma(r, fma(r, _exp_tail(r, LAST), 0.5), 1.0), 1.0)
    return p * _power_of_two(bits_of(shifted)) if x >= UNDERFLOW else 0.0


@jit
def exp(x: float) -> float:
    """Return exp(x).

    Examples
    --------
    >>> exp(0.0), exp(1.0), exp(710.0), exp(-746.0)
    (1.0, 2.718281828459045, inf, 0.0)
    """
    bounded = min(max(x, LEAST), LARGEST)
    shifted = fma(bounded, LOG2_E, ROUNDER)
    n = shifted - ROUNDER
    r = fma(-n, LN2_LOW, fma(-n, LN2_HIGH, bounded))
    p = fma(r, fma(r, fma(r, _exp_tail(r, LAST), 0.5), 1.0), 1.0)
    # In two steps: 2^n may be no float where exp(x) is one. The last alone rounds.
    half = (bits_of(shifted) << 32 >> 32) >> 1
    value = p * _power_of_two(half) * _power_of_two(bits_of(shifted) - half)
    return value if x == x else x  # NaN


@jit
def expm1(x: float) -> float:
    """Return exp(x) - 1, exact to the last place next to 0 too.

    Examples
    --------
    >>> expm1(1e-20), expm1(1.0), expm1(-50.0)
    (1e-20, 1.7182818284590453, -1.0)
    """
    bounded = min(max(x, -40.0), LARGEST)
    shifted = fma(bounded, LOG2_E, ROUNDER)
    n = shifted - ROUNDER
    # 1. r, and what it lost by rounding.
    whole = fma(-n, LN2_HIGH, bounded)
    r = fma(-n, LN2_LOW, whole)
    lost = fma(-n, LN2_LOW, whole - r)
    # 2. (1 - 2^-n) + r exactly, as a sum of two; 2^-n is next to nothing from n = 64 on.
    power = _power_of_two(-bits_of(shifted)) if n < 64.0 else 0.0
    one = 1.0 - power
    total = one + r
    rest = ((1.0 - one) - power) + (r - (total - one)) if n != 0.0 else 0.0
    # 3. The rest of the series, and 2^n.
    half = (bits_of(shifted) << 32 >> 32) >> 1
    cubes = r * r * r * _exp_tail(r, fma(r, LAST / 14.0, LAST))
    value = total + (rest + fma(0.5 * r, r, lost + cubes))
    value = value * _power_of_two(half) * _power_of_two(bits_of(shifted) - half)
    return value if x == x and x != 0.0 else x  # NaN; and -0 is -0


@jit
def log(x: float) -> float:
    """Return the natural logarithm of x; NaN for a negative x, and minus infinity for 0.

    Examples
    --------
    >>> log(1.0), log(10.0), log(0.0), log(-1.0)
    (0.0, 2.302585092994046, -inf, nan)
    """
    is_tiny = x < LEAST_NORMAL
    bits = bits_of(x * 2.0**54 if is_tiny else x)
    k = (bits - SQRT_HALF) >> 52
    f = float_of(bits - (k << 52)) - 1.0
    value = _log_of(float(k - 54 if is_tiny else k), f, 0.0)
    return value if 0.0 < x < np.inf else _log_beyond(x)


@jit
def log1p(x: float) -> float:
    """Return log(1 + x), exact to the last place next to 0 too.

    Examples
    --------
    >>> log1p(1e-20), log1p(1.0), log1p(-1.0)
    (1e-20, 0.6931471805599453, -inf)
    """
    # 1. 1 + x, and what it lost by rounding.
    u = 1.0 + x
    part = u - 1.0
    lost = (1.0 - (u - part)) + (x - part)
    # 2. The logarithm of both.
    bits = bits_of(u)
    k = (bits - SQRT_HALF) >> 52
    is_near = abs(x) < NEAR
    f = x if is_near else float_of(bits - (k << 52)) - 1.0
    value = _log_of(float(k), f, 0.0 if is_near else lost / u)
    value = x if x == 0.0 else value  # -0 is -0
    return value if 0.0 < u < np.inf else _log_beyond(u)


def logs(values: Floats) -> Floats:
    """Return the natural logarithm of each value, in an array of the same shape.

    Examples
    --------
    >>> logs(np.array([1.0, 0.0]))
    array([  0., -inf])
    """
    found = np.array(values, dtype=np.float64, order="C")
    _log_each(found.reshape(-1))
    return found


def exps(values: Floats) -> Floats:
    """Return the exponential of each value, in an array of the same shape.

    Examples
    --------
    >>> exps(np.array([0.0, -np.inf]))
    array([1., 0.])
    """
    found = np.array(values, dtype=np.float64, order="C")
    _exp_each(found.reshape(-1))
    return found


def expm1s(values: Floats) -> Floats:
    """Return exp(value) - 1 of each value, in an array of the same shape.

    Examples
    --------
    >>> expm1s(np.array([0.0, -np.inf]))
    array([ 0., -1.])
    """
    found = np.array(values, dtype=np.float64, order="C")
    _expm1_each(found.reshape(-1))
    return found


@jit
def _expm1_each(values: Floats) -> None:
    for i in range(len(values)):
        values[i] = expm1(values[i])


@jit
def _log_each(values: Floats) -> None:
    for i in range(len(values)):
        values[i] = log(values[i])


@jit
def _exp_each(values: Floats) -> None:
    for i in range(len(values)):
        values[i] = exp(values[i])


@jit
def _exp_tail(r: float, last: float) -> float:
    """Return (exp(r) - 1 - r - r^2/2) / r^3: the Taylor polynomial, by Horner's rule."""
    p = fma(r, last, 1.0 / 479001600.0)
    p = fma(r, p, 1.0 / 39916800.0)
    p = fma(r, p, 1.0 / 3628800.0)
    p = fma(r, p, 1.0 / 362880.0)
    p = fma(r, p, 1.0 / 40320.0)
    p = fma(r, p, 1.0 / 5040.0)
    p = fma(r, p, 1.0 / 720.0)
    p = fma(r, p, 1.0 / 120.0)
    p = fma(r, p, 1.0 / 24.0)
    return fma(r, p, 1.0 / 6.0)


@jit
def _power_of_two(n: int) -> float:
    """Return 2^n, of which only the low bits are read: those of a shifted number do as well."""
    return float_of((n << 52) + (1023 << 52))


@jit
def _log_of(k: float, f: float, rest: float) -> float:
    """Return k ln 2 + log(1 + f) + rest, where sqrt(1/2) <= 1 + f < sqrt(2) and rest is tiny.

    With s = f / (2 + f), log(1 + f) = 2 artanh(s) = f - (f^2/2 - s (f^2/2 + R)), and R is
    2 s^2/3 + 2 s^4/5 + ... : f is exact, and what is rounded is small beside it.
    """
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    # Even and odd terms side by side: the next power of z would be below 7e-19 of f.
    even = fma(w, fma(w, fma(w, fma(w, 2.0 / 19.0, 2.0 / 15.0), 2.0 / 11.0), 2.0 / 7.0), 2.0 / 3.0)
    odd = fma(w, fma(w, fma(w, fma(w, 2.0 / 21.0, 2.0 / 17.0), 2.0 / 13.0), 2.0 / 9.0), 2.0 / 5.0)
    series = z * fma(z, odd, even)
    square = 0.5 * f * f
    # k ln 2 + f exactly, as a sum of two: its first term is 0, or the larger one.
    high = k * LN2_HIGH
    total = high + f
    lost = f - (total - high)
    return total + (lost + (fma(k, LN2_LOW, rest) - (square - s * (square + series))))


@jit
def _log_beyond(x: float) -> float:
    """Return log(x) of what is not a positive number."""
    if x == 0.0:
        return -np.inf
    return x if x > 0.0 else np.nan
