"""The ids of recently answered entries, so that a duplicate is not learned again."""

from collections.abc import Mapping

import orjson

from workers.errors import InvalidStoredSnapshot

_LENGTH_BYTES = 8


class RecentIds:
    """The ids of the last `window` answered examples with an id.

    Answers depend on them, so snapshots contain them and a replay rebuilds them. Rejected entries
    and duplicates are not added, so rejected entries may be sent again.

    Examples
    --------
    >>> recent = RecentIds(2)
    >>> for seq, name in enumerate(["a", "b", "c"]):
    ...     recent.add(name, seq)
    >>> recent.first("a"), recent.first("b")
    (None, 1)
    """

    def __init__(self, window: int) -> None:
        self.window = window
        self._seqs: dict[str, int] = {}  # in the order of answering

    def first(self, producer_id: str) -> int | None:
        """Return the `seq` of the answer to an id; None if the id is not in the window."""
        return self._seqs.get(producer_id)

    def add(self, producer_id: str, seq: int) -> None:
        """Add an id that is not in the window; drop the oldest from a full window."""
        if self.window == 0:
            return
        if len(self._seqs) == self.window:
            del self._seqs[next(iter(self._seqs))]
        self._seqs[producer_id] = seq

    def prepend_to(self, body: bytes) -> bytes:
        """Return a snapshot's body with these ids in front; unchanged if the window is 0."""
        if self.window == 0:
            return body
        ids = orjson.dumps(self._seqs)
        return b"".join((len(ids).to_bytes(_LENGTH_BYTES, "big"), ids, body))

    def restore_from(self, body: bytes | memoryview) -> bytes | memoryview:
        """Restore the ids from a result of `prepend_to`; return the body without them.

        Raises InvalidStoredSnapshot if the bytes do not start with valid ids for this window.
        """
        if self.window == 0:
            return body
        start = _LENGTH_BYTES + int.from_bytes(body[:_LENGTH_BYTES], "big")
        if not _LENGTH_BYTES <= start <= len(body):
            raise InvalidStoredSnapshot("its recent ids are longer than it is")
        self._seqs = self._checked(body[_LENGTH_BYTES:start])
        return body[start:]

    def _checked(self, text: bytes | memoryview) -> dict[str, int]:
        try:
            found = orjson.loads(text)
        except orjson.JSONDecodeError as error:
            raise InvalidStoredSnapshot(f"its recent ids are unreadable: {error.msg}") from None
        if not isinstance(found, Mapping) or len(found) > self.window:
            raise InvalidStoredSnapshot("its recent ids are not those of this window")
        seqs = list(found.values())
        if any(type(seq) is not int for seq in seqs) or seqs != sorted(set(seqs)):
            raise InvalidStoredSnapshot("its recent ids are not in the order of answering")
        return dict(found)
