"""Join the answers of several feeds by id: a pure function of their order, without a clock.

An answer's place is its `seq`: the number of input entries before it in its own feed. The answers
of the first feed are decided one by one, in order. The answer at place k is joined, in each other
feed, to the earliest unused answer with the same id within `window` places of k.

- If a feed has answered all places up to k + window without that id, its answer is missing.
- If it has not answered them all, the join waits for it.
- An answer that was not joined is dropped when it is more than `window` places behind.

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
    """The point from which a source has to be read again."""

    cursor: bytes = b"0-0"  # entry ID; everything up to it is finished
    seq: int = 0  # place of the next answer after it
    taken: tuple[int, ...] = ()  # places after it that were taken already


def encode_joined(marks: Sequence[SourceMark], letters: int) -> bytes:
    """Return the marks of the sources and the count of dead letters as they are stored."""
    stored = [(mark.cursor.decode(), mark.seq, mark.taken) for mark in marks]
    return json.dumps({"letters": letters, "marks": stored}, separators=(",", ":")).encode()


def decode_joined(text: bytes) -> tuple[list[SourceMark], int]:
    """Return what `encode_joined` was given.

    Raises StateLost if it is damaged.
    """
    try:
        stored = json.loads(text)
        marks = [
            SourceMark(
                entry_id(cursor.encode()), _place(seq), tuple(_place(other) for other in taken)
            )
            for cursor, seq, taken in stored["marks"]
        ]
        return marks, _place(stored["letters"])
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise StateLost(
            f"where the combination stands in its sources is damaged ({str(error)[:100]!r}): "
            "restore it from a backup, or reset the feed"
        ) from error


def _place(value: object) -> int:
    """Return a number of entries; anything else, such as 1.5 or true, was not written here."""
    if type(value) is not int or not 0 <= value <= MAX_COUNT:
        raise ValueError(f"not a number from 0 to {MAX_COUNT}")
    return value


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """One answer of a source feed."""

    entry: bytes  # its entry ID
    after: bytes  # entry ID before it in its stream
    seq: int  # its place
    id: str | None  # the producer's id, if it was sent
    rejected: bool  # the feed could not use the example
    bounds: tuple[float, float] | None  # Bel and Pl of the last class; None without evidence
    label: str | None  # the label that came with the example, if it is one of the two
    payload: bytes  # as it is in the stream


@dataclass(frozen=True, slots=True, eq=False)
class JoinedRow:
    """The decision for one answer of the first feed."""

    answers: list[Answer | None]  # one a feed, the first feed's first; None where a feed is missing
    given_up: list[tuple[int, Answer]]  # feed and answer of those that fell behind the window here

    @property
    def first(self) -> Answer:
        """The answer of the first feed."""
        first = self.answers[0]
        assert first is not None
        return first


class Join:
    """Buffers the answers that are not decided yet.

    Each feed goes on at its mark; answers to one id may lie `window` places apart.

    Examples
    --------
    >>> def answer(seq, name):
    ...     return Answer(b"%d-0" % (seq + 1), b"%d-0" % seq, seq, name, False, None, None, b"")
    >>> join = Join([SourceMark(), SourceMark()], window=1)
    >>> join.add(0, [answer(0, "a"), answer(1, "b")])
    >>> join.add(1, [answer(0, "b"), answer(1, "a")])
    >>> [[found.seq for found in row.answers] for row in join.decided()]
    [[0, 1], [1, 0]]
    """

    def __init__(self, marks: list[SourceMark], window: int) -> None:
        self._window = window
        self._cursors = [mark.cursor for mark in marks]
        self._next = [mark.seq for mark in marks]
        self._taken = [set(mark.taken) for mark in marks]
        self._pending: list[deque[Answer]] = [deque() for _ in marks]

    @property
    def waiting(self) -> int:
        """Answers of the first feed that are held and not decided."""
        return len(self._pending[0])

    def cursor(self, feed: int) -> bytes:
        """Return the entry ID of the last answer of a feed that was added."""
        return self._cursors[feed]

    def next_place(self, feed: int) -> int:
        """Return the place of the next answer of a feed to be added."""
        return self._next[feed]

    def has_room(self, feed: int, batch: int) -> bool:
        """Return whether to read on in a feed: `batch` ahead of the first, or of what it needs."""
        if feed == 0:
            return self.waiting < batch
        return self._next[feed] <= self._place + self._window + batch

    def add(self, feed: int, answers: Iterable[Answer]) -> None:
        """Add the next answers of a feed, in order."""
        for answer in answers:
            self._cursors[feed], self._next[feed] = answer.entry, answer.seq + 1
            if answer.seq in self._taken[feed]:
                self._taken[feed].remove(answer.seq)
            else:
                self._pending[feed].append(answer)

    def decided(self, count: int | None = None) -> Iterator[JoinedRow]:
        """Yield the rows that can be decided, in order, at most `count`."""
        while self._pending[0] and count != 0:
            answers = self._answers(self._pending[0][0])
            if answers is None:
                return
            yield self._remove_decided(answers)
            count = None if count is None else count - 1

    def marks(self) -> list[SourceMark]:
        """Return from where to read again if the buffered answers are lost."""
        return [self._mark(feed) for feed in range(len(self._pending))]

    @property
    def _place(self) -> int:
        """Place of the next decision."""
        return self._pending[0][0].seq if self._pending[0] else self._next[0]

    def _answers(self, first: Answer) -> list[Answer | None] | None:
        """Return the answers joined to one of the first feed; None if a feed must be waited for."""
        others = range(1, len(self._pending))
        found = [self._find(feed, first) for feed in others]
        # Without an id nothing is looked for, but what falls behind here must have been read.
        ahead = self._window if first.id is not None else -self._window
        for feed, match in zip(others, found, strict=True):
            if match is None and self._next[feed] <= first.seq + ahead:
                return None
        return [first, *found]

    def _find(self, feed: int, first: Answer) -> Answer | None:
        if first.id is None:
            return None
        low, high = first.seq - self._window, first.seq + self._window
        for answer in self._pending[feed]:
            if answer.seq > high:
                return None
            if answer.seq >= low and answer.id == first.id:
                return answer
        return None

    def _remove_decided(self, answers: list[Answer | None]) -> JoinedRow:
        """Remove decided answers, and those that no later decision can use."""
        first = self._pending[0].popleft()
        given_up = []
        for feed, match in enumerate(answers):
            held = self._pending[feed]
            if feed and match is not None:
                held.remove(match)
            while feed and held and held[0].seq <= first.seq - self._window:
                given_up.append((feed, held.popleft()))
        return JoinedRow(answers, given_up)

    def _mark(self, feed: int) -> SourceMark:
        held = self._pending[feed]
        if not held:
            # What was taken before and is still to be read again stays taken.
            return SourceMark(
                self._cursors[feed], self._next[feed], tuple(sorted(self._taken[feed]))
            )
        first = held[0]
        present = {answer.seq for answer in held}
        taken = set(range(first.seq, self._next[feed])) - present | self._taken[feed]
        return SourceMark(first.after, first.seq, tuple(sorted(taken)))
