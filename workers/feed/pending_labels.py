"""The field of `st` that says which labels are still to come."""

import time
from typing import NamedTuple, Self

from workers.feed.state_fields import count

PENDING = "pending"
"""Name of the field; only a feed with a horizon has it."""


class PendingLabels(NamedTuple):
    """Answered examples that wait, at the last commit.

    Attributes
    ----------
    pending : int
        To be learned.
    unlabelled : int
        Those of them whose label has not come.
    since : int or None
        Milliseconds since 1970 at which the oldest of these was sent, by its entry ID or the time
        that the producer gave; None without one.
    """

    pending: int
    unlabelled: int
    since: int | None

    @property
    def seconds(self) -> float:
        """Age of the oldest without a label; 0 without one."""
        return 0.0 if self.since is None else max(time.time() - self.since / 1000, 0.0)

    def told(self) -> dict[str, float | None]:
        """Return the members, and the age of the oldest."""
        return {**self._asdict(), "seconds": self.seconds}

    def encode(self) -> bytes:
        """Return the text stored in `st`.

        Examples
        --------
        >>> PendingLabels(7, 5, 1700000000000).encode(), PendingLabels(2, 0, None).encode()
        (b'7 5 1700000000000', b'2 0 -')
        """
        since = b"-" if self.since is None else b"%d" % self.since
        return b"%d %d %b" % (self.pending, self.unlabelled, since)

    @classmethod
    def parse(cls, text: bytes) -> Self:
        """Return what `encode` wrote.

        Raises
        ------
        ValueError
            For any other text.

        Examples
        --------
        >>> PendingLabels.parse(b"2 0 -")
        PendingLabels(pending=2, unlabelled=0, since=None)
        """
        pending, unlabelled, since = text.split(b" ")
        return cls(count(pending), count(unlabelled), None if since == b"-" else count(since))
