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

    Parameters
    ----------
    function : callable
        A function of a module (machine code is cached beside its file).

    Returns
    -------
    callable
        Of the same signature, compiled at its first call for each combination of types.
    """
    compiled: Any = numba.njit(cache=True, error_model="numpy", fastmath=False)(function)
    return cast(Callable[P, R], compiled)
