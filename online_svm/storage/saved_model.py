"""Read and write the file of an estimator: a saved model, or the file of a feed."""

import json
import secrets
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from online_svm.config import PredictorConfig, first_error
from online_svm.errors import InvalidSnapshot
from online_svm.storage.recording import opened, predictor_of, put_snapshot, transaction
from online_svm.storage.state import Header, unpack

_MAX_LENGTH = 1 << 26  # characters of the notes


class SavedModel(NamedTuple):
    """The content of a file."""

    notes: Header | None  # data of the estimator besides the predictor; None for a feed
    snapshot: bytes  # newest snapshot of the predictor

    def write(self, path: Path) -> None:
        """Write a saved model, which replaces a file of that name at the end.

        Raises InvalidSnapshot if there is the record of a feed, or what is no regular file.
        """
        _check_replaceable(path)
        # A name of its own: two processes may save to one path.
        partial = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")
        try:
            with opened(partial, "rw") as connection, transaction(connection):
                facts = {"kind": "estimator", "notes": json.dumps(self.notes)}
                connection.executemany("INSERT INTO facts VALUES (?, ?)", facts.items())
                put_snapshot(connection, (0, 0, "0-0", "", "", b""), self.snapshot)
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)

    @classmethod
    def read(cls, path: Path) -> "SavedModel":
        """Read a file.

        Raises InvalidSnapshot if it is no file of this program, is damaged, or holds no model;
        OSError if it cannot be read.
        """
        with opened(path) as connection:
            facts = dict(
                connection.execute(
                    "SELECT name, value FROM facts WHERE name IN ('kind', 'notes') "
                    "AND length(value) < ?",
                    (_MAX_LENGTH,),
                )
            )
            newest = connection.execute("SELECT max(seq) FROM snapshots").fetchone()[0]
            snapshot = b"" if newest is None else predictor_of(connection, newest)
        if facts.get("kind") not in ("estimator", "feed") or not snapshot:
            raise InvalidSnapshot(f"{path}: holds no model yet: back the feed up once more")
        if facts["kind"] == "feed":
            return cls(None, snapshot)
        try:
            notes = json.loads(facts["notes"])
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise InvalidSnapshot(f"{path}: is damaged: its notes are unreadable") from error
        if not isinstance(notes, dict):
            raise InvalidSnapshot(f"{path}: is damaged: its notes are unreadable")
        return cls(notes, snapshot)


def stored_config(snapshot: bytes) -> PredictorConfig:
    """Return the configuration of a predictor from its snapshot.

    Raises InvalidSnapshot if the snapshot is damaged, or of a version with other settings.
    """
    found = unpack(snapshot).header.get("config")
    if not isinstance(found, dict) or "refit_every" not in found:
        raise InvalidSnapshot("the snapshot is not that of a predictor")
    try:
        return PredictorConfig.model_validate(found)
    except ValidationError as error:
        raise InvalidSnapshot(f"made by another version: {first_error(error)}") from None


def _check_replaceable(path: Path) -> None:
    """Raise InvalidSnapshot for the record of a feed, and for a directory or device."""
    if path.exists() and not path.is_file():
        raise InvalidSnapshot(f"{path}: is no regular file")
    kind = None
    with suppress(InvalidSnapshot, OSError), opened(path) as connection:  # any other file may go
        kind = connection.execute("SELECT value FROM facts WHERE name = 'kind'").fetchone()
    if kind == ("feed",):
        raise InvalidSnapshot(f"{path}: is the record of a feed: save to another file")
