"""The consumer group of an archive: it tells the worker what is on disk."""

from workers import failpoints
from workers.broker.redis_errors import UnknownGroup
from workers.broker.store import Store
from workers.errors import BadConfiguration, WorkerError
from workers.feed.output_retention import DOWNSTREAM


class Acknowledgement:
    """Moves a consumer group of the answers behind the last one that is on disk.

    Parameters
    ----------
    store : Store
    group : str
    archive : str
        Name of the archive: the only consumer of the group.
    takes_group : bool
        Take the group from other consumers, which are given up.
    """

    def __init__(self, store: Store, group: str, archive: str, takes_group: bool = False) -> None:
        self._store, self._group, self._own = store, group, archive.encode()
        self._takes_group, self._has_group = takes_group, False

    def move(self, last: bytes) -> None:
        """Move the group behind an answer.

        Raises
        ------
        BadConfiguration
            If the group is another's.
        """
        out = self._store.keys.out
        if not self._store.length(out):
            return
        if not self._has_group:
            self._join(last)
        try:
            self._store.call("XGROUP", "SETID", out, self._group, last)
        except UnknownGroup:  # it was dropped meanwhile
            self._join(last)
        if failpoints.chosen is not None:
            failpoints.chosen.reach("archive-acknowledged")

    def _join(self, last: bytes) -> None:
        """Make the group, and this archive its only consumer."""
        out = self._store.keys.out
        try:
            self._store.call("XGROUP", "CREATE", out, self._group, last)
        except WorkerError as error:
            if "BUSYGROUP" not in str(error):
                raise
        for flat in self._store.call("XINFO", "CONSUMERS", out, self._group):
            name = dict(zip(flat[::2], flat[1::2], strict=True))[b"name"]
            if name != self._own:
                self._remove(name)
        self._store.call("XGROUP", "CREATECONSUMER", out, self._group, self._own)
        self._has_group = True

    def _remove(self, consumer: bytes) -> None:
        out = self._store.keys.out
        if not self._takes_group:
            raise BadConfiguration(
                f"the consumer group {self._group!r} of {out} has another consumer: an archive "
                "needs one of its own, --group NAME, and --downstream block waits for "
                f"{DOWNSTREAM!r} alone. If that consumer was given up for good: --take-group"
            )
        self._store.call("XGROUP", "DELCONSUMER", out, self._group, consumer)
