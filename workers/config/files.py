"""Read small regular files, and TOML files, whose cost is bounded before they are parsed."""

import os
import stat
import tomllib
from pathlib import Path
from typing import Any

from workers.errors import BadConfiguration


def read_regular(path: Path, most: int) -> bytes:
    """Return the content of a file, at most `most` + 1 bytes of it.

    Raises OSError, with a reason as `strerror`, if it cannot be read or is no regular file.
    """
    # A pipe without a writer would block the open.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(0, "it is no regular file")
        with os.fdopen(descriptor, "rb", closefd=False) as source:
            return source.read(most + 1)
    finally:
        os.close(descriptor)


_MAX_FILE_BYTES = 1 << 20
_MAX_DOTS = 32  # in a key: the parser follows the whole name of a table for each line in it


def read_toml(path: Path, may_quote: bool = True) -> dict[str, Any]:
    """Return the content of a TOML file.

    Raises BadConfiguration if it cannot be read, is large, or is no TOML. The message has the
    parser's reason if it `may_quote` the file.
    """
    try:
        data = read_regular(path, _MAX_FILE_BYTES)
    except OSError as error:
        raise BadConfiguration(f"{path}: cannot be read: {error.strerror or error}") from None
    if len(data) > _MAX_FILE_BYTES:
        raise BadConfiguration(f"{path}: more than {_MAX_FILE_BYTES:,} bytes; is it another file?")
    try:
        text = data.decode()
        if any(line.partition("=")[0].count(".") > _MAX_DOTS for line in text.splitlines()):
            raise BadConfiguration(f"{path}: not TOML that can be used: a key of many parts")
        return tomllib.loads(text)
    except RecursionError:
        raise BadConfiguration(f"{path}: not TOML that can be used: nested too deeply") from None
    except ValueError as error:  # also a number of 5,000 digits
        reason = f": {str(error)[:200]}" if may_quote else ""
        raise BadConfiguration(f"{path}: not TOML{reason}") from None
