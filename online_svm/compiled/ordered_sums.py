"""Sum in a fixed order that still allows vector instructions.

Term j is added to lane j mod `LANES`; the lanes are then added pairwise. `sum_rows` and `in_turn`
add one after the other.
"""

from collections.abc import Iterable
from functools import reduce
from operator import add

import numpy as np

from online_svm.compiled.kernel import kernel
from online_svm.types import Floats, Values

LANES = 64


@kernel
def dot(values: Values, weights: Floats) -> float:
    """Return the sum of weights_j values_j."""


@kernel
def total(values: Floats) -> float:
    """Return the sum of the values, shape (n,)."""


def variance(values: Floats) -> float:
    """Return the mean squared deviation of the values, of any shape, from their mean."""
    flat = np.array(values, dtype=np.float64, order="C").reshape(-1)
    flat -= total(flat) / len(flat)
    return total(flat * flat) / len(flat)


def in_turn(values: Iterable[float]) -> float:
    """Return the sum of a few numbers; from Python 3.12 on the built-in `sum` of floats differs."""
    return reduce(add, values, 0)


def sum_rows(values: Floats) -> Floats:
    """Return the sum of the rows of an array of shape (n, d), n >= 1."""
    found: Floats = values[0].copy()
    _add_rows(np.ascontiguousarray(values[1:]), found)
    return found


@kernel
def _add_rows(values: Floats, found: Floats) -> None:
    """Add the rows of `values`, shape (n, d), to `found`, shape (d,)."""
