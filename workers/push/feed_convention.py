"""The convention of the tables of a feed, stored with the feed for the next table.

It is the only entry of a stream, because a producer may append to its streams and nothing else.
"""

import orjson
from pydantic import ValidationError

from workers.broker.feed_reader import FeedReader
from workers.errors import AccessDenied, StateLost
from workers.feed.keys import FIELD
from workers.push.convention import Convention

MAX_BYTES = 1 << 20  # of a convention that is stored


def stored_convention(reader: FeedReader) -> Convention | None:
    """Return the stored convention of a feed; None if there is none, or this user may not read it.

    Raises StateLost if it is damaged.
    """
    try:
        entries = reader.entries(reader.keys.table)
    except AccessDenied:
        return None
    if not entries:
        return None
    try:
        return Convention.model_validate(orjson.loads(entries[-1][1][1]))
    except (ValidationError, ValueError, IndexError):
        raise StateLost(
            f"{reader.keys.table} is damaged: delete this key, and push again"
        ) from None


def readable_convention(reader: FeedReader) -> Convention | None:
    """Return the stored convention of a feed; None if there is none, or it cannot be read."""
    try:
        return stored_convention(reader)
    except StateLost:
        return None


def keep_convention(reader: FeedReader, convention: Convention | None) -> None:
    """Store a convention that a feed had elsewhere, unless the feed has one by now."""
    if convention is not None and readable_convention(reader) is None:
        store_convention(reader, convention)


def store_convention(reader: FeedReader, convention: Convention) -> bool:
    """Store the convention of a feed; return False if it is too large, or this user may not."""
    payload = convention.model_dump_json(exclude_defaults=True)
    if len(payload) > MAX_BYTES:
        return False
    try:
        reader.call("XADD", reader.keys.table, "MAXLEN", "=", 1, "*", FIELD, payload)
    except AccessDenied:
        return False
    return True
