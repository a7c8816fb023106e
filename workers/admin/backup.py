"""The backup format: one file with the agreement of a feed and its newest snapshot.

The file has a line that names the format, the length of the header (4 bytes), the header (JSON),
the snapshot, and the SHA-256 of everything before it. The position of the feed is in the snapshot.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, Self

from online_svm.storage.saved_model import BACKUP
from workers.errors import BadConfiguration, InvalidStoredSnapshot
from workers.feed.position import Position
from workers.feed.state import Agreement, Pointer
from workers.session import snapshots

FORMAT = 1
_LENGTH = 4
_MAX_HEADER = 1 << 22
_DIGEST = 32


class InvalidBackup(BadConfiguration):
    """A file that is not a backup, or is damaged."""


@dataclass(frozen=True, slots=True)
class Backup:
    """The contents of a backup.

    Attributes
    ----------
    feed : str
    epoch : int
        Epoch of the feed when the backup was made.
    agreement : Agreement
    pointer : Pointer
        Pointer to the snapshot.
    data : bytes
        The snapshot.
    """

    feed: str
    epoch: int
    agreement: Agreement
    pointer: Pointer
    data: bytes

    @property
    def position(self) -> Position:
        """The position of the feed in the snapshot.

        Raises
        ------
        InvalidStoredSnapshot
            If the snapshot is not what the pointer names, or not of this feed.
        """
        return snapshots.decode(
            self.data, self.pointer, self.feed, self.agreement.config_hash
        ).position

    def pieces(self) -> Iterator[bytes]:
        r"""Yield the bytes of the file.

        Examples
        --------
        >>> pointer, data = snapshots.encode("f", "c0ffee", Position(b"9-1", 3, 2), b"learned")
        >>> backup = Backup("f", 1, Agreement("{}", "c0ffee", "{}"), pointer, data)
        >>> b"".join(backup.pieces())[:12]
        b'osvm-backup\n'
        """
        header = {
            "format": FORMAT,
            "feed": self.feed,
            "epoch": self.epoch,
            "agreement": asdict(self.agreement),
            "snapshot": self.pointer.encode().decode(),
            "bytes": len(self.data),
        }
        text = json.dumps(header, sort_keys=True).encode()
        digest = sha256()
        for piece in (BACKUP, len(text).to_bytes(_LENGTH, "big"), text, self.data):
            digest.update(piece)
            yield piece
        yield digest.digest()

    @classmethod
    def read(cls, path: Path) -> Self:
        """Return the backup in a file; sizes are checked before the contents are read.

        Raises
        ------
        InvalidBackup
            If the file cannot be read, is not a backup, is damaged, or has a newer format.
        """
        try:
            with path.open("rb") as source:
                size = path.stat().st_size
                return cls._parsed(source, size)
        except OSError as error:
            raise InvalidBackup(f"{path}: cannot be read: {error.strerror or error}") from None
        except (InvalidStoredSnapshot, ValueError) as error:
            raise InvalidBackup(f"{path}: {error}") from error

    @classmethod
    def _parsed(cls, source: BinaryIO, size: int) -> Self:
        start = source.read(len(BACKUP) + _LENGTH)
        _check_kind(start)
        length = int.from_bytes(start[len(BACKUP) :], "big")
        left = size - len(start) - _DIGEST
        if length > min(_MAX_HEADER, left):
            raise ValueError("it is cut or damaged: its header is longer than it may be")
        text = source.read(length)
        header = _header(text)
        if header.get("bytes") != left - length:
            raise ValueError("it is cut or damaged: it has not the size that its header names")
        data = source.read(left - length)
        digest = sha256(start + text)
        digest.update(data)
        if source.read() != digest.digest():
            raise ValueError("it is damaged: its SHA-256 is not the one recorded")
        return cls._checked(header, data)

    @classmethod
    def _checked(cls, header: dict[str, Any], data: bytes) -> Self:
        try:
            agreement = Agreement(**header["agreement"])
            pointer = Pointer.parse(header["snapshot"].encode())
            backup = cls(header["feed"], int(header["epoch"]), agreement, pointer, data)
            config_hash = sha256(agreement.config.encode()).hexdigest()
        except (AttributeError, KeyError, TypeError) as error:
            raise ValueError(f"its header is incomplete: {error!r}") from error
        if config_hash != agreement.config_hash or backup.position.n != pointer.n:
            raise ValueError("its header contradicts itself")
        return backup


def _check_kind(start: bytes) -> None:
    if not start.startswith(BACKUP) or len(start) < len(BACKUP) + _LENGTH:
        raise ValueError("this is no backup; online-svm backup FEED --out FILE saves one")


def _header(text: bytes) -> dict[str, Any]:
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is damaged: its header is unreadable ({error})") from error
    if not isinstance(header, dict):
        raise ValueError("it is damaged: its header is unreadable")
    if header.get("format") != FORMAT:
        raise ValueError(
            f"it has format {header.get('format')!r}, this version reads {FORMAT}: upgrade "
            "online-svm"
        )
    return header
