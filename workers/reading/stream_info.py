"""The reply to XINFO STREAM."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

from workers.broker.batch_size import Entry


class StreamInfo(NamedTuple):
    """What Redis says of a stream.

    Attributes
    ----------
    length : int
        Entries that it holds.
    added : int or None
        Entries that it ever got; None on a Redis before 7, which does not count them.
    first, last : Entry or None
        None where the stream holds no entry.
    last_id : bytes
        The largest ID so far, whether or not its entry is still there.
    """

    length: int
    added: int | None
    first: Entry | None
    last: Entry | None
    last_id: bytes

    @property
    def gone(self) -> int:
        """Entries that were trimmed or deleted; 0 on a Redis before 7."""
        return 0 if self.added is None else self.added - self.length

    @classmethod
    def parse(cls, reply: Sequence[Any]) -> Self:
        """Return the fields of a reply.

        Examples
        --------
        >>> reply = [b"length", 2, b"last-generated-id", b"9-0", b"entries-added", 9]
        >>> found = StreamInfo.parse([*reply, b"first-entry", None, b"last-entry", None])
        >>> found.added, found.gone
        (9, 7)
        """
        fields = dict(zip(reply[::2], reply[1::2], strict=True))
        added = fields.get(b"entries-added")
        return cls(
            int(fields[b"length"]),
            None if added is None else int(added),
            fields[b"first-entry"],
            fields[b"last-entry"],
            fields[b"last-generated-id"],
        )
