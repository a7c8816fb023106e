"""A JSON header and arrays as one run of bytes: for the pipe to the refit process, and snapshots.

Speed counts here: no archive, no checksums. The reader still checks that the layout accounts for
every byte, since a snapshot may hold forged ones.
"""

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from online_svm.errors import InvalidSnapshot
from online_svm.storage.state import State

_LENGTH = 8


def join(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return the bytes of `header` (JSON values) and `arrays`.

    Examples
    --------
    >>> header, arrays = split(join({"n": 3}, {"w": np.array([1.0, 2.0])}))
    >>> header, arrays["w"]
    ({'n': 3}, array([1., 2.]))
    """
    plain = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    layout = [(name, array.dtype.str, array.shape) for name, array in plain.items()]
    text = json.dumps([header, layout]).encode()
    bodies = [array.tobytes() for array in plain.values()]
    return b"".join([len(text).to_bytes(_LENGTH, "little"), text, *bodies])


def split(data: bytes) -> State:
    """Return the header and the arrays (read-only views of `data`) that `join` put together.

    Raises
    ------
    InvalidSnapshot
        If the bytes are more or fewer than the layout says, or the layout cannot be read.

    Examples
    --------
    >>> split(join({"n": 3}, {}) + b"more")
    Traceback (most recent call last):
    online_svm.errors.InvalidSnapshot: the frame has 26 bytes, but its layout accounts for 22
    """
    begin = _LENGTH + int.from_bytes(data[:_LENGTH], "little")
    try:
        header, layout = json.loads(data[_LENGTH:begin])
        arrays = {}
        for name, dtype, shape in layout:
            arrays[name] = _array_at(data, begin, np.dtype(dtype), tuple(shape))
            begin += arrays[name].nbytes
    except (OverflowError, RecursionError, TypeError, ValueError) as error:
        raise InvalidSnapshot(f"the frame cannot be read: {error}") from error
    if begin != len(data):
        raise InvalidSnapshot(
            f"the frame has {len(data)} bytes, but its layout accounts for {begin}"
        )
    return State(header, arrays)


def _array_at(
    data: bytes, begin: int, dtype: np.dtype[Any], shape: tuple[int, ...]
) -> NDArray[Any]:
    if any(extent < 0 for extent in shape):  # numpy takes a negative one as "all that is left"
        raise InvalidSnapshot(f"the frame announces an array of shape {shape}")
    return np.frombuffer(data, dtype, math.prod(shape), begin).reshape(shape)
