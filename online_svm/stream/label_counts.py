"""What became of the labels of a stream, counted."""

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, Self

Done = Literal["accepted", "repeated", "corrected"]
"""What was done with a label that came late."""


@dataclass(slots=True)
class LabelCounts:
    """Counts since the stream began, but for `pending` and `unlabelled`, which are of now.

    Attributes
    ----------
    pending : int
        Answered examples that wait to be learned.
    unlabelled : int
        Those of them whose label has not come.
    late : int
        Labels that came after their example was answered, and were taken.
    repeated : int
        Labels that were sent again.
    corrected : int
        Labels that replaced another one.
    censored : int
        Examples whose horizon passed without a label.
    dropped : int
        Examples that were given up because `max_pending` others waited.
    early : int
        Examples whose label had come before them, and was rejected.
    backwards : int
        Examples whose time was before that of an example before them.

    Examples
    --------
    >>> counts = LabelCounts(late=2)
    >>> LabelCounts.from_state(counts.state()) == counts
    True
    """

    pending: int = 0
    unlabelled: int = 0
    late: int = 0
    repeated: int = 0
    corrected: int = 0
    censored: int = 0
    dropped: int = 0
    early: int = 0
    backwards: int = 0

    def copy(self) -> Self:
        """Return the counts as they are now."""
        return replace(self)

    def state(self) -> dict[str, int]:
        """Return the counts by name."""
        return asdict(self)

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Return the counts that `state` describes.

        Raises
        ------
        TypeError, ValueError
            If one is missing, unknown, or no count.
        """
        counts = cls(**state)
        if any(type(value) is not int or value < 0 for value in asdict(counts).values()):
            raise ValueError("a count of labels is no count")
        return counts
