"""Named arrays, and named arrays within them: how states are put together and taken apart."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from online_svm.errors import InvalidSnapshot
from online_svm.types import Arrays, Floats, Ints


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


def read_floats(state: Arrays, name: str, size: int | None = None) -> Floats:
    """Return the one-dimensional float64 array `name` of a stored state.

    Raises
    ------
    InvalidSnapshot
        If it is absent, of another type, or not of length `size` where one is given.

    Examples
    --------
    >>> read_floats({"a": np.zeros(2)}, "a", 2)
    array([0., 0.])
    """
    return np.asarray(_read(state, name, np.float64, size), dtype=np.float64)


def read_ints(state: Arrays, name: str, size: int | None = None) -> Ints:
    """Return the one-dimensional int64 array `name` of a stored state, as `read_floats` does.

    Examples
    --------
    >>> read_ints({"a": np.zeros(2, dtype=np.int64)}, "a")
    array([0, 0])
    """
    return np.asarray(_read(state, name, np.int64, size), dtype=np.int64)


def _read(
    state: Arrays,
    name: str,
    dtype: type[np.float64] | type[np.int64],
    size: int | None,
) -> Floats | Ints:
    values = state.get(name)
    if values is None or values.dtype != dtype or values.ndim != 1:
        raise InvalidSnapshot(f"map state: {name!r} is absent, or not a list of {dtype.__name__}")
    if size is not None and len(values) != size:
        raise InvalidSnapshot(f"map state: {name!r} has {len(values)} values, expected {size}")
    return values
