"""A refit that has been frozen but is not active yet."""

from dataclasses import dataclass
from typing import Self

from online_svm.refit.task import RefitResult
from online_svm.storage.state import State, as_array
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

    def state(self) -> State:
        """Return the refit with its result, which must have come."""
        assert self.result is not None
        header = {
            "start": self.start,
            "freeze": self.freeze,
            "activation": self.activation,
            "labels": list(self.view.labels),
        }
        return State(header, {"pending": as_array(self.result.state())})

    @classmethod
    def from_state(cls, state: State, declared: bool) -> Self:
        """Return the pending refit that `state` describes."""
        header, arrays = state
        view = ClassView(header["labels"], declared)
        result = RefitResult.from_state(arrays["pending"].tobytes())
        return cls(header["start"], header["freeze"], header["activation"], view, result)
