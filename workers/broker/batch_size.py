"""How many entries to read at once: a number, and a bound on their bytes."""

from collections.abc import Sequence

import structlog

Entry = tuple[bytes, list[bytes]]
"""ID and fields, flat: [name, value, name, value, ...]. (A list of two, as it comes.)"""

_LEAST_REPLY = 1 << 20
"""Bytes that any read may take: the protocol's own bytes outweigh the smallest entries."""

_AGAIN = 256  # full reads after which more are asked for than Redis once gave

log = structlog.get_logger("online_svm.redis")


class BatchSize:
    """Entries to read and to answer at once: at most `entries`, of about `size` bytes at most.

    Redis is asked for entries by number, so the number follows the sizes that come: it is halved
    when a read brings more bytes than allowed, and doubled when it brings less than a quarter.
    What a read brought beyond the bound is answered in several batches, which changes no answer.

    Parameters
    ----------
    entries : int
    size : int
        Bytes of field names and values.

    Attributes
    ----------
    count : int
        Entries to ask for now.

    Examples
    --------
    >>> size = BatchSize(entries=4, size=10)
    >>> size.first_of([(b"1-0", [b"x", b"[1,2]"]), (b"2-0", [b"x", b"[3,4]"])])
    1
    >>> size.count
    1
    """

    def __init__(self, entries: int, size: int) -> None:
        self.count = self._most = self._entries = entries
        self._size = size
        self._full = 0  # reads in a row that brought as many as were asked for, and no more bytes

    @property
    def reply_limit(self) -> int | None:
        """Bytes of a reply from which on it is given up; one entry alone is taken whatever it is.

        Examples
        --------
        >>> BatchSize(entries=256, size=1 << 26).reply_limit
        134217728
        """
        return None if self.count == 1 else max(2 * self._size, _LEAST_REPLY)

    def halve(self, is_cut: bool = False) -> None:
        """Ask for half as many from now on, at least one: a read was given up.

        Where Redis cut it, more are asked for only after many reads: each attempt costs a
        connection, and nothing here knows what Redis would give.
        """
        self.count = max(1, self.count // 2)
        if is_cut:
            self._most, self._full = self.count, 0
            log.warning("redis cut a read; asking for fewer entries at once", entries=self.count)

    def first_of(self, entries: Sequence[Entry]) -> int:
        """Return how many of the first entries are a batch: at least one."""
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
    """Return how many of the first sizes sum to the limit at most; at least one."""
    held = 0
    for i, size in enumerate(sizes):
        held += size
        if held > limit:
            return max(1, i)
    return len(sizes)
