"""LabelCounts: the labels of a stream, counted by what became of them."""

from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import ConfigDict, Field

from online_svm.stream.answer_columns import STRICT, Count

Done = Literal["accepted", "repeated", "corrected"]
"""What was done with a label that came late."""


@dataclass(slots=True)
class LabelCounts:
    """Counts since the feed began, but for `pending` and `unlabelled`, which are of now.

    Examples
    --------
    >>> counts = LabelCounts(late=2)
    >>> LabelCounts.from_state(counts.state()) == counts
    True
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    pending: Annotated[Count, Field(description="Answered examples that wait to be learned.")] = 0
    unlabelled: Annotated[Count, Field(description="Those of them whose label has not come.")] = 0
    late: Annotated[Count, Field(description="Labels that came after their example.")] = 0
    repeated: Annotated[Count, Field(description="Labels that were sent again.")] = 0
    corrected: Annotated[Count, Field(description="Labels that replaced another one.")] = 0
    censored: Annotated[
        Count, Field(description="Examples whose horizon passed without a label.")
    ] = 0
    dropped: Annotated[Count, Field(description="Examples beyond `max_pending`.")] = 0
    early: Annotated[
        Count,
        Field(description="Examples whose label came, and was rejected, before them."),
    ] = 0
    backwards: Annotated[
        Count,
        Field(description="Examples whose `time` ran backwards."),
    ] = 0

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
