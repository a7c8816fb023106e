"""The lag of a feed: how many entries of its input have no answer yet, and the age of the oldest.

`status`, the metrics of one feed and of many and the page all show what is measured here. The
entries are those of the stream where it holds nothing that is answered. Else, on Redis 7, which
counts what a stream ever got, they are

    (added to the stream, ever) - (gone before the feed began) - (answered)

and on an earlier Redis they are read and counted, up to `stream_info.COUNTED`.
"""

import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import NamedTuple

from workers.broker.feed_reader import FeedReader
from workers.broker.pipeline import Sent
from workers.errors import AccessDenied, StateLost
from workers.feed.keys import FeedKeys
from workers.feed.position import LAST_ID, parse_id
from workers.feed.state_fields import PENDING, PendingLabels, count, entry_id, gone
from workers.reading.answers import stored_values
from workers.reading.stream_info import StreamInfo, backlog

_FIELDS = ("cursor", "seq", "gone", "joined", PENDING)
_BEFORE_THE_FIRST = (b"0-0", b"0", b"- 0-0")


class Lag(NamedTuple):
    """How far a feed lags.

    Attributes
    ----------
    entries : int
        Input entries without an answer.
    is_at_least : bool
        Whether there may be more: they were counted up to `stream_info.COUNTED`.
    seconds : float
        Age of the oldest of them, by its entry ID; 0 where none waits.
    labels : PendingLabels or None
        Answered entries that wait for their labels; None where labels come with their examples.
    """

    entries: int
    is_at_least: bool
    seconds: float
    labels: PendingLabels | None = None


def lag(reader: FeedReader, source: str | None = None) -> Lag:
    """Return how far a feed lags; a feed that no worker has begun, behind all of its input.

    Parameters
    ----------
    reader : FeedReader
    source : str, optional
        Of a combination that has not begun: the feed whose answers it answers in order.

    Raises
    ------
    StateLost
        If the position of the feed is damaged, or a key holds another type.
    """
    found = _Measurement(reader, source)
    found.ask()
    return found.lag()


def lags(
    readers: Sequence[FeedReader], sources: Mapping[str, str | None] = MappingProxyType({})
) -> dict[str, Lag]:
    """Return how far feeds lag, in two rounds of commands for all of them; `sources` as for `lag`.

    A feed whose position is damaged, or a key of which holds another type, is left out.
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
    """The commands that tell the lag of one feed.

    They are sent in two rounds, so that those for many feeds can be sent before a reply is read:
    the first when this is made, the second by `ask`.
    """

    def __init__(self, reader: FeedReader, source: str | None = None) -> None:
        self.feed, self._reader, self._source = reader.keys.feed, reader, source
        self._stored = reader.request("HMGET", reader.keys.state, *_FIELDS)
        self._type = reader.request("TYPE", reader.keys.input)
        self._info: Sent | None = None
        self._oldest: Sent | None = None

    def ask(self) -> None:
        """Read where the feed stands; ask what its input holds after that."""
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
            self._info = reader.request("XINFO", "STREAM", self._stream)
        if self._cursor != LAST_ID:  # no entry can follow that, and Redis refuses the range
            after = b"(" + self._cursor
            self._oldest = reader.request("XRANGE", self._stream, after, "+", "COUNT", 1)

    def lag(self) -> Lag:
        """Return the lag, from the replies."""
        info = self._told()
        oldest = None if self._oldest is None else self._reader.reply(self._oldest)
        if not oldest:
            return Lag(0, False, 0.0, self._labels)
        seconds = max(time.time() - parse_id(oldest[0][0])[0] / 1000, 0.0)
        entries, is_at_least = self._entries(info)
        return Lag(max(entries, 1), is_at_least, seconds, self._labels)

    def _told(self) -> StreamInfo | None:
        """Return what Redis says of the input; None where there is none, or it may not say."""
        if self._info is None:
            return None
        try:
            return StreamInfo.parse(self._reader.reply(self._info))
        except AccessDenied:
            return None

    def _entries(self, info: StreamInfo | None) -> tuple[int, bool]:
        if self._source is not None:
            answered = self._reader.call("HGET", FeedKeys(self._source).state, "seq")
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
    """Return the cursor, the answered entries, and what was gone before the feed began.

    Raises
    ------
    StateLost
        If one of them is damaged.
    """
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
