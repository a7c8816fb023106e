"""What a file is, and errors about it, named after the file."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from online_svm.errors import InvalidSnapshot
from online_svm.storage.recording import naming
from workers.errors import BadConfiguration


class InvalidRecording(BadConfiguration):
    """A file that is no recording, is damaged, or cannot be read or written."""


@contextmanager
def reporting(path: Path) -> Iterator[None]:
    """Turn errors about a file in the block into InvalidRecording."""
    try:
        with naming(path):
            yield
    except InvalidSnapshot as error:
        raise InvalidRecording(str(error)) from error
    except OSError as error:
        raise InvalidRecording(f"{path}: cannot be opened: {error.strerror or error}") from None


def is_recording(source: str) -> bool:
    """Return whether a source is the file of a feed or of an estimator, by its first bytes.

    Raises InvalidRecording if its name says so, and it is none: it is no feed of this name.
    """
    path = Path(source)
    if path.is_file():
        with path.open("rb") as file:
            if file.read(16) == b"SQLite format 3\0":
                return True
    if path.suffix != ".sqlite":
        return False
    if path.exists():
        raise InvalidRecording(f"{source}: is neither a saved estimator nor a backup of a feed")
    if path.name != source:  # a path, and no name of a feed
        raise InvalidRecording(f"{source}: no such file")
    return False
