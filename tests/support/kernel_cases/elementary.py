"""Inputs of `online_svm.compiled`: numbers of every size, special ones among them."""

from collections.abc import Callable
from typing import Any

import numpy as np

from kernel_cases._inputs import powers_of_ten
from online_svm.compiled import elementary

FAR = (5e-324, -5e-324, 1e308, -1e308, 2.0**-1022)
SPECIAL = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, *FAR)


def numbers(rng: np.random.Generator) -> list[float]:
    """Return numbers of every exponent, numbers near zero and one, and special ones."""
    bits = rng.integers(-(2**63), 2**63 - 1, 40, dtype=np.int64)
    near = rng.normal(size=40) * powers_of_ten(rng.integers(-8, 4, 40))
    return [*bits.view(np.float64).tolist(), *near.tolist(), *(1.0 + near).tolist(), *SPECIAL]


def _each(function: Callable[[float], float]) -> Callable[[np.random.Generator], Any]:
    return lambda rng: [function(x) for x in numbers(rng)]


CASES = {
    "exp": _each(elementary.exp),
    "exp_nonpositive": lambda rng: [elementary.exp_nonpositive(-abs(x)) for x in numbers(rng)],
    "expm1": _each(elementary.expm1),
    "exps": lambda rng: elementary.exps(np.array(numbers(rng))),
    "expm1s": lambda rng: elementary.expm1s(np.array(numbers(rng))),
    "log": _each(elementary.log),
    "log1p": _each(elementary.log1p),
    "logs": lambda rng: elementary.logs(np.array(numbers(rng))),
}
