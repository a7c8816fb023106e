"""Measure the memory of the arrays that an object holds."""

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np


def array_bytes(root: object) -> int:
    """Return the bytes of all arrays that an object of this package holds, directly or in parts.

    Shared arrays and views count once. Pages that were never touched count too, although they take
    no memory.
    """
    found: dict[int, np.ndarray[Any, Any]] = {}
    seen, left = set(), [root]
    while left:
        each = left.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, np.ndarray):
            owner = _owner(each)
            found[id(owner)] = owner
        else:
            left.extend(_parts(each))
    return sum(array.nbytes for array in found.values())


def _owner(array: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """Return the array that owns the memory of a view."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _parts(each: object) -> Iterator[object]:
    if isinstance(each, Mapping):
        yield from each.values()
    elif isinstance(each, list | tuple | deque):
        yield from each
    elif type(each).__module__.partition(".")[0] == "online_svm":
        yield from getattr(each, "__dict__", {}).values()
        for kind in type(each).__mro__:
            for name in getattr(kind, "__slots__", ()):
                yield getattr(each, name, None)
