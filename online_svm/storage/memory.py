"""Measure the memory of the arrays that an object holds."""

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np


def array_bytes(root: object) -> int:
    """Return the bytes of all arrays in an object of this package and its parts.

    Shared arrays and views count once. Pages that were never touched count too, although they take
    no memory.
    """
    owners: dict[int, np.ndarray[Any, Any]] = {}
    seen, stack = set(), [root]
    while stack:
        part = stack.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, np.ndarray):
            owner = _owner(part)
            owners[id(owner)] = owner
        else:
            stack.extend(_parts(part))
    return sum(array.nbytes for array in owners.values())


def _owner(array: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _parts(whole: object) -> Iterator[object]:
    if isinstance(whole, Mapping):
        yield from whole.values()
    elif isinstance(whole, list | tuple | deque):
        yield from whole
    elif type(whole).__module__.partition(".")[0] == "online_svm":
        yield from getattr(whole, "__dict__", {}).values()
        for kind in type(whole).__mro__:
            for name in getattr(kind, "__slots__", ()):
                yield getattr(whole, name, None)
