"""Named arrays, and named arrays within them: how states are put together and taken apart."""

from collections.abc import Mapping
from typing import Any

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
