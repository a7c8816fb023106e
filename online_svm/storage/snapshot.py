"""State to bytes and back: a JSON header and named arrays in one npz archive, without pickle.

The reader trusts nothing. The archive must be stored uncompressed (no zip bombs), every member
must be a plain .npy of a permitted type whose shape accounts for exactly the bytes that are
there, and only then is an array made.
"""

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.lib import format as npy

from online_svm.errors import InvalidSnapshot
from online_svm.storage import archive
from online_svm.storage.state import State

FORMAT = 1
_HEADER = "header.json"
_DTYPES = frozenset({"<f8", "<i8", "|b1", "|u1"})
_MAGIC = npy.magic(1, 0)  # an array follows, in version 1.0 of the format
_NPY_LENGTH = 2  # bytes that say how long the header of an array is
_USUAL = 256  # bytes of such a header; longer ones are not remembered
# Zip entries carry a time; a fixed one keeps the bytes a function of the state alone.
_EPOCH = (1980, 1, 1, 0, 0, 0)


def pack(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray[Any, np.dtype[Any]]]) -> bytes:
    """Return the archive of `header` (JSON values) and `arrays` (float64, int64, bool, uint8).

    Raises
    ------
    InvalidSnapshot
        If an array has another type.

    Examples
    --------
    >>> header, arrays = unpack(pack({"n": 3}, {"w": np.array([1.0, 2.0])}))
    >>> header["n"], arrays["w"]
    (3, array([1., 2.]))
    """
    text = json.dumps({"format": FORMAT, **header}, sort_keys=True, allow_nan=False)
    members: dict[str, Sequence[archive.Buffer]] = {_HEADER: (text.encode(),)}
    members |= {f"{name}.npy": _npy_parts(name, arrays[name]) for name in sorted(arrays)}
    return archive.write(members) or _written_by_zipfile(members)


def unpack(data: archive.Buffer) -> State:
    """Return the header and the arrays of an archive made by `pack`.

    Raises
    ------
    InvalidSnapshot
        If the bytes are damaged, compressed, of a newer format, or hold anything but plain
        arrays.
    """
    members: Mapping[str, archive.Buffer] | None = archive.read(data)
    if members is None:
        members = _read_by_zipfile(data)
    if any(name != _HEADER and not name.endswith(".npy") for name in members):
        raise InvalidSnapshot("the snapshot holds a member that is not an array")
    header = _read_header(members)
    arrays = {
        name.removesuffix(".npy"): _read_array(name, member)
        for name, member in members.items()
        if name != _HEADER
    }
    return State(header, arrays)


def _npy_parts(name: str, array: np.ndarray[Any, np.dtype[Any]]) -> tuple[bytes, memoryview]:
    """Return an array as a .npy file: its header, and its numbers."""
    plain = np.ascontiguousarray(array)
    if plain.dtype.str not in _DTYPES:
        raise InvalidSnapshot(f"array {name!r} has type {plain.dtype}, which is not stored")
    return _npy_head(plain.dtype.str, array.shape), plain.reshape(-1).view(np.uint8).data


@lru_cache(maxsize=1024)
def _npy_head(dtype: str, shape: tuple[int, ...]) -> bytes:
    """Return what stands before the numbers of an array; feeds of like settings have like ones."""
    target = io.BytesIO()
    npy.write_array_header_1_0(target, {"descr": dtype, "fortran_order": False, "shape": shape})
    return target.getvalue()


def _written_by_zipfile(members: Mapping[str, Sequence[archive.Buffer]]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as written:
        for name, parts in members.items():
            written.writestr(zipfile.ZipInfo(name, _EPOCH), b"".join(parts))
    return target.getvalue()


def _read_by_zipfile(data: archive.Buffer) -> dict[str, archive.Buffer]:
    """Return the members of an archive that others wrote, or say what is wrong with it."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as found:
            _check_members(found.infolist(), len(data))
            return {info.filename: found.read(info) for info in found.infolist()}
    except (
        zipfile.BadZipFile,
        EOFError,
        OSError,
        OverflowError,
        RuntimeError,
        ValueError,
    ) as error:
        raise InvalidSnapshot(f"the snapshot is damaged: {error}") from error


def _check_members(members: Sequence[zipfile.ZipInfo], size: int) -> None:
    if len({info.filename for info in members}) != len(members):
        raise InvalidSnapshot("the snapshot names a member twice")
    if any(info.compress_type != zipfile.ZIP_STORED for info in members):
        raise InvalidSnapshot("the snapshot is compressed; snapshots are stored as they are")
    if sum(info.file_size for info in members) > size:
        raise InvalidSnapshot("the snapshot announces more bytes than it has")


def _read_header(members: Mapping[str, archive.Buffer]) -> dict[str, Any]:
    try:
        header = json.loads(bytes(members[_HEADER]))
    except (KeyError, ValueError, RecursionError) as error:
        raise InvalidSnapshot("the snapshot has no readable header") from error
    if not isinstance(header, dict) or not isinstance(header.get("format"), int):
        raise InvalidSnapshot("the snapshot header names no format")
    if header["format"] != FORMAT:
        raise InvalidSnapshot(f"snapshot format {header['format']} is not {FORMAT}; upgrade")
    return header


@lru_cache(maxsize=1024)
def _array_header(head: bytes) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, order and type that the header of an array says.

    It is a Python literal, whose parsing is a large part of reading a snapshot. The snapshots of
    feeds of like settings have like headers.

    Raises
    ------
    ValueError
        If it is no such header.
    """
    shape, fortran, dtype = npy.read_array_header_1_0(io.BytesIO(head))
    return shape, fortran, dtype


def _read_array(name: str, data: archive.Buffer) -> np.ndarray[Any, np.dtype[Any]]:
    magic = bytes(data[: len(_MAGIC)])
    if magic != _MAGIC and magic[:-2] == _MAGIC[:-2]:
        raise InvalidSnapshot(f"member {name!r} is not version 1.0 of the npy format")
    begin = len(_MAGIC) + _NPY_LENGTH
    begin += int.from_bytes(data[len(_MAGIC) : begin], "little")
    head = bytes(data[len(_MAGIC) : begin])
    try:
        if magic != _MAGIC:
            raise ValueError("no array")
        parse = _array_header if len(head) <= _USUAL else _array_header.__wrapped__
        shape, fortran, dtype = parse(head)
    except ValueError as error:
        raise InvalidSnapshot(f"member {name!r} has no readable array header") from error
    if dtype.str not in _DTYPES:
        raise InvalidSnapshot(f"member {name!r} has type {dtype}, which is not stored")
    count = 1
    for extent in shape:  # Python integers: a forged shape cannot overflow the product
        count *= int(extent)
    if count * dtype.itemsize != len(data[begin:]) or any(extent < 0 for extent in shape):
        raise InvalidSnapshot(f"member {name!r} announces {shape}, which is not what it holds")
    try:
        array = np.frombuffer(data, dtype, offset=begin).reshape(
            shape, order="F" if fortran else "C"
        )
    except ValueError as error:  # no bytes, yet extents beyond any memory: (0, 2**62, 2**62)
        raise InvalidSnapshot(f"member {name!r} announces {shape}: {error}") from error
    # Those of bytes are parts with a form of their own, and taken apart at once.
    return array if dtype == np.uint8 else array.copy()
