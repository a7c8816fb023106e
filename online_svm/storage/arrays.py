"""Named arrays, and named arrays within them: how states are put together and taken apart."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from online_svm.types import Arrays


def nest(name: str, arrays: Mapping[str, NDArray[Any]]) -> Arrays:
    """Return `arrays` under names that begin with "name.".

    Examples
    --------
    >>> sorted(nest("model", {"coef": None, "bias": None}))
    ['model.bias', 'model.coef']
    """
    return {f"{name}.{key}": array for key, array in arrays.items()}


def under(name: str, arrays: Mapping[str, NDArray[Any]]) -> Arrays:
    """Return the arrays that `nest` put under `name`.

    Examples
    --------
    >>> under("a", {"a.b.c": None, "ab.c": None})
    {'b.c': None}
    """
    prefix = f"{name}."
    return {key.removeprefix(prefix): a for key, a in arrays.items() if key.startswith(prefix)}


def require(holds: object, name: str) -> None:
    """Raise ValueError, naming a part of a state, unless something holds of it."""
    if not holds:
        raise ValueError(f"{name} does not fit")


def check_floats(arrays: Arrays, name: str, shape: tuple[int, ...], finite: bool = True) -> None:
    """Raise ValueError or KeyError unless there is a float64 array of that shape.

    Examples
    --------
    >>> check_floats({"b": np.zeros(2)}, "b", (3,))
    Traceback (most recent call last):
    ValueError: b does not fit
    """
    array = arrays[name]
    require(array.dtype.str == "<f8" and array.shape == shape, name)
    require(not finite or bool(np.isfinite(array).all()), name)


def check_indices(arrays: Arrays, name: str, shape: tuple[int, ...], stop: int) -> None:
    """Raise ValueError or KeyError unless there is an int64 array of 0 ... stop - 1.

    Compiled code does not check its indices.
    """
    array = arrays[name]
    require(array.dtype.str == "<i8" and array.shape == shape, name)
    require(array.size == 0 or (array.min() >= 0 and array.max() < stop), name)
