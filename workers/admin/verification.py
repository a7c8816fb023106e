"""The result of a comparison of recomputed answers with the committed ones."""

from dataclasses import dataclass, field

from workers.feed.position import Position

MAX_DIFFERENCES = 20
"""Differences that are reported: the later ones usually follow from the first."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One output entry that differs from the recomputed one.

    Attributes
    ----------
    stream : str
        Its key.
    id : bytes
    committed, computed : bytes or None
        None if there is no such entry.
    """

    stream: str
    id: bytes
    committed: bytes | None
    computed: bytes | None


@dataclass(slots=True)
class Verification:
    """The result of a comparison.

    Attributes
    ----------
    start : Position
        Where recomputing began: at the older kept snapshot, or at the start of the feed.
    end : Position
        Where recomputing ended.
    committed : Position
        The committed position of the feed.
    answers, reports, alarms : int
        Entries of `out`, `met` and `alarms` that were compared.
    trimmed : int
        Entries that were recomputed but are no longer kept.
    has_ids : bool
        False if the IDs of early input are no longer known; then the digest is not compared.
    erased : int
        Entries of the feed that were erased; they cannot be recomputed.
    chained : int
        Answers that are not recomputed, since an erased entry was learned before them. The digest
        says that they are those that were committed.
    unlinked : int
        Answers among them of which the digest says nothing: it was not known any more at an erased
        entry before them.
    differences : list of Difference
        The first `MAX_DIFFERENCES`.
    n_differences : int
    """

    start: Position
    end: Position
    committed: Position
    answers: int = 0
    reports: int = 0
    alarms: int = 0
    trimmed: int = 0
    has_ids: bool = True
    erased: int = 0
    chained: int = 0
    unlinked: int = 0
    differences: list[Difference] = field(default_factory=list)
    n_differences: int = 0

    @property
    def is_identical(self) -> bool:
        """Whether everything that was compared is equal, byte for byte."""
        same_end = (self.end.seq, self.end.n) == (self.committed.seq, self.committed.n)
        same_digest = self.end.digest == self.committed.digest or not self.has_ids
        return self.n_differences == 0 and same_end and same_digest
