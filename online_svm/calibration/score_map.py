"""Base classes of calibrators: fit to scores and labels, predict, store and restore.

They follow scikit-learn's estimator conventions (parameters, repr, tags) without importing
scikit-learn at start: the import takes a second, during which a worker would be blocked.
"""

from abc import ABC, abstractmethod
from functools import cache
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar, Self

from numpy.typing import ArrayLike

from online_svm.calibration.diagram import (
    TiedCounts,
    check_scores,
    check_training,
    check_weights,
    pool_ties,
    pool_weights,
)
from online_svm.errors import InvalidInput
from online_svm.storage.state_schema import StateSchema
from online_svm.types import Arrays, Bools, Floats, Weights

if TYPE_CHECKING:
    from sklearn.utils import Tags


class FittedMap(ABC):
    """Parameters, repr, tags and stored state of a calibrator.

    A subclass declares its stored fields (`_fields`) and names one attribute that exists only after
    `fit` (`_learned`).
    """

    _learned: ClassVar[str]
    _fields: ClassVar[StateSchema]
    _dimensions: ClassVar[int] = 1
    """Number of axes of the scores."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002  (none is nested)
        """Return the parameters by name, as scikit-learn's estimators do."""
        return {name: getattr(self, name) for name in sorted(signature(type(self)).parameters)}

    def set_params(self, **changes: Any) -> Self:
        """Set parameters, as scikit-learn's estimators do; `fit` checks their values.

        Raises InvalidInput if a parameter name is unknown.
        """
        known = self.get_params()
        for name, value in changes.items():
            if name not in known:
                raise InvalidInput(f"{name}: {type(self).__name__} has no such parameter")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = signature(type(self)).parameters
        params = self.get_params().items()
        changed = [f"{name}={value!r}" for name, value in params if value != defaults[name].default]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_tags__(self) -> "Tags":
        from sklearn.utils import InputTags, Tags, TargetTags

        is_flat = self._dimensions == 1
        shapes = InputTags(one_d_array=is_flat, two_d_array=not is_flat)
        return Tags(estimator_type=None, target_tags=TargetTags(required=True), input_tags=shapes)

    def state(self) -> Arrays:
        """Return the fitted map as one-dimensional arrays of float64 or int64.

        Raises InvalidInput if the map is not fitted.
        """
        self._require_fit()
        return self._state()

    @classmethod
    def from_state(cls, state: Arrays) -> Self:
        """Restore a fitted map from `state`.

        Raises InvalidSnapshot if an array is absent or has another type, length or range.
        """
        restored = cls()
        restored._load(state)
        return restored

    def _state(self) -> Arrays:
        return self._fields.arrays_of(self)

    def _load(self, state: Arrays) -> None:
        self._fields.fill(self, None, state)

    def _check_parameters(self) -> None:  # noqa: B027  (most maps have none)
        """Raise InvalidInput if a parameter is out of its range."""

    def _require_fit(self) -> None:
        if not hasattr(self, self._learned):
            name = type(self).__name__
            raise _not_fitted_map()(f"{name}: not fitted yet; call fit(scores, labels) first")


@cache
def _not_fitted_map() -> type[InvalidInput]:
    """Return the error class for unfitted maps: an InvalidInput and a NotFittedError."""
    from sklearn.exceptions import NotFittedError

    class NotFittedMap(InvalidInput, NotFittedError):
        __qualname__ = "NotFittedMap"

    return NotFittedMap


def __getattr__(name: str) -> Any:
    """Return `NotFittedMap` by name, so that the error can be unpickled in another process."""
    if name != "NotFittedMap":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _not_fitted_map()


class ScoreMap(FittedMap):
    """A calibrator from two-class scores to P(positive).

    A subclass implements `_fit` and `_predict`. Fitted on no examples, every map returns 1/2; the
    online protocol of the papers starts there.
    """

    @abstractmethod
    def _fit(self, scores: Floats, positive: Bools) -> None: ...

    @abstractmethod
    def _predict(self, scores: Floats) -> Floats: ...

    def fit(self, scores: ArrayLike, labels: ArrayLike) -> Self:
        """Fit to scores and labels, both of shape (n_samples,); 1 is positive, 0 is negative.

        Raises InvalidInput if a score is not finite, a label is not 0 or 1, or the lengths differ.
        With raw targets, also if no finite optimum exists (a single class, or separable scores).
        """
        self._check_parameters()
        self._fit(*check_training(scores, labels))
        return self

    def predict(self, scores: ArrayLike) -> Floats:
        """Return P(positive) for each score, shape (n_samples,).

        Raises InvalidInput if a score is not finite, or the map is not fitted.
        """
        return self._predict(self._asked(scores))

    def predict_unchecked(self, scores: Floats) -> Floats:
        """Predict without checks; the scores must be finite and the map fitted."""
        return self._predict(scores)

    def _asked(self, scores: ArrayLike) -> Floats:
        """Check that the map is fitted, and return the checked scores."""
        self._require_fit()
        return check_scores(scores)


class IntervalMap(ScoreMap):
    """A calibrator that also returns an interval for P(positive); see `_interval`."""

    @abstractmethod
    def _interval(self, scores: Floats) -> Floats: ...

    def predict_interval(self, scores: ArrayLike) -> Floats:
        """Return a lower and an upper probability of the positive class, shape (n_samples, 2).

        `VennAbers` returns p0 and p1; an evidential map returns belief and plausibility. Raises
        InvalidInput if a score is not finite, or the map is not fitted.
        """
        return self._interval(self._asked(scores))


class CountsMap(ScoreMap):
    """A calibrator whose fit depends only on the counts at the distinct scores.

    Several such maps can share one count. A subclass implements `_fit_counts`.
    """

    @abstractmethod
    def _fit_counts(self, counts: TiedCounts) -> None: ...

    def fit_counts(self, counts: TiedCounts) -> Self:
        """Fit as `fit` does, given the counts of the examples."""
        self._check_parameters()
        self._fit_counts(counts)
        return self

    def _fit(self, scores: Floats, positive: Bools) -> None:
        self._fit_counts(pool_ties(scores, positive))


class WeightedMap(ScoreMap):
    """A calibrator whose fit accepts sample weights; a subclass implements `_fit_weighted`."""

    @abstractmethod
    def _fit_weighted(self, scores: Floats, positive: Bools, weights: Weights) -> None: ...

    def fit(
        self, scores: ArrayLike, labels: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit as `ScoreMap.fit` does; an example of whole weight w counts as w examples.

        Also raises InvalidInput if a weight, shape (n_samples,), is negative or not finite.

        Examples
        --------
        >>> from online_svm import IsotonicMap
        >>> IsotonicMap().fit([1.0, 1.0], [0, 1], sample_weight=[1.0, 3.0]).values_
        array([0.75])
        """
        if sample_weight is None:
            return super().fit(scores, labels)
        self._check_parameters()
        values, positive = check_training(scores, labels)
        weights = check_weights(sample_weight, len(values))
        kept = weights > 0
        self._fit_weighted(values[kept], positive[kept], weights[kept])
        return self


class WeightedCountsMap(CountsMap, WeightedMap):
    """A `CountsMap` that accepts weights: sums of weights replace the counts."""

    def _fit_weighted(self, scores: Floats, positive: Bools, weights: Weights) -> None:
        self._fit_counts(pool_weights(scores, positive, weights))
