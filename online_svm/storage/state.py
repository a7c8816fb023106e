"""Define the form of saved state, which classes write by `state` and read by two methods.

The class method `from_state` makes a new object. Its first argument is the state; further arguments
are parts that the caller already has: the configuration, a kernel, rows kept elsewhere. `restore`
fills a new object that its owner made from the configuration; if it fails, the object is unusable.
The object then continues as the original would have, bit for bit. Both methods raise ValueError
(`InvalidSnapshot` is one) or LookupError if parts of a state are missing or do not fit together.

A state has one of three forms:

- *Named arrays*, for pure numbers: calibrators, models, sums, sets.
- A *`State`*, a JSON header and named arrays, for objects with names, settings or None: machines,
  held examples, an active model.
- *Bytes*, a header and arrays in one safetensors container, for exchange with the refit process: a
  task, a result, a learner. The answering process does not parse the state of a learner.

Most classes declare their fields and parts in a `StateSchema`, and inherit both methods
(`state_schema`). The others store their parts by `nest` and read them by `under`. Names of arrays
and header entries are part of stored states and must not change. `OnlinePredictor.snapshot` puts a
whole state into a container; `restore` continues from it.
"""

import json
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from online_svm.errors import InvalidSnapshot
from online_svm.types import Arrays

Header = dict[str, Any]


class State(NamedTuple):
    """A JSON header and named arrays."""

    header: Header
    arrays: Arrays


def as_array(data: bytes) -> NDArray[np.uint8]:
    """Return bytes as an array, to store them among arrays; `tobytes` is the inverse."""
    return np.frombuffer(data, dtype=np.uint8)


def nest(name: str, arrays: Mapping[str, NDArray[Any]]) -> Arrays:
    """Return `arrays` with "name." in front of each key."""
    return {f"{name}.{key}": array for key, array in arrays.items()}


def under(name: str, arrays: Mapping[str, NDArray[Any]]) -> Arrays:
    """Return the arrays stored by `nest` under `name`."""
    prefix = f"{name}."
    return {key.removeprefix(prefix): a for key, a in arrays.items() if key.startswith(prefix)}


def require(holds: object, name: str) -> None:
    """Raise ValueError with the name of a part of a state, unless `holds` is true."""
    if not holds:
        raise ValueError(f"{name} does not fit")


# Containers. Input is not trusted: before it copies an array, safetensors checks that the sizes and
# offsets of all arrays account for exactly the bytes present. A checksum covers all bytes.

FORMAT = 2
_DECODER = json.JSONDecoder()
_DTYPES = frozenset({"<f8", "<i8", "|b1", "|u1", "<i2", "<i4"})
_LENGTH = 8  # bytes at the start of a container: the length of the safetensors header
_NO_SUM = b"0" * 8  # placeholder for the checksum while it is computed

_HEAD = b'{"__metadata__":{"header":"'
"""Start of the safetensors header; the checksum and our header follow as one text."""

_SUM = _LENGTH + len(_HEAD)  # offset of the checksum


def pack(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return the container of `header` (JSON values) and `arrays`.

    Raises InvalidSnapshot if an array is not of float64, int64, int32, int16, bool or uint8.
    """
    plain = {name: _plain(name, array) for name, array in arrays.items()}
    text = json.dumps({"format": FORMAT, **header}, sort_keys=True, allow_nan=False)
    # A single entry, because the order in which safetensors writes several is not fixed.
    whole = save(plain, {"header": _NO_SUM.decode() + text})
    if whole[_LENGTH:_SUM] != _HEAD:
        raise RuntimeError("safetensors has changed its layout: use the release before it")
    return b"".join((whole[:_SUM], _check_sum(whole), memoryview(whole)[_SUM + len(_NO_SUM) :]))


def unpack(data: bytes | memoryview) -> State:
    """Return the header and the arrays of a container made by `pack`.

    Raises InvalidSnapshot if the bytes are damaged, or have another format or array type.
    """
    whole = bytes(data)
    try:
        arrays = load(whole)
        length = int.from_bytes(whole[:_LENGTH], "little")
        metadata = whole[_LENGTH : _LENGTH + length].decode()
        text, _ = _DECODER.raw_decode(metadata, len(_HEAD) - 1)
        header = json.loads(text[len(_NO_SUM) :], parse_constant=_refused)
    except (RecursionError, SafetensorError, TypeError, ValueError) as error:
        raise InvalidSnapshot(f"the state is damaged: {error}") from error
    if text[: len(_NO_SUM)].encode() != _check_sum(whole):
        raise InvalidSnapshot("the state is damaged: its check sum is another")
    for name, array in arrays.items():
        _check_type(name, array)
    found = header.pop("format", None) if isinstance(header, dict) else None
    if found != FORMAT:
        raise InvalidSnapshot(f"state format {found!r} is not {FORMAT}; upgrade")
    return State(header, arrays)


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _plain(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """Return an array in C order; raise InvalidSnapshot if its type may not be stored."""
    plain = np.ascontiguousarray(array).reshape(np.shape(array))
    _check_type(name, plain)
    return plain


def _check_type(name: str, array: NDArray[Any]) -> None:
    if array.dtype.str not in _DTYPES:
        raise InvalidSnapshot(f"array {name!r} has type {array.dtype}, which is not stored")


def _check_sum(whole: bytes) -> bytes:
    """Return the CRC-32 of a container without its checksum, in hexadecimal."""
    found = zlib.crc32(_NO_SUM, zlib.crc32(whole[:_SUM]))
    return b"%08x" % zlib.crc32(memoryview(whole)[_SUM + len(_NO_SUM) :], found)
