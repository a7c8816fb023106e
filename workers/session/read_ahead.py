"""The entries of a feed in order; the next ones are requested before they are needed."""

from collections.abc import Sequence

from workers.broker.batch_size import BatchSize, Entry
from workers.broker.pipeline import Sent
from workers.broker.store import Store
from workers.errors import InputLost, ReadTooLarge
from workers.feed.position import parse_id


class InputReader:
    """Reads the entries to answer next. After a failure, make a new one at the cursor.

    Parameters
    ----------
    store : Store
    size : BatchSize
        How many entries to read at once, and to answer. It begins small.
    """

    def __init__(self, store: Store, size: BatchSize) -> None:
        self._store, self._size = store, size
        size.begin_small()
        self._buffer: list[Entry] = []
        self._prefetched: Sent | None = None
        self._may_be_more = False

    @property
    def is_at_the_end(self) -> bool:
        """Whether the last batch held all entries that there were when it was read."""
        return not self._buffer and not self._may_be_more

    @property
    def is_spent(self) -> bool:
        """Whether `next_now` has nothing to return before `hand_in` is called."""
        return not self._buffer and self._prefetched is None and not self._may_be_more

    @property
    def count(self) -> int:
        """Entries that are read at once, as many as are answered at once."""
        return self._size.count

    def hand_in(self, entries: Sequence[Entry], may_be_more: bool) -> None:
        """Put entries behind those that are buffered; note whether there may be more."""
        self._buffer += entries
        self._may_be_more = may_be_more

    def next_now(self, cursor: bytes, limit: int) -> list[Entry]:
        """Return the next batch, at most `limit` entries, without a wait for input.

        Parameters
        ----------
        cursor : bytes
            ID of the last entry returned, or where to begin.
        limit : int
        """
        if self._prefetched is not None or (not self._buffer and self._may_be_more):
            self._buffer += self._read(cursor)
        return self._taken(limit)

    def _taken(self, limit: int) -> list[Entry]:
        """Return the first of the entries that were read; they form a batch."""
        first = self._buffer[: self._size.count]
        count = self._size.first_of(first) if first else 0
        count = min(count, limit)
        taken, self._buffer = self._buffer[:count], self._buffer[count:]
        return taken

    def prefetch(self, cursor: bytes) -> None:
        """Request the entries after the buffered ones, or after the cursor if none are buffered.

        Nothing is requested if a whole batch is buffered, or the last read reached the end of the
        stream. The rest of a batch is answered together with the entries that follow.
        """
        if self._may_be_more and len(self._buffer) < self._size.count:
            last = self._buffer[-1][0] if self._buffer else cursor
            self._prefetched = self._store.send_read(last, self._size.count, self._size.reply_limit)

    def _read(self, cursor: bytes) -> list[Entry]:
        """Return the prefetched entries, or read some now; fewer if they are large."""
        sent, self._prefetched = self._prefetched, None
        last = self._buffer[-1][0] if self._buffer else cursor
        while True:
            size = self._size
            count = size.count
            if sent is None:
                sent = self._store.send_read(last, count, size.reply_limit)
            try:
                entries = self._store.receive_read(sent)
            except ReadTooLarge as error:
                sent = None
                self._store.check_entry_is_given(error, self._store.keys.input, last, count)
                size.halve(error)
                continue
            self._may_be_more = len(entries) >= count
            return entries


def check_held(store: Store, after: bytes, held: Sequence[bytes]) -> None:
    """Raise InputLost if an entry after an ID that was read is gone; new entries are no error."""
    pages = store.pages(store.keys.input, after, held[-1])
    present = {entry[0] for page in pages for entry in page}
    gone = sorted((i for i in held if i not in present), key=parse_id)
    if gone:
        raise InputLost(
            f"input lost: {len(gone)} of the {len(held)} entries that were read, from "
            f"{gone[0].decode()} on, were trimmed or deleted before their answers were "
            f"committed. Restore them under their IDs, or: online-svm reset "
            f"{store.keys.feed}"
        )
