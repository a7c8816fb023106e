"""Files that an estimator is loaded from: what `save` wrote, or a backup of a feed.

A saved model is a container with what the estimator knows beside its predictor, and the snapshot of
that. A backup is framed: a line that names the format, the length of the header (4 bytes), the
header (JSON), the rest. Its rest is a snapshot of the feed, framed in the same way, with the
snapshot of the predictor, and then the SHA-256 of all before it.
"""

import json
from hashlib import sha256
from typing import NamedTuple

from online_svm.errors import InvalidSnapshot
from online_svm.storage.container import pack, unpack
from online_svm.storage.state import Header, as_array

BACKUP = b"osvm-backup\n"
SNAPSHOT = b"osvm-snapshot\n"
"""The lines that begin a backup of a feed, and the snapshot in it."""

KIND = "online classifier"
_LENGTH = 4
_DIGEST = 32


class SavedModel(NamedTuple):
    """What a file holds.

    Attributes
    ----------
    notes : dict or None
        What the estimator knew beside its predictor; None of a feed.
    snapshot : bytes
        Of the predictor.
    """

    notes: Header | None
    snapshot: bytes

    def packed(self) -> bytes:
        """Return the bytes of a saved model.

        Examples
        --------
        >>> SavedModel.parse(SavedModel({"labels": [1, 2]}, b"learned").packed())
        SavedModel(notes={'labels': [1, 2]}, snapshot=b'learned')
        """
        return pack({"kind": KIND, "notes": self.notes}, {"predictor": as_array(self.snapshot)})

    @classmethod
    def parse(cls, data: bytes) -> "SavedModel":
        """Return what the bytes of a file hold.

        Raises
        ------
        InvalidSnapshot
            If they are neither a saved model nor a backup, or damaged.
        """
        if data.startswith(BACKUP):
            return cls(None, _of_backup(data))
        header, arrays = unpack(data)
        notes = header.get("notes")
        if header.get("kind") != KIND or "predictor" not in arrays or not isinstance(notes, dict):
            raise InvalidSnapshot("the file holds no saved estimator, nor a backup of a feed")
        return cls(notes, arrays["predictor"].tobytes())


def configuration(snapshot: bytes) -> Header:
    """Return the settings that a snapshot of a predictor was made under.

    Raises
    ------
    InvalidSnapshot
        If it is damaged, or of something else.
    """
    found = unpack(snapshot).header.get("config")
    if not isinstance(found, dict) or "refit_every" not in found:
        raise InvalidSnapshot("the snapshot is of no feed with a model, but of one that combines")
    return found


def _of_backup(data: bytes) -> bytes:
    """Return the snapshot of the predictor in a backup."""
    if sha256(data[:-_DIGEST]).digest() != data[-_DIGEST:]:
        raise InvalidSnapshot("the backup is cut or damaged: its SHA-256 is not the one recorded")
    return _rest(_rest(data[:-_DIGEST], BACKUP), SNAPSHOT)


def _rest(data: bytes, magic: bytes) -> bytes:
    """Return what follows the header of framed bytes, whose format must be known."""
    start = len(magic) + _LENGTH
    length = int.from_bytes(data[len(magic) : start], "big")
    if not data.startswith(magic) or length > len(data) - start:
        raise InvalidSnapshot("the backup is damaged: it lacks a part")
    try:
        known = json.loads(data[start : start + length])["format"]
    except (LookupError, RecursionError, TypeError, ValueError) as error:
        raise InvalidSnapshot(f"the backup is damaged: a header is unreadable ({error})") from error
    if known != 1:
        raise InvalidSnapshot(f"the backup has format {known!r}, which is not known: upgrade")
    return data[start + length :]
