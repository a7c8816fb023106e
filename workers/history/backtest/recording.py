"""One history in a private file: the same entries for every process that answers them.

A source is read once: standard input has no second time, and a feed may grow. The file lives as
long as the backtest. Each entry is its number of parts and, of each part, its length and bytes;
numbers are 32 bits, little-endian. Its first part is its ID, empty where it has none.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from workers.errors import BadConfiguration

Entry = tuple[bytes, list[bytes]]

BATCH = 256
"""Entries read at once, as a worker does by default."""

BATCH_BYTES = 1 << 26
"""Bytes after which a batch ends, as in a worker by default."""

_NUMBER = struct.Struct("<I")


class Identified(list[bytes]):
    """The fields of an entry that has an ID.

    Parameters
    ----------
    id : bytes
    fields : iterable of bytes
    """

    def __init__(self, id: bytes, fields: Iterable[bytes]) -> None:
        super().__init__(fields)
        self.id = id


@dataclass(frozen=True, slots=True)
class Recording:
    """A history that was written down.

    Attributes
    ----------
    path : Path
    entries : int
    digest : str
        SHA-256 of the entries' fields, in order, hexadecimal.
    """

    path: Path
    entries: int
    digest: str


def record(entries: Iterable[Sequence[bytes]], path: Path) -> Recording:
    """Write entries to a new file.

    Parameters
    ----------
    entries : iterable of sequence of bytes
        Fields ``[name, value, ...]`` of each, as the protocol of Redis has them; `Identified`
        where the entry has an ID. The digest is of the fields alone.
    path : Path

    Raises
    ------
    BadConfiguration
        If there is no entry, or no room for them.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as place:
    ...     found = record([[b"x", b"[1]"], [b"x", b"[2]", b"y", b"a"]], Path(place) / "history")
    ...     [fields for batch in read(found.path) for _, fields in batch]
    [[b'x', b'[1]'], [b'x', b'[2]', b'y', b'a']]
    """
    count, digest = 0, sha256()
    source = iter(entries)
    with path.open("xb") as target:
        for fields in source:
            digest.update(_framed(fields))
            known = fields.id if isinstance(fields, Identified) else b""
            try:
                target.write(_framed((known, *fields)))
            except OSError as error:
                raise BadConfiguration(
                    f"{path}: cannot be written: {error.strerror or error}; set TMPDIR to a "
                    "directory with room"
                ) from None
            count += 1
    if not count:
        raise BadConfiguration("the history has no entries; there is nothing to answer")
    return Recording(path, count, digest.hexdigest())


def read(path: Path, count: int = BATCH) -> Iterator[list[Entry]]:
    """Yield the entries in batches of at most `count`; the ID is empty where none is known."""
    with path.open("rb") as source:
        batch: list[Entry] = []
        begin = 0
        while head := source.read(_NUMBER.size):
            (parts,) = _NUMBER.unpack(head)
            fields = []
            for _ in range(parts):
                (length,) = _NUMBER.unpack(source.read(_NUMBER.size))
                fields.append(source.read(length))
            batch.append((fields[0], fields[1:]))
            if len(batch) == count or source.tell() - begin >= BATCH_BYTES:
                yield batch
                batch, begin = [], source.tell()
        if batch:
            yield batch


def _framed(fields: Sequence[bytes]) -> bytes:
    parts = [_NUMBER.pack(len(fields))]
    for part in fields:
        parts += [_NUMBER.pack(len(part)), part]
    return b"".join(parts)
