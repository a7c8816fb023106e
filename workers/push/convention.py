"""The convention of a feed's tables: decimal sign, order of dates, encoding.

It is stored with the feed for the next table, as the only entry of a stream: a producer may append
to its streams, and nothing else.
"""

import orjson
from pydantic import BaseModel, ConfigDict, ValidationError

from workers.broker.feed_reader import FeedReader
from workers.errors import AccessDenied, StateLost
from workers.feed.keys import FIELD
from workers.push.cell_text import Decimal, Order, TimeUnit


class Convention(BaseModel):
    """What holds for every table of a feed; it is stored with the feed."""

    model_config = ConfigDict(frozen=True)

    decimal: Decimal | None = None
    order: Order | None = None  # of day, month and year
    encoding: str | None = None  # of text that is not Unicode
    label_case: str | None = None
    time_unit: TimeUnit | None = None  # of numbers in the column of the time
    zone: str | None = None  # of times without a zone, as Europe/Berlin
    texts: tuple[str, ...] = ()  # columns that are sent as they are
    own_decimal: dict[str, Decimal] = {}  # of columns with another sign than `decimal`
    own_order: dict[str, Order] = {}
    units: dict[str, str] = {}  # currencies of columns, or %


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
        reader.put_only_entry(reader.keys.table, FIELD, payload)
    except AccessDenied:
        return False
    return True
