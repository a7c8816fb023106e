"""The answers of several feeds as the input of one: rows to answer, without a wait for any feed."""

from collections.abc import Sequence

from workers.broker.batch_size import Entry
from workers.session.feed_session import Awaited
from workers.session.join.marks import SourceMark
from workers.session.join.rows import Join, JoinedRow
from workers.session.join.sources import Source


class JoinInput:
    """Reads the sources that have something new, and joins their answers.

    Parameters
    ----------
    sources : sequence of Source
        The feed whose order the rows have comes first.
    marks : list of SourceMark
        Where each of them is read on.
    window : int
        Places that two answers to the same id may lie apart.
    batch : int
        Answers of a source that are read at once, at most.
    """

    def __init__(
        self, sources: Sequence[Source], marks: list[SourceMark], window: int, batch: int
    ) -> None:
        self._join, self._batch = Join(marks, window), batch
        self._sources = [_SourceInput(source) for source in sources]
        self._may_decide = False

    @property
    def waiting(self) -> int:
        """Answers of the first source that wait for the others."""
        return self._join.waiting

    @property
    def is_spent(self) -> bool:
        """Whether `next_now` has nothing to return before a source has more."""
        return not (self._may_decide or any(map(self._is_readable, range(len(self._sources)))))

    def next_now(self, most: int) -> list[JoinedRow]:
        """Read on in each source, once; return up to `most` rows that are decided by now."""
        for i in range(len(self._sources)):
            if self._is_readable(i):
                self._read(i)
        rows = list(self._join.decided(most))
        self._may_decide = len(rows) == most
        return rows

    def marks(self) -> list[SourceMark]:
        """Return from where to read again if the rows that were not returned yet are lost."""
        return self._join.marks()

    def awaited(self) -> list[Awaited]:
        """Return the sources that are read to their ends, and have to be read on."""
        join = self._join
        return [
            Awaited(one.source.key, join.cursor(i), one)
            for i, one in enumerate(self._sources)
            if not one.may_be_more and join.has_room(i, self._batch)
        ]

    def read_anew(self) -> None:
        """Look at each source again: a read that waited for one may have been lost."""
        for one in self._sources:
            one.may_be_more = True

    def _is_readable(self, i: int) -> bool:
        return self._sources[i].may_be_more and self._join.has_room(i, self._batch)

    def _read(self, i: int) -> None:
        """Read the next answers of a source; none is the end of it for now."""
        join, one = self._join, self._sources[i]
        answers = one.source.read(join.cursor(i), join.next_place(i), self._batch)
        join.add(i, answers)
        one.may_be_more = bool(answers)
        self._may_decide |= bool(answers)


class _SourceInput:
    """A source, and whether it may have answers that were not read.

    Attributes
    ----------
    source : Source
    may_be_more : bool
    count : int
        A read that waits requests one entry: it tells only that there are some.
    """

    count = 1

    def __init__(self, source: Source) -> None:
        self.source, self.may_be_more = source, True

    def hand_in(self, _entries: Sequence[Entry], may_be_more: bool) -> None:  # noqa: ARG002
        """Note that there are answers: their labels have to be read too."""
        self.may_be_more = True
