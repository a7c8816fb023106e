"""Bind Python functions without a body to kernels in C, compiled for the level of the processor.

One extension module is installed for each level of the processor architecture; all give the same
bytes. Importing this file loads the highest level that the processor supports. In tests, the
environment variable `ONLINE_SVM_LEVEL` selects a lower one.
"""

import os
import platform
from collections.abc import Callable
from importlib import import_module
from inspect import getdoc
from types import ModuleType
from typing import ParamSpec, TypeVar, cast

from online_svm.errors import InvalidConfig

LEVELS = ("v1", "v3", "v4") if platform.machine().lower() in ("x86_64", "amd64") else ("aarch64",)
"""Levels of this processor architecture, lowest first."""


def _loaded() -> ModuleType:
    lowest = _module(LEVELS[0])
    highest = lowest.processor_level()
    level = os.environ.get("ONLINE_SVM_LEVEL", highest)
    runnable = LEVELS[: LEVELS.index(highest) + 1]
    if level not in runnable:
        known = ", ".join(runnable)
        raise InvalidConfig(f"ONLINE_SVM_LEVEL: {level!r} cannot run here; use one of {known}")
    return _module(level)


def _module(level: str) -> ModuleType:
    try:
        return import_module(f"online_svm.compiled._{level}")
    except ModuleNotFoundError as error:
        raise ImportError(
            f"the kernels for {level} are not built: install online-svm with pip, or in a checkout "
            "run python -m scripts.building.kernels"
        ) from error


LIBRARY = _loaded()  # the extension module in use


P = ParamSpec("P")
R = TypeVar("R")

_PACKAGE = __name__.partition(".")[0]


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Return the C kernel for a function without a body, which supplies types and docstring.

    The table of a C file lists the kernel by the path of the function, and specifies types, sizes
    and writability of its arguments. A call raises TypeError for a wrong type, layout or number of
    dimensions of an array, ValueError for a wrong size or shared memory, IndexError for an index
    out of bounds. Raises LookupError if no C file has a kernel of that name.
    """
    name = f"{function.__module__.removeprefix(f'{_PACKAGE}.')}.{function.__name__}"
    return cast(Callable[P, R], LIBRARY.bind(name, getdoc(function) or "", function.__module__))
