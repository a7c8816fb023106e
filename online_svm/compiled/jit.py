"""The one place that configures numba, so that every kernel is compiled alike."""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import numba

from online_svm.compiled.code_cache import keep_code

P = ParamSpec("P")
R = TypeVar("R")

# "_nrt" has to be said: a function that is first compiled for a caller would else take the
# caller's, and one that makes an array cannot be compiled without.
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "fastmath": False, "_nrt": True}
_NO_DOOR: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
# A private option: pyproject.toml admits the versions of numba that it was tried with.
_NO_COUNTS: dict[str, Any] = {"_nrt": False}


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
    compiled: Any = numba.njit(**_OPTIONS)(function)
    keep_code(compiled)
    return cast(Callable[P, R], compiled)


def making(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that only compiled functions call: `jit` without a door for Python.

    The door takes every array of every tuple apart; for a function of many that takes longer to
    compile than the function.
    """
    compiled: Any = numba.njit(**_OPTIONS, **_NO_DOOR)(function)
    keep_code(compiled)
    return cast(Callable[P, R], compiled)


def inner(function: Callable[P, R]) -> Callable[P, R]:
    """Do what `making` does for a function that neither makes nor returns an array.

    It need not count who holds its arrays. Each count locks a cache line, and each slice of an
    array or part of a tuple has its own: in a function of many they took a third of the time.
    """
    compiled: Any = numba.njit(**(_OPTIONS | _NO_DOOR | _NO_COUNTS))(function)
    keep_code(compiled)
    return cast(Callable[P, R], compiled)
