"""The ids of answered examples, so that a duplicate is not learned again, and is found again."""

from collections.abc import Collection, Sequence
from typing import NamedTuple, Self

import orjson

from workers.errors import InvalidStoredSnapshot
from workers.feed.state_fields import count, entry_id

IDS_LENGTH = 8  # bytes of the length of the ids in a snapshot
_MIN_SETTLED_IDS = 1000
"""Ids of settled examples that a purge drops at least: it looks at each kept id."""


class AnsweredEntry(NamedTuple):
    """Where the answer to an id is.

    Examples
    --------
    >>> found = AnsweredEntry.decode(b"41 1717-0")
    >>> found, found.encode()
    (AnsweredEntry(seq=41, entry=b'1717-0'), b'41 1717-0')
    """

    seq: int
    entry: bytes  # ID of the input entry, and of its answer

    def encode(self) -> bytes:
        """Encode it as a value of the hash `ids`."""
        return b"%d %b" % self

    @classmethod
    def decode(cls, value: bytes) -> Self:
        """Decode a result of `encode`. Raises ValueError for any other text."""
        seq, entry = value.split(b" ")
        return cls(count(seq), entry_id(entry))


class RecentIds:
    """The ids of the last `window` answered examples with an id, and of all that wait for a label.

    Answers depend on them, so snapshots contain them and a replay rebuilds them. Rejected entries
    and duplicates are not added, so rejected entries may be sent again. A commit writes the changes
    to the hash `ids`, where readers find the answer to an id.

    Examples
    --------
    >>> recent = RecentIds(2)
    >>> recent.begin(0, [b"7-0", b"7-1", b"8-0"])
    >>> for seq, name in enumerate(["a", "b", "c"]):
    ...     recent.add(name, seq, waiting=["a"])
    >>> recent.first("a"), recent.first("b")
    (None, 1)
    >>> recent.changes()
    {'a': b'0 7-0', 'b': b'1 7-1', 'c': b'2 8-0'}
    """

    def __init__(self, window: int, keeps_waiting: bool = False) -> None:
        self.window = window
        self.is_used = window > 0 or keeps_waiting
        self.duplicates = 0  # entries so far that repeated an id of the window
        self._window: dict[str, AnsweredEntry] = {}  # in the order of answering, as the next one
        self._waiting: dict[str, AnsweredEntry] = {}  # those that left the window, and wait
        self._first, self._entries = 0, list[bytes]()  # of the batch
        self._touched: set[str] = set()

    def begin(self, first: int, entries: Sequence[bytes]) -> None:
        """Begin a batch of entries with these IDs, the first of which has `seq` = `first`."""
        self._first, self._entries = first, list(entries)
        self._touched.clear()

    def first(self, producer_id: str) -> int | None:
        """Return the `seq` of the answer to an id; None if the id is not in the window."""
        found = self._window.get(producer_id)
        return None if found is None else found.seq

    def add(self, producer_id: str, seq: int, waiting: Collection[str]) -> None:
        """Add an id that is not in the window; drop the oldest from a full window.

        `waiting` has the ids of the examples that wait for a label. They are kept, and some of
        those that waited are.
        """
        self._waiting.pop(producer_id, None)
        self._window[producer_id] = AnsweredEntry(seq, self._entries[seq - self._first])
        self._touched.add(producer_id)
        if len(self._window) > self.window:
            oldest = next(iter(self._window))
            self._waiting[oldest] = self._window.pop(oldest)
            self._touched.add(oldest)
            if oldest not in waiting:
                del self._waiting[oldest]
            elif len(self._waiting) > 2 * len(waiting) + _MIN_SETTLED_IDS:
                settled = self._waiting.keys() - set(waiting)
                self._touched |= settled
                self._waiting = {id: at for id, at in self._waiting.items() if id not in settled}

    def changes(self) -> dict[str, bytes]:
        """Return what this batch changes in the hash `ids`; a value of b"" removes the id."""
        kept = {id: self._window.get(id) or self._waiting.get(id) for id in sorted(self._touched)}
        return {id: b"" if at is None else at.encode() for id, at in kept.items()}

    def all(self) -> dict[str, bytes]:
        """Return all fields of the hash `ids`."""
        return {id: at.encode() for id, at in (self._waiting | self._window).items()}

    def prepend_to(self, body: bytes) -> bytes:
        """Return a snapshot's body with these ids, and the number of duplicates, in front."""
        kept = self._waiting, self._window
        parts = [{id: at.encode().decode() for id, at in part.items()} for part in kept]
        ids = orjson.dumps([*parts, self.duplicates])
        return b"".join((len(ids).to_bytes(IDS_LENGTH, "big"), ids, body))

    def restore_from(self, body: bytes | memoryview) -> bytes | memoryview:
        """Restore the ids from a result of `prepend_to`; return the body without them.

        Raises InvalidStoredSnapshot if the bytes do not start with valid ids for this window.
        """
        ids, rest = split_ids(body)
        self._restore(ids[IDS_LENGTH:])
        return rest

    def _restore(self, text: bytes | memoryview) -> None:
        try:
            *parts, duplicates = orjson.loads(text)
            self.duplicates = count(str(duplicates).encode())
            self._waiting, self._window = (
                {id: AnsweredEntry.decode(at.encode()) for id, at in part.items()} for part in parts
            )
        except orjson.JSONDecodeError as error:
            raise InvalidStoredSnapshot(f"its recent ids are unreadable: {error.msg}") from None
        except (AttributeError, TypeError, ValueError):
            raise InvalidStoredSnapshot("its recent ids have another form") from None
        if len(self._window) > self.window:
            raise InvalidStoredSnapshot("its recent ids are not those of this window")
        for part in (self._waiting, self._window):
            seqs = [at.seq for at in part.values()]
            if seqs != sorted(set(seqs)):
                raise InvalidStoredSnapshot("its recent ids are not in the order of answering")


def split_ids(body: bytes | memoryview) -> tuple[bytes | memoryview, bytes | memoryview]:
    """Return the part of a snapshot's body that has the ids, and the rest.

    Raises InvalidStoredSnapshot if the ids are longer than the body.
    """
    start = IDS_LENGTH + int.from_bytes(body[:IDS_LENGTH], "big")
    if not IDS_LENGTH <= start <= len(body):
        raise InvalidStoredSnapshot("its recent ids are longer than it is")
    return body[:start], body[start:]
