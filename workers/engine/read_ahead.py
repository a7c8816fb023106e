"""The entries of a feed in order; the next ones are requested before they are needed."""

from workers.broker.batch_size import BatchSize, Entry
from workers.broker.pipeline import Sent
from workers.broker.store import Store
from workers.errors import ReadCut, ReadTooLarge


class InputReader:
    """What is to be answered next; it is read again from the cursor after anything unusual.

    Parameters
    ----------
    store : Store
    size : BatchSize
        How many entries to read at once, and to answer.
    reads_ahead : bool
        Whether `prefetch` does anything; an attribute as well.
    """

    def __init__(self, store: Store, size: BatchSize, reads_ahead: bool = True) -> None:
        self._store, self._size = store, size
        self._buffer: list[Entry] = []
        self._prefetched: Sent | None = None
        self._may_be_more = False
        self.reads_ahead = reads_ahead

    @property
    def may_wait(self) -> bool:
        """Whether `next_batch` waits for new input: everything that was read has been returned."""
        return not self._buffer and self._prefetched is None

    @property
    def is_at_the_end(self) -> bool:
        """Whether the entries taken last were all there were when they were read."""
        return not self._buffer and not self._may_be_more

    @property
    def holds_more(self) -> bool:
        """Whether something that was read is still to be taken."""
        return bool(self._buffer)

    def next_batch(
        self, cursor: bytes, limit: int | None = None, is_eager: bool = False
    ) -> list[Entry]:
        """Return the entries after the cursor that make a batch, `limit` at most; none if none.

        Parameters
        ----------
        cursor : bytes
            ID of the last entry taken, or where to begin.
        limit : int, optional
        is_eager : bool
            As for `Store.read`.
        """
        if self._prefetched is not None or not self._buffer:
            self._buffer += self._read(cursor, is_eager)
        first = self._buffer[: self._size.count]
        count = self._size.first_of(first) if first else 0
        count = count if limit is None else min(count, limit)
        taken, self._buffer = self._buffer[:count], self._buffer[count:]
        return taken

    def prefetch(self, cursor: bytes) -> None:
        """Ask for what comes after the entries that are held, or after the cursor if none are.

        Unless a batch is held, or the last read found the end: what is left of a batch is answered
        together with what comes next.
        """
        if self.reads_ahead and self._may_be_more and len(self._buffer) < self._size.count:
            last = self._buffer[-1][0] if self._buffer else cursor
            self._prefetched = self._store.send_read(last, self._size.count, self._size.reply_limit)

    def _read(self, cursor: bytes, is_eager: bool) -> list[Entry]:
        """Return the prefetched entries, or read some now; fewer if they are large."""
        prefetched, self._prefetched = self._prefetched, None
        last = self._buffer[-1][0] if self._buffer else cursor
        while True:
            size = self._size
            count = size.count
            try:
                entries = (
                    self._store.read(last, count, is_eager, size.reply_limit)
                    if prefetched is None
                    else self._store.receive_read(prefetched)
                )
            except ReadTooLarge as error:
                prefetched = None
                size.halve(isinstance(error, ReadCut))
                continue
            self._may_be_more = len(entries) >= count
            return entries
