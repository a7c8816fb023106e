"""The lag of a feed: the number of input entries without an answer, and the age of the oldest.

It is the length of the stream if that holds no answered entry. Otherwise Redis 7, which counts the
entries that a stream ever got, gives

    (ever added to the stream) - (gone before the feed began) - (answered)

and on an earlier Redis the entries are read and counted, up to `MAX_COUNTED`.
"""

import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import inf
from types import MappingProxyType
from typing import NamedTuple

from workers.broker import commands
from workers.broker.feed_reader import PAGE, FeedReader
from workers.broker.pipeline import PendingReply
from workers.broker.streams import StreamInfo
from workers.errors import AccessDenied, StateLost
from workers.feed.keys import FeedKeys
from workers.feed.position import LAST_ID, parse_id
from workers.feed.state_fields import PENDING, PendingLabels, count, entry_id, gone
from workers.reading.answers import stored_values

_FIELDS = ("cursor", "seq", "gone", "joined", PENDING)
_BEFORE_THE_FIRST = (b"0-0", b"0", b"- 0-0")


MAX_COUNTED = 1000
"""Entries that are read to count the waiting ones; push reads up to its own limit."""


class Lag(NamedTuple):
    """The lag of a feed."""

    entries: int  # input entries without an answer
    is_at_least: bool  # whether there may be more: they were counted up to a bound
    seconds: float  # age of the oldest, by its entry ID; 0 if none waits
    labels: PendingLabels | None = None  # awaited ones; None if labels come with their examples


NO_LAG = Lag(0, False, 0.0)


def lag(reader: FeedReader, source: str | None = None) -> Lag:
    """Return the lag of a feed; if no worker has begun it, all of its input waits.

    A combination that has not begun needs the `source` whose answers it answers in order.
    StateLost: the position of the feed is damaged, or a key holds another type.
    """
    found = _Measurement(reader, source)
    found.ask()
    return found.lag()


def lags(
    readers: Sequence[FeedReader], sources: Mapping[str, str | None] = MappingProxyType({})
) -> dict[str, Lag]:
    """Return the lags of feeds, in two rounds of commands for all of them; `sources` as for `lag`.

    A feed with a damaged position, or with a key of another type, is left out.
    """
    asked = [_Measurement(reader, sources.get(reader.keys.feed)) for reader in readers]
    damaged = set()
    for one in asked:
        try:
            one.ask()
        except StateLost:
            damaged.add(one.feed)
    found = {}
    for one in asked:
        if one.feed not in damaged:
            with suppress(StateLost):
                found[one.feed] = one.lag()
    return found


class _Measurement:
    """The commands for the lag of one feed, in two rounds: when this is made, and by `ask`.

    So the commands for many feeds can be sent before a reply is read.
    """

    def __init__(self, reader: FeedReader, source: str | None = None) -> None:
        self.feed, self._reader, self._source = reader.keys.feed, reader, source
        self._stored = reader.request(*commands.fields(reader.keys.state, *_FIELDS))
        self._type = reader.request(*commands.key_type(reader.keys.input))
        self._info: PendingReply | None = None
        self._oldest: PendingReply | None = None

    def ask(self) -> None:
        """Read the position of the feed; ask for its input after that."""
        reader, stored = self._reader, self._reader.reply(self._stored)
        has_stream = reader.reply(self._type) == b"stream"
        self._cursor, self._seq, before = _position(stored[:3], reader.keys)
        self._labels = _labels(stored[4], reader.keys)
        number = re.match(rb"\d+", before)
        self._before = None if number is None else int(number[0])
        if stored[3] is not None and self._source is None:
            feeds = stored_values(reader).get("join", {}).get("feeds")
            self._source = feeds[0] if feeds else None
        self._stream = reader.keys.input
        if self._source is not None:
            self._stream = FeedKeys(self._source).out
        elif has_stream:
            self._info = reader.request(*commands.stream_info(self._stream))
        if self._cursor != LAST_ID:  # no entry can follow that, and Redis refuses the range
            after = commands.after(self._cursor)
            self._oldest = reader.request(*commands.entries(self._stream, after, count=1))

    def lag(self) -> Lag:
        """Return the lag, from the replies."""
        info = self._stream_info()
        oldest = None if self._oldest is None else self._reader.reply(self._oldest)
        if not oldest:
            return NO_LAG._replace(labels=self._labels)
        seconds = max(time.time() - parse_id(oldest[0][0])[0] / 1000, 0.0)
        entries, is_at_least = self._entries(info)
        return Lag(max(entries, 1), is_at_least, seconds, self._labels)

    def _stream_info(self) -> StreamInfo | None:
        """Return the reply about the input; None without input, or if this user may not ask."""
        if self._info is None:
            return None
        try:
            return StreamInfo.parse(self._reader.reply(self._info))
        except AccessDenied:
            return None

    def _entries(self, info: StreamInfo | None) -> tuple[int, bool]:
        if self._source is not None:
            answered = self._reader.call(*commands.field(FeedKeys(self._source).state, "seq"))
            return int(answered or 0) - self._seq, False
        if info is not None:
            if info.first is not None and parse_id(info.first[0]) > parse_id(self._cursor):
                return info.length, False
            if info.added is not None and self._before is not None:
                return min(info.added - self._before - self._seq, info.length), False
        return backlog(self._reader, self._stream, self._cursor)[:2]


def _labels(stored: bytes | None, keys: FeedKeys) -> PendingLabels | None:
    try:
        return None if stored is None else PendingLabels.parse(stored)
    except ValueError as error:
        raise damaged(error, keys) from None


def _position(stored: Sequence[bytes | None], keys: FeedKeys) -> tuple[bytes, int, bytes]:
    """Return the cursor, the answered entries, and the entries gone before the feed began."""
    given = (
        default if value is None else value
        for value, default in zip(stored, _BEFORE_THE_FIRST, strict=True)
    )
    cursor, seq, before = given
    try:
        return entry_id(cursor), count(seq), gone(before)
    except ValueError as error:
        raise damaged(error, keys) from None


def damaged(error: ValueError, keys: FeedKeys) -> StateLost:
    """Return the error for a field of `st` that cannot be read."""
    return StateLost(f"{keys.state} is damaged: {error}; online-svm verify {keys.feed} tells more")


class Backlog(NamedTuple):
    """The entries of a stream after an ID."""

    entries: int
    is_at_least: bool  # whether there may be more: counting stopped
    size: int  # bytes of their field names and values


def backlog(
    reader: FeedReader,
    stream: str,
    after: bytes,
    most: float = MAX_COUNTED,
    most_bytes: float = inf,
) -> Backlog:
    """Count the entries after an ID, up to so many entries or bytes."""
    entries = size = 0
    for page in reader.pages(stream, after, count=int(min(most, PAGE))):
        for _, fields in page:
            entries += 1
            size += sum(map(len, fields))
            if entries >= most or size >= most_bytes:
                return Backlog(entries, True, size)
    return Backlog(entries, False, size)
