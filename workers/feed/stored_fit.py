"""A finished fit of the memory's trees, as a feed keeps it."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, NamedTuple, Self


class StoredFit(NamedTuple):
    """The trees of a task; equal tasks have equal trees.

    Examples
    --------
    >>> fit = StoredFit("long", b"hash of the task", b"trees")
    >>> fields = dict(zip(fit.fields()[::2], fit.fields()[1::2]))
    >>> StoredFit.parse("long", fields) == fit
    True
    >>> StoredFit.parse("long", fields | {b"trees": b"other"}) is None
    True
    """

    kind: str  # name of the kind of forest
    task: bytes  # SHA-256 of the task
    trees: bytes  # result of the task

    def fields(self) -> list[bytes]:
        """Return names and values of its entry."""
        return [b"task", self.task, b"sum", self._sum, b"trees", self.trees]

    @classmethod
    def parse(cls, kind: str, fields: Mapping[bytes, Any]) -> Self | None:
        """Return the fit of an entry; None if it is damaged."""
        found = cls(kind, fields.get(b"task", b""), fields.get(b"trees", b""))
        return found if fields.get(b"sum") == found._sum else None

    @property
    def _sum(self) -> bytes:
        return sha256(self.task + self.trees).digest()
