"""Exponentials, logarithms and logistic functions with the same bits on every processor.

The exp and log of a C library depend on the processor, those of two C libraries differ, and numpy's
depend on its vector width. These functions use only IEEE additions, multiplications, divisions and
fused multiply-adds, in a fixed order. On a processor without fused multiply-add the C library
computes it, with the same rounding but more slowly. There are no loops and no tables, so compilers
can vectorise.

Each result is within one unit in the last place (`tests/online_svm/compiled/test_elementary.py`).
"""

from collections.abc import Callable

import numpy as np

from online_svm.compiled.kernel import kernel
from online_svm.types import Floats


@kernel
def exp_nonpositive(x: float) -> float:
    """Return exp(x) for x <= 0 without a branch; 0 below -708.

    exp(x) = 2^n exp(r) with |r| <= ln(2)/2 (Cody and Waite). The Taylor polynomial of degree 13
    approximates exp(r) with an error below 5e-18.
    """


@kernel
def exp(x: float) -> float:
    """Return exp(x)."""


@kernel
def expm1(x: float) -> float:
    """Return exp(x) - 1, without cancellation near 0."""


@kernel
def log(x: float) -> float:
    """Return the natural logarithm of x; NaN for a negative x, and minus infinity for 0."""


@kernel
def log1p(x: float) -> float:
    """Return log(1 + x), without cancellation near 0."""


def each_of(replace: Callable[[Floats], None], values: Floats) -> Floats:
    """Return a copy of the values, in the same shape, to which `replace` was applied in place."""
    found = np.array(values, dtype=np.float64, order="C")
    replace(found.reshape(-1))
    return found


def logs(values: Floats) -> Floats:
    """Return the natural logarithm of each value, in an array of the same shape."""
    return each_of(_log_each, values)


def exps(values: Floats) -> Floats:
    """Return the exponential of each value, in an array of the same shape."""
    return each_of(_exp_each, values)


def expm1s(values: Floats) -> Floats:
    """Return exp(value) - 1 of each value, in an array of the same shape."""
    return each_of(_expm1_each, values)


@kernel
def _expm1_each(values: Floats) -> None:
    """Replace each value, shape (n,), by exp(value) - 1."""


@kernel
def _log_each(values: Floats) -> None:
    """Replace each value, shape (n,), by its logarithm."""


@kernel
def _exp_each(values: Floats) -> None:
    """Replace each value, shape (n,), by its exponential."""


@kernel
def logistic(value: float) -> float:
    """Return 1 / (1 + exp(-value)), without overflow."""


@kernel
def logit(p: float) -> float:
    """Return log(p / (1 - p)): infinite at 0 and 1."""


def logistics(values: Floats) -> Floats:
    """Return the logistic function of each value, in an array of the same shape."""
    return each_of(_logistic_each, values)


def logits(values: Floats) -> Floats:
    """Return the logit of each value, in an array of the same shape."""
    return each_of(_logit_each, values)


@kernel
def _logistic_each(values: Floats) -> None:
    """Replace each value, shape (n,), by its logistic function."""


@kernel
def _logit_each(values: Floats) -> None:
    """Replace each value, shape (n,), by its logit."""
