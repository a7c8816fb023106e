"""Random inputs of the same bits on every machine: no logarithm, no power, no exponential."""

from typing import Any

import numpy as np

from online_svm.types import Floats, Ints

_LOWEST_POWER = -20
_POWERS_OF_TEN = np.array([float(f"1e{k}") for k in range(_LOWEST_POWER, 21)])


def bell(rng: np.random.Generator, *shape: int) -> Floats:
    """Return numbers about 0 with a variance of 4/3, by sums of four uniform ones.

    `Generator.normal` takes the logarithm of the C library.
    """
    a, b, c, d = rng.random((4, *shape))
    total: Floats = (a + b) + (c + d)
    return 2.0 * total - 4.0


def powers_of_ten(exponents: Ints) -> Floats:
    """Return 10 to these powers, from -20 to 20, each rounded once."""
    found: Floats = _POWERS_OF_TEN[exponents - _LOWEST_POWER]
    return found


def positive(rng: np.random.Generator, n: int) -> Floats:
    """Return numbers of every magnitude from a thousandth to eight thousand."""
    return np.ldexp(1.0 + rng.random(n), rng.integers(-10, 13, n))


def whole(rng: np.random.Generator, *bounds: int) -> int:
    return int(rng.integers(*bounds))


def flag(rng: np.random.Generator, *bounds: int) -> bool:
    return bool(rng.integers(*bounds))


def pick(rng: np.random.Generator, values: Any) -> Any:
    """Return one of the values, as Python has it."""
    return rng.choice(values).item()
