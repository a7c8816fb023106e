"""Retention of the output streams by entries and by bytes, and of the input. No I/O.

Bytes: each commit adds to a running count per stream. Each time the count has grown by 1/32 of the
bound, a mark is set: the count, and the last entry that it includes. A stream over its bound is
trimmed up to the oldest mark after which it fits. So trimming needs no reads, and costs a few
additions per commit.

Input: at least the last `window` learned examples are kept. Redis trims by ID, and rejected entries
and duplicates are not learned; so there are marks of the input, too: a number of learned examples,
and the cursor at that number. Input is trimmed up to the newest mark that is a whole window back.
Marks are dropped if their neighbours are within an eighth of the window.

The state stores the retention: a worker that is started without an option keeps the stored value.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

from pydantic import ValidationError

from workers.config.retention_settings import RetentionSettings
from workers.feed.position import parse_id
from workers.feed.state_fields import FieldReader, Mark, count, encode_marks, parse_marks

NAMES = ("out", "met", "alarms", "dlq")  # the output streams, in the order of a commit

_MARKS_PER_BOUND = 32
_ENTRY_OVERHEAD_BYTES = 32
"""Lower bound of the bytes that Redis needs for an entry besides its payload."""


class ByteBounds(NamedTuple):
    """Bytes of each output stream to keep; 0 is no bound."""

    out: int = 0
    met: int = 0
    alarms: int = 0
    dlq: int = 0


class Added(NamedTuple):
    """The bytes that a commit adds to one stream, and the ID of its last entry."""

    size: int
    last: bytes


def counted(payload_bytes: int, entries: int) -> int:
    """Estimate the memory of entries in Redis.

    Redis packs entries into nodes of 4 KiB, whose unused parts add about a fifth; each entry has a
    fixed overhead. On Redis 7.0, with payloads of 30 bytes to 64 KiB, MEMORY USAGE is 0.7 to 1.1
    times this estimate.

    Examples
    --------
    >>> counted(720, 1), counted(1450, 10)
    (932, 2132)
    """
    return payload_bytes * 5 // 4 + _ENTRY_OVERHEAD_BYTES * entries


@dataclass(frozen=True, slots=True)
class StreamBytes:
    """The running count of one stream, and its marks."""

    total: int = 0  # bytes written since counting began
    # The oldest first; the stream is trimmed up to the first. Empty before anything is counted.
    marks: tuple[Mark, ...] = ()

    @property
    def kept(self) -> int:
        """Counted bytes that are not trimmed."""
        return self.total - self.marks[0].n if self.marks else 0

    def after(self, added: Added | None, bound: int, is_held: bool = False) -> Self:
        """Return the count after a commit and its trim.

        Without a `bound` nothing is counted; if `is_held`, nothing is trimmed.
        """
        if not bound or added is None:
            return self
        before = self.marks or (Mark(self.total),)
        total = self.total + added.size
        first = 0 if is_held else _first_within(before, total, bound)
        marks = before[first:]
        if total - marks[-1].n >= bound // _MARKS_PER_BOUND:
            marks = (*marks, Mark(total, added.last))
        return type(self)(total, marks)

    def room_from(self, bound: int, is_done: Callable[[bytes], bool]) -> Self:
        """Return the count after a trim to below `bound` bytes, up to a mark that `is_done`."""
        wanted = next((i for i, mark in enumerate(self.marks) if self.total - mark.n < bound), 0)
        done = [i for i in range(1, wanted + 1) if is_done(self.marks[i].cursor)]
        return replace(self, marks=self.marks[max(done, default=0) :])


def _first_within(marks: Sequence[Mark], total: int, bound: int) -> int:
    """Return the index of the oldest mark that at most `bound` bytes follow; by default the last.

    So a commit never trims its own entries.
    """
    if total - bound <= marks[0].n:  # nearly always
        return 0
    found = bisect_left(marks, total - bound, key=lambda mark: mark.n)
    return min(found, len(marks) - 1)


@dataclass(frozen=True, slots=True)
class KeptBytes:
    """The counts of the four output streams."""

    streams: tuple[StreamBytes, ...] = (StreamBytes(),) * len(NAMES)

    @classmethod
    def read(cls, field: FieldReader) -> Self:
        """Return the counts stored in `st`; see `changes`."""
        totals = field("written", parse_four, b"0 0 0 0")
        marks = [field(f"marks_{name}", parse_marks, b"") for name in NAMES]
        return cls(tuple(map(StreamBytes, totals, marks)))

    def after(
        self, added: Sequence[Added | None], bounds: ByteBounds, is_held: bool = False
    ) -> Self:
        """Return the counts after a commit; if `is_held`, only dead letters are trimmed."""
        held = (is_held, is_held, is_held, False)
        return type(self)(tuple(map(StreamBytes.after, self.streams, added, bounds, held)))

    def with_stream(self, index: int, stream: StreamBytes) -> Self:
        """Return the counts with another one at an index of `NAMES`."""
        return type(self)((*self.streams[:index], stream, *self.streams[index + 1 :]))

    def trimmed_since(self, before: Self) -> list[bytes]:
        """Return for each stream the last entry to trim; b"" trims nothing."""
        return [
            now.marks[0].cursor if was.marks and now.marks[0] != was.marks[0] else b""
            for now, was in zip(self.streams, before.streams, strict=True)
        ]

    def changes(self, stored: Self) -> dict[str, bytes]:
        """Return the fields of `st` that differ from the stored ones."""
        found = {}
        totals = [stream.total for stream in self.streams]
        if totals != [stream.total for stream in stored.streams]:
            found["written"] = b"%d %d %d %d" % tuple(totals)
        for name, now, was in zip(NAMES, self.streams, stored.streams, strict=True):
            if now.marks is not was.marks and now.marks != was.marks:
                found[f"marks_{name}"] = encode_marks(now.marks)
        return found


def parse_four(value: bytes) -> tuple[int, ...]:
    """Return four numbers, one for each output stream."""
    parts = value.split(b" ")
    if len(parts) != len(NAMES):
        raise ValueError("not four numbers")
    return tuple(map(count, parts))


DOWNSTREAM = "downstream"  # consumer group of `out` that the policy `block` waits for

_DEFAULT = RetentionSettings()

_SHARE_OF_OUT = 4  # `met` and `dlq` each get a fourth of the bytes of `out`


@dataclass(frozen=True, slots=True)
class Retention:
    """Approximate entries and bytes of each output stream to keep; 0 is no bound.

    The bound that is reached first trims a stream.
    """

    out: int = _DEFAULT.retain_out  # entries, like the next three
    met: int = 100_000
    alarms: int = 100_000
    dlq: int = 1_000_000
    out_bytes: int = _DEFAULT.retain_bytes
    met_bytes: int = _DEFAULT.retain_bytes // _SHARE_OF_OUT
    dlq_bytes: int = _DEFAULT.retain_bytes // _SHARE_OF_OUT
    is_held: bool = False  # whether commits trim dead letters only, because of a consumer group

    @classmethod
    def of(cls, settings: RetentionSettings) -> Self:
        """Return the retention of these settings."""
        share = settings.retain_bytes // _SHARE_OF_OUT
        return cls(
            out=settings.retain_out, out_bytes=settings.retain_bytes, met_bytes=share,
            dlq_bytes=share, is_held=settings.downstream == "block",
        )  # fmt: skip

    @property
    def entries(self) -> tuple[int, int, int, int]:
        """Entries of `out`, `met`, `alarms` and `dlq`."""
        return self.out, self.met, self.alarms, self.dlq

    @property
    def bytes(self) -> ByteBounds:
        """Bytes of each stream."""
        return ByteBounds(self.out_bytes, self.met_bytes, 0, self.dlq_bytes)


MARKS_PER_WINDOW = 8
"""Approximate number of marks in a window: at most a fraction 1 / MARKS_PER_WINDOW of a window is
kept beyond the window and the input between two snapshots."""


class KeptInput(NamedTuple):
    """The marks and the trim of the input after a new snapshot."""

    marks: tuple[Mark, ...]  # the oldest first
    trim: bytes  # trim input before this ID; empty trims nothing


def known_marks(marks: Sequence[Mark], pointers: Sequence[Mark | None]) -> tuple[Mark, ...]:
    """Return the marks of a feed; if there are none, the positions of its kept snapshots.

    There are none before the first snapshot and after a restore. `pointers` has the older snapshot
    first; None is the start of the feed.
    """
    if marks:
        return tuple(marks)
    return tuple(dict.fromkeys(Mark() if at is None else at for at in pointers))


def keep(
    marks: Sequence[Mark], newest: Mark, previous: bytes | None, window: int | None
) -> KeptInput:
    """Add a mark for a new snapshot; return the marks, and where to trim the input.

    `previous` is the cursor of the previous snapshot, from which a replay must stay possible; None
    is the start of the feed. The last `window` learned examples are kept; None keeps all.
    """
    every = [mark for mark in marks if mark.n <= newest.n]
    if not every or every[-1] != newest:
        every.append(newest)
    if window is None:
        # All input is kept: one mark is enough.
        return KeptInput((every[0],), b"")
    whole = [i for i, mark in enumerate(every) if mark.n <= newest.n - window]
    thinned = _thinned(every[whole[-1] if whole else 0 :], window)
    if not whole or previous is None:
        return KeptInput(thinned, b"")
    return KeptInput(thinned, min(thinned[0].cursor, previous, key=parse_id))


def _thinned(marks: Sequence[Mark], window: int) -> tuple[Mark, ...]:
    """Drop marks whose neighbours are close together."""
    left: list[Mark] = []
    for mark in marks:
        while len(left) > 1 and MARKS_PER_WINDOW * (mark.n - left[-2].n) <= window:
            left.pop()
        left.append(mark)
    return tuple(left)


def parse_retention(value: bytes) -> RetentionSettings | None:
    """Return the stored retention, if any. Raises ValueError if it is invalid."""
    if not value:
        return None
    try:
        return RetentionSettings.model_validate_json(value)
    except ValidationError:
        raise ValueError("not the settings of what is kept") from None


def changes(before: RetentionSettings, now: RetentionSettings) -> str:
    """Return a text with every setting that differs; empty if none does."""
    old, new = before.model_dump(), now.model_dump()
    return "; ".join(
        f"{name}: {old[name]}, from now on {new[name]}" for name in old if old[name] != new[name]
    )
