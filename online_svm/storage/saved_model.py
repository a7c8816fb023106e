"""Read and write the files of an estimator: a saved model, or a backup of a feed.

A saved model is a container with the estimator's notes and the snapshot of its predictor. A backup
is framed: a line that names the format, the length of the header (4 bytes), the header (JSON), the
payload, and the SHA-256 of all preceding bytes. Its payload is a snapshot of the feed, framed in
the same way but without the SHA-256, whose payload is the snapshot of the predictor.
"""

import json
from hashlib import sha256
from typing import NamedTuple

from pydantic import ValidationError

from online_svm.config import PredictorConfig, first_error
from online_svm.errors import InvalidSnapshot
from online_svm.storage.container import pack, unpack
from online_svm.storage.state import Header, as_array

BACKUP = b"osvm-backup\n"
SNAPSHOT = b"osvm-snapshot\n"  # first lines of a backup and of the snapshot of the feed in it

KIND = "online classifier"
_LENGTH = 4
_DIGEST = 32


class SavedModel(NamedTuple):
    """The content of a file."""

    notes: Header | None  # data of the estimator besides the predictor; None for a backup of a feed
    snapshot: bytes  # snapshot of the predictor

    def packed(self) -> bytes:
        """Return the bytes of a saved model."""
        return pack({"kind": KIND, "notes": self.notes}, {"predictor": as_array(self.snapshot)})

    @classmethod
    def parse(cls, data: bytes) -> "SavedModel":
        """Parse the bytes of a file.

        Raises InvalidSnapshot if the bytes are neither a saved model nor a backup, or are damaged.
        """
        if data.startswith(BACKUP):
            return cls(None, _of_backup(data))
        header, arrays = unpack(data)
        notes = header.get("notes")
        if header.get("kind") != KIND or "predictor" not in arrays or not isinstance(notes, dict):
            raise InvalidSnapshot("the file holds no saved estimator, nor a backup of a feed")
        return cls(notes, arrays["predictor"].tobytes())


def stored_config(snapshot: bytes) -> PredictorConfig:
    """Return the configuration of a predictor from its snapshot.

    Raises InvalidSnapshot if the snapshot is damaged, of a `Combiner`, or of a version with other
    settings.
    """
    found = unpack(snapshot).header.get("config")
    if not isinstance(found, dict) or "refit_every" not in found:
        raise InvalidSnapshot("the snapshot is of no feed with a model, but of one that combines")
    try:
        return PredictorConfig.model_validate(found)
    except ValidationError as error:
        raise InvalidSnapshot(f"made by another version: {first_error(error)}") from None


def _of_backup(data: bytes) -> bytes:
    """Return the snapshot of the predictor in a backup."""
    if sha256(data[:-_DIGEST]).digest() != data[-_DIGEST:]:
        raise InvalidSnapshot("the backup is cut or damaged: its SHA-256 is not the one recorded")
    return _rest(_rest(data[:-_DIGEST], BACKUP), SNAPSHOT)


def _rest(data: bytes, magic: bytes) -> bytes:
    """Return the payload of framed bytes after checking their format."""
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
