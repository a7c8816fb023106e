"""A snapshot that somebody who makes a backup wants now; see `admin.backup_request`."""

import time

from workers.broker.store import Store
from workers.errors import WrongKeyType

EVERY = 1.0
"""Seconds between two looks, at least: a busy feed commits hundreds of times in them."""


class SnapshotRequest:
    """Looks for a request in the feed's slot, and remembers what was answered.

    Parameters
    ----------
    store : Store

    Attributes
    ----------
    is_open : bool
        Whether a snapshot is wanted that was not left yet.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._seen: bytes | None = None  # it stays in Redis for some time
        self._looked = float("-inf")
        self.is_open = False

    def look(self, newest: bytes) -> None:
        """Look for a request; one for what the newest snapshot holds is none.

        Parameters
        ----------
        newest : bytes
            ID of the last entry that the newest snapshot holds.
        """
        now = time.monotonic()
        if now - self._looked < EVERY:
            return
        self._looked = now
        try:
            found = self._store.call("GET", self._store.keys.wanted)
        except WrongKeyType:  # another program wrote it
            return
        if found is not None and found not in (self._seen, newest):
            self._seen, self.is_open = found, True

    def close(self) -> None:
        """Note that a snapshot was left, or that there is nothing new."""
        self.is_open = False
