"""Blocks of predictions as state: saved, continued, and joined."""

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from online_svm.storage.arrays import nest, require, under
from online_svm.storage.state import State
from online_svm.stream.prediction import PredictionBlock
from online_svm.types import Arrays, Floats, Ints

_MAPS = ("maps", "map_intervals")
_FIELDS = tuple(f.name for f in fields(PredictionBlock))
_ARRAYS = tuple(f.name for f in fields(PredictionBlock) if f.type in (Floats, Ints))
_CONSTANTS = tuple(name for name in _FIELDS if name not in _ARRAYS + _MAPS)


def can_join(one: PredictionBlock, other: PredictionBlock) -> bool:
    """Return whether two blocks differ in their rows alone."""
    return _common(one) == _common(other)


def joined(blocks: Sequence[PredictionBlock]) -> PredictionBlock:
    """Return blocks that can be joined as one."""
    first = blocks[0]
    if len(blocks) == 1:
        return first
    changes: dict[str, Any] = {
        name: np.concatenate([getattr(block, name) for block in blocks]) for name in _ARRAYS
    }
    for name in _MAPS:
        if getattr(first, name) is not None:
            changes[name] = {
                key: np.concatenate([getattr(block, name)[key] for block in blocks])
                for key in getattr(first, name)
            }
    return replace(first, **changes)


def block_state(block: PredictionBlock) -> State:
    """Return a block as a state; `block_from_state` gives it back.

    Examples
    --------
    >>> from online_svm.predictor.warm_up import warming_block
    >>> block = warming_block(("a", "b"), np.array([3, 4]))
    >>> block_from_state(block_state(block)).n, block_state(block).header["classes"]
    (array([3, 4]), ('a', 'b'))
    """
    header: dict[str, Any] = {name: getattr(block, name) for name in _CONSTANTS}
    arrays: Arrays = {name: getattr(block, name) for name in _ARRAYS}
    for name in _MAPS:
        values = getattr(block, name)
        header[name] = None if values is None else list(values)
        arrays |= nest(name, values or {})
    return State(header, arrays)


def block_from_state(state: State) -> PredictionBlock:
    """Return the block that `state` describes.

    Raises
    ------
    LookupError, TypeError, ValueError
        If a part is missing, or has another number of rows.
    """
    header, arrays = state
    values: dict[str, Any] = {name: header[name] for name in _CONSTANTS}
    values["classes"] = tuple(header["classes"])
    values |= {name: arrays[name] for name in _ARRAYS}
    for name in _MAPS:
        held = under(name, arrays)
        values[name] = None if header[name] is None else {key: held[key] for key in header[name]}
    size = len(arrays["n"])
    require(all(len(array) == size for array in arrays.values()), "an answer")
    return PredictionBlock(**values)


def _common(block: PredictionBlock) -> tuple[object, ...]:
    """Return what all rows of a block have in common."""
    constants = tuple(getattr(block, name) for name in _CONSTANTS)
    shapes = tuple(getattr(block, name).shape[1:] for name in _ARRAYS)
    maps = tuple(None if (m := getattr(block, name)) is None else tuple(m) for name in _MAPS)
    return constants + shapes + maps
