"""The protocol of a calibration map."""

from typing import Protocol, Self, runtime_checkable

from numpy.typing import ArrayLike

from online_svm.storage.state import Saved
from online_svm.types import Arrays, Floats


class ScoreMap(Saved[Arrays], Protocol):
    """A map from scores of a two-class machine to P(positive).

    Every map answers 1/2 everywhere when it was fitted on no example at all, which is where the
    papers' online protocol starts.
    """

    def fit(self, scores: ArrayLike, labels: ArrayLike) -> Self:
        """Fit to scores and labels of shape (n_samples,); a label is 1 (positive) or 0."""
        ...

    def predict(self, scores: ArrayLike) -> Floats:
        """Return P(positive) for each score; a value never depends on the others in the call."""
        ...


@runtime_checkable
class IntervalMap(Protocol):
    """A map from scores of a two-class machine to an interval for P(positive)."""

    def fit(self, scores: ArrayLike, labels: ArrayLike) -> Self:
        """Fit to scores and labels of shape (n_samples,); a label is 1 (positive) or 0."""
        ...

    def predict_interval(self, scores: ArrayLike) -> Floats:
        """Return an array of shape (n_samples, 2): lower and upper probability of each score."""
        ...
