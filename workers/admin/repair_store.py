"""The write of a repair: a script that changes state and output streams of a feed together."""

from collections.abc import Sequence
from dataclasses import dataclass

from workers.broker.batch_size import Entry
from workers.broker.commit_script import lost
from workers.broker.pipeline import Argument
from workers.broker.script import Script
from workers.broker.store import Store
from workers.errors import NotRepairable
from workers.feed.position import Position
from workers.reading.registry import FeedInUse

_REPAIR = Script.load("streams", "repair")


@dataclass(frozen=True, slots=True)
class Change:
    """What a repair writes, and what must be unchanged when it does.

    Attributes
    ----------
    epoch : int
    before : Position
        In `st`.
    after : Position
        In `st` afterwards.
    lease : bytes
        Value of the lease of a worker that is gone; empty if there is none.
    end : bytes
        The last ID added to `out`.
    missing : (entries, entries, entries, entries)
        To append to `out`, `met`, `alarms` and `dlq`.
    """

    epoch: int
    before: Position
    after: Position
    lease: bytes
    end: bytes
    missing: tuple[Sequence[Entry], ...] = ((), (), (), ())


class RepairStore(Store):
    """The store of a feed that is repaired; see `Store`."""

    def repair(self, change: Change) -> None:
        """Write a change, all or nothing; the epoch grows by one.

        Raises
        ------
        FeedInUse
            If a worker took over the feed or wrote to it meanwhile.
        StateLost, NotRepairable
            If nothing was written, and the feed cannot be repaired.
        """
        keys, after = self.keys, change.after
        named = [keys.state, keys.input, *keys.outputs, keys.lease]
        args: list[Argument] = [change.epoch, change.before.cursor, change.lease, change.end]
        args += [after.cursor, after.seq, after.n, after.digest.hex()]
        args += [len(entries) for entries in change.missing]
        for entries in change.missing:
            for entry_id, fields in entries:
                args += (entry_id, *fields[1::2])
        code, *detail = self._connection.evaluate(_REPAIR, named, args)
        if code == b"OK":
            return
        if code == b"LOST":
            raise lost(keys)
        if code in (b"TYPE", b"OUTPUT"):
            what = " ".join(part.decode() for part in detail)
            raise refusal(keys.feed, f"nothing can be added to {what}")
        raise FeedInUse(
            f"feed {keys.feed!r} was taken or written to meanwhile: stop its worker, and run this "
            "command again"
        )


def refusal(feed: str, why: str) -> NotRepairable:
    """Return the error for a feed that cannot be repaired; it says what to do instead."""
    return NotRepairable(
        f"feed {feed!r} cannot be repaired: {why}. Nothing was written. Go on from a backup: "
        f"online-svm restore {feed} FILE; or begin anew: online-svm reset {feed}"
    )
