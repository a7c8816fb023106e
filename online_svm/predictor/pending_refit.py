"""A refit that has been frozen but is not active yet."""

from dataclasses import dataclass
from typing import Any, Self

from online_svm.refit.task import RefitResult
from online_svm.stream.labels import ClassView


@dataclass(slots=True)
class PendingRefit:
    """What the predictor remembers of a frozen refit until its activation.

    Attributes
    ----------
    start, freeze : int
        The frozen examples are those numbered start ... freeze - 1.
    activation : int
        Value of n at which the model becomes active.
    view : ClassView
        Classes known at the freeze.
    result : RefitResult or None
        Where a snapshot has already waited for it.
    """

    start: int
    freeze: int
    activation: int
    view: ClassView
    result: RefitResult | None = None

    def header(self) -> dict[str, Any]:
        """Return the JSON part of a snapshot."""
        return {
            "start": self.start,
            "freeze": self.freeze,
            "activation": self.activation,
            "labels": list(self.view.labels),
        }

    @classmethod
    def from_header(cls, header: dict[str, Any], declared: bool, result: RefitResult) -> Self:
        """Return the pending refit that `header` describes."""
        view = ClassView(header["labels"], declared)
        return cls(header["start"], header["freeze"], header["activation"], view, result)
