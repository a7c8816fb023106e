"""Entries to read at once: a number, and a bound on their bytes."""

from collections.abc import Sequence

from workers.errors import ReadCut, ReadTooLarge
from workers.log import Logger

Entry = tuple[bytes, list[bytes]]
"""ID and fields, flat: [name, value, name, value, ...]. (A list of two, as it comes.)"""

_LEAST_REPLY = 1 << 20
"""Bytes that any reply may have: for the smallest entries the protocol takes more than the data."""

_FIRST = 16
"""Entries to request at first: nothing is known about their sizes yet, and Redis prepares the whole
reply in its memory before it sends any of it."""

_AGAIN = 256  # full reads after a cut one, before more entries are requested again

log = Logger("online_svm.redis")


class BatchSize:
    """How many entries to read and to answer at once: at most `entries`, about `size` bytes.

    Redis returns entries by number, so the number is adapted to their sizes: it begins small, is
    halved if a read returns more bytes than allowed, and doubled if it returns less than a quarter.
    Entries beyond the bound are answered in several batches, which changes no answer.

    Parameters
    ----------
    entries : int
    size : int
        Bytes of field names and values.

    Attributes
    ----------
    count : int
        Entries to request now.

    Examples
    --------
    >>> size = BatchSize(entries=4, size=10)
    >>> size.first_of([(b"1-0", [b"x", b"[1,2]"]), (b"2-0", [b"x", b"[3,4]"])])
    1
    >>> size.count
    1
    """

    def __init__(self, entries: int, size: int) -> None:
        self._most = self._entries = entries
        self._size = size
        self._full = 0  # full reads in a row within the bound of bytes
        self.begin_small()

    @property
    def reply_limit(self) -> int | None:
        """Bytes beyond which a reply is dropped. A read of a single entry has no limit.

        Examples
        --------
        >>> BatchSize(entries=256, size=1 << 26).reply_limit
        134217728
        """
        return None if self.count == 1 else max(2 * self._size, _LEAST_REPLY)

    def begin_small(self) -> None:
        """Request few entries next; after each full read twice as many.

        Examples
        --------
        >>> size = BatchSize(entries=256, size=1 << 26)
        >>> size.count
        16
        """
        self.count = min(_FIRST, self._most)

    def halve(self, reason: ReadTooLarge) -> None:
        """Request half as many from now on, at least one, after a read that failed.

        If Redis cut the reply, the number grows again only after many reads: each attempt costs a
        connection, and the limit of Redis is not known here.
        """
        self.count = max(1, self.count // 2)
        if isinstance(reason, ReadCut):
            self._most, self._full = self.count, 0
            self.begin_small()
        log.warning(
            "a read failed; asking for fewer entries at once",
            entries=self.count,
            reason=str(reason),
        )

    def first_of(self, entries: Sequence[Entry]) -> int:
        """Return how many of the first entries form a batch: at least one."""
        sizes = [sum(map(len, fields)) for _, fields in entries]
        total = sum(sizes)
        if total > self._size:
            self.count = max(1, min(self.count, len(entries)) // 2)
            return _fitting(sizes, self._size)
        if 4 * total < self._size and len(entries) == self.count:
            self._full += 1
            if self._full >= _AGAIN:
                self._most, self._full = min(self._entries, 2 * self._most), 0
            self.count = min(self._most, 2 * self.count)
        return len(entries)


def _fitting(sizes: Sequence[int], limit: int) -> int:
    """Return how many of the first sizes sum to at most the limit; at least one."""
    held = 0
    for i, size in enumerate(sizes):
        held += size
        if held > limit:
            return max(1, i)
    return len(sizes)
