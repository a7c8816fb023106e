"""A JSON header and arrays as one run of bytes, for the private pipe to the refit process.

Unlike `snapshot`, which reads bytes that may have been damaged or forged, both ends here are one
program, and speed counts: no archive, no checksums.
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

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


def split(data: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the header and the arrays (read-only views of `data`) that `join` put together."""
    begin = _LENGTH + int.from_bytes(data[:_LENGTH], "little")
    header, layout = json.loads(data[_LENGTH:begin])
    arrays = {}
    for name, dtype, shape in layout:
        count = int(np.prod(shape, dtype=np.int64))
        arrays[name] = np.frombuffer(data, dtype, count, begin).reshape(shape)
        begin += arrays[name].nbytes
    return header, arrays
