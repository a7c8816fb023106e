"""The one place that configures numba, so that every kernel is compiled alike."""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import numba

P = ParamSpec("P")
R = TypeVar("R")


def jit(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function with numba, strictly by IEEE rules, and cache the machine code.

    Fast-math stays off: it lets the compiler reassociate sums, and the bytes of an answer would
    then depend on the block a row happens to share. Division follows numpy (no exception).

    Examples
    --------
    >>> @jit
    ... def double(x):
    ...     return 2.0 * x
    >>> double(1.5)
    3.0
    """
    compiled: Any = numba.njit(cache=True, error_model="numpy", fastmath=False)(function)
    return cast(Callable[P, R], compiled)
