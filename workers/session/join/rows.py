"""Join the answers of several feeds by id, without a clock: the result depends on their order only.

The `seq` of an answer is the number of input entries before it in its own feed. Each answer of the
first feed makes a row, in order. If its seq is k, it is joined, in each other feed, to the earliest
unused answer with the same id and a seq within `window` of k.

- If a feed has answered everything up to k + window without that id, its answer is missing.
- If it has not yet, the join waits.
- An answer that was not joined is dropped once its seq is `window` or more behind.

So batches, restarts and the speed of the feeds do not change the result.
"""

import json
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from workers.errors import StateLost
from workers.feed.state_fields import MAX_COUNT, entry_id


@dataclass(frozen=True, slots=True)
class SourceMark:
    """The point from which a source must be read again."""

    cursor: bytes = b"0-0"  # entry ID; everything up to it is joined or dropped
    seq: int = 0  # of the next answer after it
    used: tuple[int, ...] = ()  # seqs after it that are already joined or dropped


def encode_joined(marks: Sequence[SourceMark], letters: int) -> bytes:
    """Encode the marks of the sources and the count of dead letters."""
    stored = [(mark.cursor.decode(), mark.seq, mark.used) for mark in marks]
    return json.dumps({"letters": letters, "marks": stored}, separators=(",", ":")).encode()


def decode_joined(text: bytes) -> tuple[list[SourceMark], int]:
    """Decode a result of `encode_joined`. Raises StateLost if it is damaged."""
    try:
        stored = json.loads(text)
        marks = [
            SourceMark(entry_id(cursor.encode()), _count(seq), tuple(_count(each) for each in used))
            for cursor, seq, used in stored["marks"]
        ]
        return marks, _count(stored["letters"])
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise StateLost(
            f"where the combination stands in its sources is damaged ({str(error)[:100]!r}): "
            "restore it from a backup, or reset the feed"
        ) from error


def _count(value: object) -> int:
    """Return a number of entries. Raises ValueError for anything else, such as 1.5 or true."""
    if type(value) is not int or not 0 <= value <= MAX_COUNT:
        raise ValueError(f"not a number from 0 to {MAX_COUNT}")
    return value


@dataclass(frozen=True, slots=True, eq=False)
class SourceAnswer:
    """One answer of a source feed."""

    entry: bytes  # entry ID
    after: bytes  # the entry ID before it in its stream
    seq: int
    id: str | None  # the producer's id, if any
    rejected: bool  # whether the feed rejected the example
    bounds: tuple[float, float] | None  # Bel and Pl of the last class; None without evidence
    label: str | None  # the label of the example, if valid
    payload: bytes  # as stored


@dataclass(frozen=True, slots=True, eq=False)
class JoinedRow:
    """One answer of the first feed and the answers that are joined to it."""

    answers: list[SourceAnswer | None]  # by feed; None if its answer is missing
    dropped: list[tuple[int, SourceAnswer]]  # feed and answer: now behind the window

    @property
    def first(self) -> SourceAnswer:
        """The answer of the first feed."""
        first = self.answers[0]
        assert first is not None
        return first


class Join:
    """Buffers answers until they can be joined; each feed continues at its mark."""

    def __init__(self, marks: list[SourceMark], window: int) -> None:
        self._window = window
        self._cursors = [mark.cursor for mark in marks]
        self._next = [mark.seq for mark in marks]
        self._used = [set(mark.used) for mark in marks]
        self._buffered: list[deque[SourceAnswer]] = [deque() for _ in marks]

    @property
    def waiting(self) -> int:
        """Number of buffered answers of the first feed."""
        return len(self._buffered[0])

    def cursor(self, feed: int) -> bytes:
        """Return the entry ID of the last added answer of a feed."""
        return self._cursors[feed]

    def next_seq(self, feed: int) -> int:
        """Return the seq of the next answer of a feed to add."""
        return self._next[feed]

    def has_room(self, feed: int, batch: int) -> bool:
        """Return whether to read more answers of a feed, up to `batch` more than the join needs."""
        if feed == 0:
            return self.waiting < batch
        return self._next[feed] <= self._first_seq + self._window + batch

    def add(self, feed: int, answers: Iterable[SourceAnswer]) -> None:
        """Add the next answers of a feed, in order."""
        for answer in answers:
            self._cursors[feed], self._next[feed] = answer.entry, answer.seq + 1
            if answer.seq in self._used[feed]:
                self._used[feed].remove(answer.seq)
            else:
                self._buffered[feed].append(answer)

    def rows(self, limit: int | None = None) -> Iterator[JoinedRow]:
        """Yield up to `limit` of the rows that are complete, in order."""
        while self._buffered[0] and limit != 0:
            answers = self._answers(self._buffered[0][0])
            if answers is None:
                return
            yield self._remove(answers)
            limit = None if limit is None else limit - 1

    def marks(self) -> list[SourceMark]:
        """Return from where to read again if the buffered answers are lost."""
        return [self._mark(feed) for feed in range(len(self._buffered))]

    @property
    def _first_seq(self) -> int:
        return self._buffered[0][0].seq if self._buffered[0] else self._next[0]

    def _answers(self, first: SourceAnswer) -> list[SourceAnswer | None] | None:
        """Return the answers joined to one of the first feed; None if the join must wait."""
        others = range(1, len(self._buffered))
        found = [self._find(feed, first) for feed in others]
        # Without an id there is nothing to find, but answers that are dropped now must be read.
        ahead = self._window if first.id is not None else -self._window
        for feed, match in zip(others, found, strict=True):
            if match is None and self._next[feed] <= first.seq + ahead:
                return None
        return [first, *found]

    def _find(self, feed: int, first: SourceAnswer) -> SourceAnswer | None:
        if first.id is None:
            return None
        low, high = first.seq - self._window, first.seq + self._window
        for answer in self._buffered[feed]:
            if answer.seq > high:
                return None
            if answer.seq >= low and answer.id == first.id:
                return answer
        return None

    def _remove(self, answers: list[SourceAnswer | None]) -> JoinedRow:
        """Remove the answers of a row, and those that no later row can use."""
        first = self._buffered[0].popleft()
        dropped = []
        for feed, match in enumerate(answers):
            buffered = self._buffered[feed]
            if feed and match is not None:
                buffered.remove(match)
            while feed and buffered and buffered[0].seq <= first.seq - self._window:
                dropped.append((feed, buffered.popleft()))
        return JoinedRow(answers, dropped)

    def _mark(self, feed: int) -> SourceMark:
        buffered = self._buffered[feed]
        if not buffered:
            # Answers that were used before a restart, and are not read again yet, stay used.
            return SourceMark(
                self._cursors[feed], self._next[feed], tuple(sorted(self._used[feed]))
            )
        first = buffered[0]
        present = {answer.seq for answer in buffered}
        used = set(range(first.seq, self._next[feed])) - present | self._used[feed]
        return SourceMark(first.after, first.seq, tuple(sorted(used)))
