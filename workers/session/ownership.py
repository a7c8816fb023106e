"""Ownership of a feed: a writer sees without a commit that it has lost it."""

from workers.broker.commit_script import lost
from workers.broker.lease import HeldLease
from workers.broker.store import Store
from workers.errors import Fenced
from workers.feed.position import Position


class Ownership:
    """A feed that a writer has taken over, until another takes it over.

    A writer that was suspended learns here that another replaced it, though there may be nothing
    to commit. After a lost connection Redis may have come back without its last writes.

    Parameters
    ----------
    store : Store
    epoch : int
        Of this writer.
    lease : HeldLease or None

    Attributes
    ----------
    epoch : int
    """

    def __init__(self, store: Store, epoch: int, lease: HeldLease | None) -> None:
        self.epoch = epoch
        self._store, self._lease = store, lease
        self._unbroken, self._is_lost = store.unbroken, False

    def is_in_doubt(self) -> bool:
        """Return whether the lease, or a connection, was lost since this was last confirmed."""
        if self._lease is not None and self._lease.pop_loss():
            self._is_lost = True
        return self._is_lost or self._unbroken != self._store.unbroken

    def is_confirmed(self, position: Position) -> bool:
        """Return whether the feed stands where this writer left it.

        If not, Redis lost its last writes, or a commit whose reply was lost was done: the position
        is to be read again.

        Raises
        ------
        StateLost
            If the state is gone.
        Fenced
            If a newer writer has taken over.
        """
        self._unbroken = self._store.unbroken
        keys, state = self._store.keys, self._store.state()
        self._is_lost = False
        if state is None:
            raise lost(keys)
        if state.epoch > self.epoch:
            raise Fenced(
                f"feed {keys.feed!r}: {state.writer!r} has taken over (epoch {state.epoch}, this "
                f"writer's {self.epoch})"
            )
        return (state.epoch, state.position) == (self.epoch, position)
