"""Retention of each output stream: so many entries, and so many bytes. No I/O.

A commit adds its bytes to a running count. After each 32nd part of the bound a mark is set: the
count, and the last entry it covers. A stream that holds more than its bound is trimmed up to the
oldest mark since which it holds no more. So trimming costs a few additions a commit, and no look at
the stream.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

from workers.config.retention_settings import RetentionSettings
from workers.feed.state_fields import FieldReader, Mark, count, encode_marks, parse_marks

NAMES = ("out", "met", "alarms", "dlq")
"""The output streams, in the order of a commit."""

_PARTS = 32
_ENTRY = 32
"""Bytes that Redis takes for an entry beside its payload, at least."""


class ByteBounds(NamedTuple):
    """Bytes of each output stream to keep; 0 bounds none."""

    out: int = 0
    met: int = 0
    alarms: int = 0
    dlq: int = 0


class Added(NamedTuple):
    """What a commit adds to one stream: bytes as counted here, and the ID of the last entry."""

    size: int
    last: bytes


def counted(payload_bytes: int, entries: int) -> int:
    """Return the bytes that entries count for: what Redis takes for them, and a little more.

    Redis packs entries into nodes of 4 KiB, and takes a fifth more for the parts of nodes that stay
    empty; a fixed part comes to each entry. Measured on Redis 7.0 with payloads of 30 bytes to
    64 KiB, MEMORY USAGE is 0.7 to 1.1 times this.

    Examples
    --------
    >>> counted(720, 1), counted(1450, 10)
    (932, 2132)
    """
    return payload_bytes * 5 // 4 + _ENTRY * entries


@dataclass(frozen=True, slots=True)
class StreamBytes:
    """The count of one stream.

    Attributes
    ----------
    total : int
        Bytes that were written, as far as they were counted.
    marks : tuple of Mark
        Counts and entries, the oldest first. Up to the first one the stream was trimmed. Empty
        before anything was counted.

    Examples
    --------
    >>> stream = StreamBytes()
    >>> for i in range(100):
    ...     stream = stream.after(Added(10, b"%d-0" % i), bound=320)
    >>> stream.kept, stream.marks[0]
    (320, Mark(n=680, cursor=b'67-0'))
    """

    total: int = 0
    marks: tuple[Mark, ...] = ()

    @property
    def kept(self) -> int:
        """Bytes that the stream holds, as far as they were counted."""
        return self.total - self.marks[0].n if self.marks else 0

    def after(self, added: Added | None, bound: int, is_held: bool = False) -> Self:
        """Return the count after a commit, without the marks up to which it trims.

        Parameters
        ----------
        added : Added, optional
            None if the commit adds nothing to the stream.
        bound : int
            Bytes to keep; without one nothing is counted.
        is_held : bool
            Whether nothing may be trimmed by the commit.
        """
        if not bound or added is None:
            return self
        before = self.marks or (Mark(self.total),)
        total = self.total + added.size
        first = 0 if is_held else _first_within(before, total, bound)
        marks = before[first:]
        if total - marks[-1].n >= bound // _PARTS:
            marks = (*marks, Mark(total, added.last))
        return type(self)(total, marks)

    def room_from(self, bound: int, is_done: Callable[[bytes], bool]) -> Self:
        """Return the count without what may go: entries up to a mark that are done with.

        Parameters
        ----------
        bound : int
            Nothing goes that keeps the stream below it.
        is_done : callable
            Whether the entry of a mark, and so all before it, may go.
        """
        wanted = next((i for i, mark in enumerate(self.marks) if self.total - mark.n < bound), 0)
        done = [i for i in range(1, wanted + 1) if is_done(self.marks[i].cursor)]
        return replace(self, marks=self.marks[max(done, default=0) :])


def _first_within(marks: Sequence[Mark], total: int, bound: int) -> int:
    """Return the place of the oldest mark since which at most `bound` bytes were written.

    The last place where there is none: what one commit wrote is never trimmed by it.
    """
    if total - bound <= marks[0].n:  # nearly always
        return 0
    found = bisect_left(marks, total - bound, key=lambda mark: mark.n)
    return min(found, len(marks) - 1)


@dataclass(frozen=True, slots=True)
class KeptBytes:
    """The counts of the four output streams."""

    streams: tuple[StreamBytes, StreamBytes, StreamBytes, StreamBytes] = (
        StreamBytes(),
        StreamBytes(),
        StreamBytes(),
        StreamBytes(),
    )

    @classmethod
    def read(cls, field: FieldReader) -> Self:
        """Return the counts that `st` holds; see `changes`."""
        totals = field("written", parse_four, b"0 0 0 0")
        marks = [field(f"marks_{name}", parse_marks, b"") for name in NAMES]
        out, met, alarms, dlq = map(StreamBytes, totals, marks)
        return cls((out, met, alarms, dlq))

    def after(
        self, added: Sequence[Added | None], bounds: ByteBounds, is_held: bool = False
    ) -> Self:
        """Return the counts after a commit; all but dead letters may be held by a consumer."""
        held = (is_held, is_held, is_held, False)
        out, met, alarms, dlq = map(StreamBytes.after, self.streams, added, bounds, held)
        return type(self)((out, met, alarms, dlq))

    def with_stream(self, place: int, stream: StreamBytes) -> Self:
        """Return the counts with another one at a place of `NAMES`."""
        out, met, alarms, dlq = (
            stream if i == place else each for i, each in enumerate(self.streams)
        )
        return replace(self, streams=(out, met, alarms, dlq))

    def trimmed_since(self, before: Self) -> list[bytes]:
        """Return, of each stream, the entry up to which it goes now; empty if it stays."""
        return [
            now.marks[0].cursor if was.marks and now.marks[0] != was.marks[0] else b""
            for now, was in zip(self.streams, before.streams, strict=True)
        ]

    def changes(self, stored: Self) -> dict[str, bytes]:
        """Return the fields of `st` that differ from what is stored."""
        found = {}
        totals = [stream.total for stream in self.streams]
        if totals != [stream.total for stream in stored.streams]:
            found["written"] = b"%d %d %d %d" % tuple(totals)
        for name, now, was in zip(NAMES, self.streams, stored.streams, strict=True):
            if now.marks is not was.marks and now.marks != was.marks:
                found[f"marks_{name}"] = encode_marks(now.marks)
        return found


def parse_four(value: bytes) -> tuple[int, int, int, int]:
    """Return four numbers: one of each output stream.

    Examples
    --------
    >>> parse_four(b"67108864 0 0 12")
    (67108864, 0, 0, 12)
    """
    parts = value.split(b" ")
    if len(parts) != len(NAMES):
        raise ValueError("not four numbers")
    out, met, alarms, dlq = map(count, parts)
    return out, met, alarms, dlq


DOWNSTREAM = "downstream"
"""Consumer group of `out` that the policy `block` waits for."""

_DEFAULT = RetentionSettings()

_BESIDE = 4
"""`met`, and `dlq`, have this part of the bytes of `out`."""


@dataclass(frozen=True, slots=True)
class Retention:
    """What is kept of the output streams, about; 0 bounds none.

    Both bounds of a stream hold: the one that is reached first trims it.

    Attributes
    ----------
    out, met, alarms, dlq : int
        Entries of each stream.
    out_bytes, met_bytes, dlq_bytes : int
        Bytes of each stream.
    is_held : bool
        Whether commits trim nothing of answers, reports and alarms, since a consumer has to
        acknowledge answers first.
    """

    out: int = _DEFAULT.retain_out
    met: int = 100_000
    alarms: int = 100_000
    dlq: int = 1_000_000
    out_bytes: int = _DEFAULT.retain_bytes
    met_bytes: int = _DEFAULT.retain_bytes // _BESIDE
    dlq_bytes: int = _DEFAULT.retain_bytes // _BESIDE
    is_held: bool = False

    @classmethod
    def of(cls, settings: RetentionSettings) -> Self:
        """Return what these settings keep.

        Examples
        --------
        >>> kept = Retention.of(RetentionSettings(retain_out=500, retain_bytes=4096))
        >>> kept.entries, kept.bytes.met
        ((500, 100000, 100000, 1000000), 1024)
        """
        beside = settings.retain_bytes // _BESIDE
        return cls(
            out=settings.retain_out,
            out_bytes=settings.retain_bytes,
            met_bytes=beside,
            dlq_bytes=beside,
            is_held=settings.downstream == "block",
        )

    @property
    def entries(self) -> tuple[int, int, int, int]:
        """Entries of `out`, `met`, `alarms` and `dlq`."""
        return self.out, self.met, self.alarms, self.dlq

    @property
    def bytes(self) -> ByteBounds:
        """Bytes of each stream."""
        return ByteBounds(self.out_bytes, self.met_bytes, 0, self.dlq_bytes)
