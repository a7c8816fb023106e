"""Convert a state to bytes and back: a JSON header and named arrays in one safetensors container.

Input is not trusted. Before it copies an array, safetensors checks that the sizes and offsets of
all arrays account for exactly the bytes present. A checksum covers all bytes.
"""

import json
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from online_svm.errors import InvalidSnapshot
from online_svm.storage.state import State

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
