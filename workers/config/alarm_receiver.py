"""The receiver of alarms, and the key that signs them, without showing either."""

from pathlib import Path
from urllib.parse import urlsplit

from workers.errors import BadConfiguration


def shown(url: str) -> str:
    """Return the URL without its path and query, which often hold a token.

    Examples
    --------
    >>> shown("https://hooks.example/services/T0/B0/secret?x=1")
    'https://hooks.example/...'
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return "..."
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}/..."


def key(given: str | None, path: Path | None) -> bytes | None:
    """Return the key of the signature, from the setting or from a file; None if there is none.

    Raises
    ------
    BadConfiguration
        If both are given, the file cannot be read, or it does not hold one line.
    """
    if path is None:
        return None if given is None else given.encode()
    if given is not None:
        raise BadConfiguration("give alarm_secret or alarm_secret_file, not both")
    try:
        found = path.read_bytes().strip(b"\r\n")
    except OSError as error:
        raise BadConfiguration(f"setting alarm_secret_file: {path}: {error.strerror}") from None
    if not found or b"\n" in found:
        raise BadConfiguration(f"setting alarm_secret_file: {path}: one line is wanted")
    return found
