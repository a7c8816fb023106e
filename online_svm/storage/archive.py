"""Zip archives of stored members: the bytes that `zipfile` writes, in a tenth of its time.

A snapshot has some ninety members, most of them of a few hundred bytes: there `zipfile` takes
longer than all the rest of saving or restoring a predictor. What it writes of such members has one
form. `write` gives that form. `read` takes that form alone, every field of it; whatever else it is
given, damaged archives among them, is left to `zipfile`.

The format: section 4.3 of APPNOTE.TXT, PKWARE. For each member a local header, its name and its
bytes; then for each member an entry of the directory; then where the directory is.
"""

import struct
import zlib
from collections.abc import Mapping, Sequence

Buffer = bytes | memoryview

_LOCAL = struct.Struct("<4s5H3L2H")
_ENTRY = struct.Struct("<4s6H3L5H2L")
_END = struct.Struct("<4s4H2LH")

_VERSION = 20  # 2.0 of the format
_UNIX = 3 << 8 | _VERSION  # who made it
_UTF8 = 0x800
# Midnight of 1 January 1980, the earliest time there is.
_TIME, _DATE = 0, 1 << 5 | 1
_MODE = 0o600 << 16

LIMIT = 1 << 30
"""Bytes of all members, below which no field needs the larger form of it (zip64)."""
_MOST = 1 << 15


def write(members: Mapping[str, Sequence[Buffer]]) -> bytes | None:
    """Return the archive of members, each in parts; None where there are too many, or too large.

    Parameters
    ----------
    members : mapping from a name to its bytes, in parts

    Examples
    --------
    >>> data = write({"a.npy": [b"some ", b"bytes"], "b.npy": [b""]})
    >>> {name: bytes(part) for name, part in read(data).items()}
    {'a.npy': b'some bytes', 'b.npy': b''}
    """
    if len(members) > _MOST or sum(len(p) for parts in members.values() for p in parts) >= LIMIT:
        return None
    pieces: list[Buffer] = []
    directory: list[bytes] = []
    at = 0
    for name, parts in members.items():
        check, size = 0, 0
        for part in parts:
            check, size = zlib.crc32(part, check), size + len(part)
        local, entry = _headers(name, check, size, at)
        pieces += (local, *parts)
        directory.append(entry)
        at += len(local) + size
    whole = b"".join(directory)
    return b"".join((*pieces, whole, _end(len(members), len(whole), at)))


def read(data: Buffer) -> dict[str, memoryview] | None:
    """Return the members of an archive that `write` gave, by name, without copying them.

    None for any other bytes: for archives of another form, and for damaged ones.

    Examples
    --------
    >>> data = write({"a.npy": [b"bytes"]})
    >>> read(data[:-1]) is None, read(data.replace(b"bytes", b"bites")) is None
    (True, True)
    """
    count, size, directory = _end_of(data)
    end = directory + size
    if data[end:] != _end(count, size, directory):
        return None
    view, found = memoryview(data), dict[str, memoryview]()
    begin, at = 0, directory
    for _ in range(count):
        if at + _ENTRY.size > end:
            return None
        fields = _ENTRY.unpack_from(data, at)
        flags, check, length, named = fields[3], fields[7], fields[8], fields[10]
        name = _name(data[at + _ENTRY.size : at + _ENTRY.size + named], flags)
        if name is None or name in found:
            return None
        local, entry = _headers(name, check, length, begin)
        first = begin + len(local)
        part = view[first : first + length]
        is_whole = data[at : at + len(entry)] == entry and data[begin:first] == local
        if not is_whole or len(part) != length or zlib.crc32(part) != check:
            return None
        found[name] = part
        at, begin = at + len(entry), first + length
    return found if (begin, at) == (directory, end) else None


def _headers(name: str, check: int, size: int, at: int) -> tuple[bytes, bytes]:
    """Return the local header of a member that begins at `at`, and its entry of the directory."""
    text, flags = name.encode(), 0 if name.isascii() else _UTF8
    known = (flags, 0, _TIME, _DATE, check, size, size, len(text), 0)
    local = _LOCAL.pack(b"PK\3\4", _VERSION, *known)
    entry = _ENTRY.pack(b"PK\1\2", _UNIX, _VERSION, *known, 0, 0, 0, _MODE, at)
    return local + text, entry + text


def _end(count: int, size: int, at: int) -> bytes:
    """Return what ends an archive: how many entries its directory has, its size and place."""
    return _END.pack(b"PK\5\6", 0, 0, count, count, size, at, 0)


def _end_of(data: Buffer) -> tuple[int, int, int]:
    """Return the number of entries of the directory, its size and place, as the end says."""
    if len(data) < _END.size:
        return 0, 0, 0
    fields = _END.unpack_from(data, len(data) - _END.size)
    return fields[4], fields[5], fields[6]


def _name(text: Buffer, flags: int) -> str | None:
    """Return the name of a member; None where it is no text of the form that `flags` says."""
    try:
        return str(text, "utf-8" if flags == _UTF8 else "ascii")
    except UnicodeDecodeError:
        return None
