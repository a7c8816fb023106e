"""Lag and usage of a feed: entries that wait for an answer, consumer groups, memory in Redis.

The lag is the number of input entries without an answer, and the age of the oldest.

If the input stream holds no answered entry, the lag is its length. Otherwise Redis 7, which counts
the entries ever added to a stream, gives

    (ever added to the stream) - (gone before the feed began) - (answered)

On an earlier Redis the entries are read and counted, up to `MAX_COUNTED`.
"""

import re
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from typing import NamedTuple, ParamSpec, Self, TypeVar

from workers.broker import commands
from workers.broker.feed_reader import PAGE, FeedReader
from workers.broker.pipeline import PendingReply
from workers.broker.streams import StreamInfo
from workers.errors import AccessDenied, StateLost
from workers.feed.keys import FeedKeys
from workers.feed.position import LAST_ID, parse_id
from workers.feed.retention import NAMES, Retention
from workers.feed.state import FeedState, Publication
from workers.feed.state_fields import PENDING, PendingLabels, count, entry_id, gone

_FIELDS = ("cursor", "seq", "gone", PENDING)
_INITIAL = (b"0-0", b"0", b"- 0-0")  # cursor, seq and gone of a feed that has not begun

MAX_COUNTED = 1000
"""Entries that are read to count the waiting ones; push has its own limit."""


class Lag(NamedTuple):
    """The lag of a feed."""

    entries: int  # input entries without an answer
    is_at_least: bool  # whether `entries` is a lower bound: counting stopped
    seconds: float  # age of the oldest, by its entry ID; 0 if none waits
    labels: PendingLabels | None = None  # None if labels come with their examples


NO_LAG = Lag(0, False, 0.0)


def lag(reader: FeedReader) -> Lag:
    """Return the lag of a feed; if no worker has started it, all of its input waits.

    StateLost: the position of the feed is damaged, or a key holds another type.
    """
    measurement = _Measurement(reader)
    measurement.request_input()
    return measurement.lag()


def lags(readers: Sequence[FeedReader]) -> dict[str, Lag]:
    """Return the lags of feeds, with two pipelined rounds of commands.

    A feed with a damaged position, or with a key of another type, is left out.
    """
    measurements = [_Measurement(reader) for reader in readers]
    requested = []
    for measurement in measurements:
        with suppress(StateLost):
            measurement.request_input()
            requested.append(measurement)
    found = {}
    for measurement in requested:
        with suppress(StateLost):
            found[measurement.feed] = measurement.lag()
    return found


class _Measurement:
    """Measures the lag of one feed with two rounds of commands.

    The constructor sends the first round and `request_input` the second, so that the commands for
    many feeds are sent before a reply is read.
    """

    def __init__(self, reader: FeedReader) -> None:
        self.feed, self._reader = reader.keys.feed, reader
        self._stored = reader.request(*commands.fields(reader.keys.state, *_FIELDS))
        self._type = reader.request(*commands.key_type(reader.keys.input))
        self._info: PendingReply | None = None
        self._oldest: PendingReply | None = None

    def request_input(self) -> None:
        """Read the position of the feed; request its input after that."""
        reader, stored = self._reader, self._reader.reply(self._stored)
        has_stream = reader.reply(self._type) == b"stream"
        self._cursor, self._seq, gone_before = _position(stored[:3], reader.keys)
        self._labels = _labels(stored[3], reader.keys)
        number = re.match(rb"\d+", gone_before)
        self._gone_before = None if number is None else int(number[0])
        if has_stream:
            self._info = reader.request(*commands.stream_info(reader.keys.input))
        if self._cursor != LAST_ID:  # nothing can follow it, and Redis refuses the range
            after = commands.after(self._cursor)
            self._oldest = reader.request(*commands.entries(reader.keys.input, after, count=1))

    def lag(self) -> Lag:
        """Read the replies, and return the lag."""
        info = self._stream_info()
        oldest = None if self._oldest is None else self._reader.reply(self._oldest)
        if not oldest:
            return NO_LAG._replace(labels=self._labels)
        seconds = max(time.time() - parse_id(oldest[0][0])[0] / 1000, 0.0)
        entries, is_at_least = self._entries(info)
        return Lag(max(entries, 1), is_at_least, seconds, self._labels)

    def _stream_info(self) -> StreamInfo | None:
        """Return the counters of the input; None without input, or without permission."""
        if self._info is None:
            return None
        try:
            return StreamInfo.parse(self._reader.reply(self._info))
        except AccessDenied:
            return None

    def _entries(self, info: StreamInfo | None) -> tuple[int, bool]:
        if info is not None:
            if info.first is not None and parse_id(info.first[0]) > parse_id(self._cursor):
                return info.length, False
            if info.added is not None and self._gone_before is not None:
                return min(info.added - self._gone_before - self._seq, info.length), False
        return backlog(self._reader, self._reader.keys.input, self._cursor)[:2]


def _labels(stored: bytes | None, keys: FeedKeys) -> PendingLabels | None:
    try:
        return None if stored is None else PendingLabels.parse(stored)
    except ValueError as error:
        raise damaged(error, keys) from None


def _position(stored: Sequence[bytes | None], keys: FeedKeys) -> tuple[bytes, int, bytes]:
    """Return the cursor, the answered entries, and the entries gone before the feed began."""
    cursor, seq, gone_before = (
        default if value is None else value for value, default in zip(stored, _INITIAL, strict=True)
    )
    try:
        return entry_id(cursor), count(seq), gone(gone_before)
    except ValueError as error:
        raise damaged(error, keys) from None


def damaged(error: ValueError, keys: FeedKeys) -> StateLost:
    """Return the error for a field of `st` that cannot be read."""
    return StateLost(f"{keys.state} is damaged: {error}; online-svm verify {keys.feed} tells more")


class Backlog(NamedTuple):
    """The entries of a stream after an ID."""

    entries: int
    is_at_least: bool  # whether `entries` is a lower bound: counting stopped
    size: int  # bytes of their field names and values


def backlog(
    reader: FeedReader,
    stream: str,
    after: bytes,
    max_entries: float = MAX_COUNTED,
    max_bytes: float = inf,
) -> Backlog:
    """Count the entries after an ID; stop at a number of entries or bytes."""
    entries = size = 0
    for page in reader.pages(stream, after, count=int(min(max_entries, PAGE))):
        for _, fields in page:
            entries += 1
            size += sum(map(len, fields))
            if entries >= max_entries or size >= max_bytes:
                return Backlog(entries, True, size)
    return Backlog(entries, False, size)


P = ParamSpec("P")
T = TypeVar("T")

_SAMPLES = 5  # nodes of a stream that MEMORY USAGE measures: microseconds for any length


def permitted(command: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
    """Return the reply of a command; None if this user has no permission for it."""
    try:
        return command(*args, **kwargs)
    except AccessDenied:
        return None


@dataclass(frozen=True, slots=True)
class ConsumerGroup:
    """A consumer group of `out`."""

    name: str  # by default `downstream` for `online-svm backup --follow`
    upto: str  # ID of the last entry delivered to it; a recording has all up to it on disk
    pending: int  # entries delivered to it but not acknowledged
    behind: int  # entries after `upto`
    behind_is_at_least: bool  # whether `behind` is a lower bound: counting stopped


def consumer_groups(reader: FeedReader) -> list[ConsumerGroup]:
    """Return the consumer groups of `out`; none without permission."""
    out = reader.keys.out
    if not reader.has_stream(out):
        return []
    found = []
    for group in permitted(reader.groups, out) or ():
        upto = group.last_delivered
        behind, is_at_least = (
            backlog(reader, out, upto)[:2] if group.lag is None else (group.lag, False)
        )
        name = group.name.decode(errors="backslashreplace")
        found.append(ConsumerGroup(name, upto.decode(), group.pending, behind, is_at_least))
    return found


@dataclass(frozen=True, slots=True)
class PublishedStatus:
    """The newest published state of a feed."""

    n: int  # examples learned in the state
    size: int  # bytes
    behind: int  # examples learned since it was published
    age: float | None  # seconds since then, by the clock of Redis; None where it cannot be read

    @classmethod
    def of(cls, reader: FeedReader, n: int, found: Publication) -> Self:
        """Return the status of a published state of a feed with `n` examples learned."""
        return cls(found.n, found.size, n - found.n, _age(reader, found))


def _age(reader: FeedReader, published: Publication) -> float | None:
    now = permitted(reader.server_time)
    return None if now is None else max(0.0, (now * 1000 - published.at) / 1000)


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Memory of the keys of a feed, by kind: `in`, output streams, `snapshots`, `published`."""

    bytes: dict[str, int | None]  # an estimate for streams; None without permission
    bounds: dict[str, int]  # default bound of each output stream, in bytes


NO_MEMORY = MemoryUse({}, {})


def memory_use(
    reader: FeedReader, state: FeedState | None, published: Publication | None
) -> MemoryUse:
    """Return the memory of a feed's keys, by one sampled MEMORY USAGE each."""
    keys = reader.keys
    pointers = () if state is None else state.snapshots
    kinds: dict[str, Iterable[str]] = {
        "in": [keys.input],
        **{name: [key] for name, key in zip(NAMES, keys.outputs, strict=True)},
        "snapshots": [key for pointer in pointers for key in pointer.keys(keys)],
        "published": [] if published is None else published.keys(keys),
    }
    bounds = {} if state is None else Retention().bytes._asdict()
    return MemoryUse(
        {kind: _size(reader, held) for kind, held in kinds.items()},
        {name: bound for name, bound in bounds.items() if bound},
    )


def _size(reader: FeedReader, keys: Iterable[str]) -> int | None:
    total = 0
    for key in keys:
        size = permitted(reader.memory, key, _SAMPLES)
        if size is None and reader.has_stream(key):
            return None
        total += size or 0
    return total
