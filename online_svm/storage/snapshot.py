"""State to bytes and back: a JSON header and named arrays in one npz archive, without pickle.

The reader trusts nothing. The archive must be stored uncompressed (no zip bombs), every member
must be a plain .npy of a permitted type whose shape accounts for exactly the bytes that are
there, and only then is an array made.
"""

import io
import json
import zipfile
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.lib import format as npy

from online_svm.errors import InvalidSnapshot
from online_svm.storage.state import State

FORMAT = 1
_HEADER = "header.json"
_DTYPES = frozenset({"<f8", "<i8", "|b1", "|u1"})
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
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        text = json.dumps({"format": FORMAT, **header}, sort_keys=True, allow_nan=False)
        archive.writestr(zipfile.ZipInfo(_HEADER, _EPOCH), text.encode())
        for name in sorted(arrays):
            archive.writestr(zipfile.ZipInfo(f"{name}.npy", _EPOCH), _npy_bytes(name, arrays[name]))
    return target.getvalue()


def unpack(data: bytes) -> State:
    """Return the header and the arrays of an archive made by `pack`.

    Raises
    ------
    InvalidSnapshot
        If the bytes are damaged, compressed, of a newer format, or hold anything but plain
        arrays.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            _check_members(archive, len(data))
            header = _read_header(archive)
            arrays = {
                info.filename.removesuffix(".npy"): _read_array(info.filename, archive.read(info))
                for info in archive.infolist()
                if info.filename != _HEADER
            }
    except (zipfile.BadZipFile, EOFError, OSError, NotImplementedError, RuntimeError) as error:
        raise InvalidSnapshot(f"the snapshot is damaged: {error}") from error
    return State(header, arrays)


def _npy_bytes(name: str, array: np.ndarray[Any, np.dtype[Any]]) -> bytes:
    plain = np.ascontiguousarray(array).reshape(array.shape)
    if plain.dtype.str not in _DTYPES:
        raise InvalidSnapshot(f"array {name!r} has type {plain.dtype}, which is not stored")
    target = io.BytesIO()
    npy.write_array(target, plain, version=(1, 0), allow_pickle=False)
    return target.getvalue()


def _check_members(archive: zipfile.ZipFile, size: int) -> None:
    members = archive.infolist()
    if len({info.filename for info in members}) != len(members):
        raise InvalidSnapshot("the snapshot names a member twice")
    if any(info.compress_type != zipfile.ZIP_STORED for info in members):
        raise InvalidSnapshot("the snapshot is compressed; snapshots are stored as they are")
    if sum(info.file_size for info in members) > size:
        raise InvalidSnapshot("the snapshot announces more bytes than it has")
    if any(info.filename != _HEADER and not info.filename.endswith(".npy") for info in members):
        raise InvalidSnapshot("the snapshot holds a member that is not an array")


def _read_header(archive: zipfile.ZipFile) -> dict[str, Any]:
    try:
        header = json.loads(archive.read(_HEADER))
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


def _read_array(name: str, data: bytes) -> np.ndarray[Any, np.dtype[Any]]:
    stream = io.BytesIO(data)
    try:
        if npy.read_magic(stream) != (1, 0):
            raise InvalidSnapshot(f"member {name!r} is not version 1.0 of the npy format")
        length = int.from_bytes(data[stream.tell() : stream.tell() + _NPY_LENGTH], "little")
        head = stream.read(_NPY_LENGTH + length)
        parse = _array_header if len(head) <= _USUAL else _array_header.__wrapped__
        shape, fortran, dtype = parse(head)
    except ValueError as error:
        raise InvalidSnapshot(f"member {name!r} has no readable array header") from error
    if dtype.str not in _DTYPES:
        raise InvalidSnapshot(f"member {name!r} has type {dtype}, which is not stored")
    body = data[stream.tell() :]
    count = 1
    for extent in shape:  # Python integers: a forged shape cannot overflow the product
        count *= int(extent)
    if count * dtype.itemsize != len(body) or any(extent < 0 for extent in shape):
        raise InvalidSnapshot(f"member {name!r} announces {shape}, which is not what it holds")
    flat = np.frombuffer(body, dtype=dtype)
    try:
        return flat.reshape(shape, order="F" if fortran else "C").copy()
    except ValueError as error:  # no bytes, yet extents beyond any memory: (0, 2**62, 2**62)
        raise InvalidSnapshot(f"member {name!r} announces {shape}: {error}") from error
