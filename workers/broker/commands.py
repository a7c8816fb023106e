"""Build the commands that read and append entries, and load the Lua scripts of `scripts/`.

The header of each script lists its keys, arguments and replies.
"""

from collections.abc import Sequence
from hashlib import sha1
from importlib.resources import files

from workers.broker.pipeline import Argument

Command = tuple[Argument, ...]

RANGE, REVERSED_RANGE, LENGTH, KEY_TYPE = "XRANGE", "XREVRANGE", "XLEN", "TYPE"
ALL_FIELDS, SOME_FIELDS = "HGETALL", "HMGET"
"""Commands that a recording answers as Redis does."""


def append(
    stream: str, fields: Sequence[Argument], entry_id: bytes = b"*", maxlen: int | None = None
) -> Command:
    """Append an entry; trim the stream to about `maxlen` entries."""
    trimmed: Command = () if maxlen is None else ("MAXLEN", "~", maxlen)
    return "XADD", stream, *trimmed, entry_id, *fields


def entries(
    stream: str, first: bytes = b"-", last: bytes = b"+", count: int | None = None
) -> Command:
    """Read the oldest entries of a range; for an exclusive bound, see `after`."""
    return RANGE, stream, first, last, *_count(count)


def last_entries(stream: str, count: int, first: bytes = b"-", last: bytes = b"+") -> Command:
    """Read the last entries of a range, newest first."""
    return REVERSED_RANGE, stream, last, first, *_count(count)


def read_after(
    cursors: Sequence[tuple[str, bytes]], count: int | None = None, block_ms: int | None = None
) -> Command:
    """Read the entries after each stream's cursor; wait up to `block_ms` for the first.

    Examples
    --------
    >>> read_after([("osvm:{f}:in", b"0-0")], count=9)
    ('XREAD', 'COUNT', 9, 'STREAMS', 'osvm:{f}:in', b'0-0')
    """
    block: Command = () if block_ms is None else ("BLOCK", block_ms)
    keys, ids = zip(*cursors, strict=True)
    return "XREAD", *_count(count), *block, "STREAMS", *keys, *ids


def stream_info(stream: str) -> Command:
    """Read what `streams.StreamInfo` holds."""
    return "XINFO", "STREAM", stream


def fields(key: str, *names: str) -> Command:
    """Read some fields of a hash."""
    return SOME_FIELDS, key, *names


def field(key: str, name: str) -> Command:
    """Read one field of a hash."""
    return "HGET", key, name


def all_fields(key: str) -> Command:
    """Read all fields of a hash."""
    return ALL_FIELDS, key


def key_type(key: str) -> Command:
    """Read the type of a key; `none` if it does not exist."""
    return KEY_TYPE, key


def after(entry_id: bytes) -> bytes:
    """Return an exclusive bound of a range: the first (or last) entry is next to this ID."""
    return b"(" + entry_id


def _count(count: int | None) -> Command:
    return () if count is None else ("COUNT", count)


_FILES = files("workers.broker") / "scripts"


class Script:
    """A Lua script, its SHA-1 for EVALSHA, and the name of its failpoints."""

    def __init__(self, text: str, name: str = "script") -> None:
        self.text, self.name = text, name
        self.sha1 = sha1(text.encode(), usedforsecurity=False).hexdigest()

    @classmethod
    def load(cls, *parts: str, name: str = "") -> "Script":
        """Join files to one script. Its failpoints are named `name`, or as the last file."""
        text = "".join((_FILES / f"{part}.lua").read_text("utf-8") for part in parts)
        return cls(text, name or parts[-1])
