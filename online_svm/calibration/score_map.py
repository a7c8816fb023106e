"""Maps from scores to probabilities: what all of them do alike.

A map is fitted to scores and labels, asked for probabilities, stored and read back. It has the
parameters, text and tags of an estimator of scikit-learn, but does not import it: that takes a
second, in which a worker would stand still.
"""

from abc import ABC, abstractmethod
from functools import cache
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar, Self

from numpy.typing import ArrayLike

from online_svm.calibration.argument_checks import check_scores, check_training, check_weights
from online_svm.calibration.diagram import TiedCounts, pool_ties, pool_weights
from online_svm.errors import InvalidInput
from online_svm.storage.fields import Fields
from online_svm.types import Arrays, Bools, Floats, Weights

if TYPE_CHECKING:
    from sklearn.utils import Tags


class FittedMap(ABC):
    """Parameters, text, tags and stored state of a map.

    A subclass declares what of it is stored (`_fields`), and names an attribute that it has once
    it is fitted (`_learned`).

    Examples
    --------
    >>> from sklearn.base import clone
    >>> from online_svm import ScoreBinning
    >>> clone(ScoreBinning(n_bins=5)).set_params(n_bins=3)
    ScoreBinning(n_bins=3)
    """

    _learned: ClassVar[str]
    _fields: ClassVar[Fields]
    _dimensions: ClassVar[int] = 1
    """Axes of the scores."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002  (none is nested)
        """Return the parameters by name, as estimators of scikit-learn do."""
        return {name: getattr(self, name) for name in sorted(signature(type(self)).parameters)}

    def set_params(self, **changes: Any) -> Self:
        """Set some parameters, as estimators of scikit-learn do; `fit` checks them.

        Raises
        ------
        InvalidInput
            If one is unknown.
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

        Raises
        ------
        InvalidInput
            If the map is not fitted.

        Examples
        --------
        >>> from online_svm import VennAbers
        >>> sorted(VennAbers().fit([0.0, 1.0], [0, 1]).state())
        ['p0', 'p1', 'scores']
        """
        self._require_fit()
        return self._state()

    @classmethod
    def from_state(cls, state: Arrays) -> Self:
        """Return the map that `state` describes.

        Raises
        ------
        InvalidSnapshot
            If an array is absent or has another type, length or range.

        Examples
        --------
        >>> from online_svm import IsotonicMap
        >>> state = IsotonicMap().fit([0.0, 1.0], [0, 1]).state()
        >>> IsotonicMap.from_state(state).predict([0.25])
        array([0.25])
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
    """Return the error of a map that was asked before it was fitted, in both hierarchies."""
    from sklearn.exceptions import NotFittedError

    class NotFittedMap(InvalidInput, NotFittedError):
        __qualname__ = "NotFittedMap"

    return NotFittedMap


def __getattr__(name: str) -> Any:
    """Find the class of that error by its name, as where it comes from another process."""
    if name != "NotFittedMap":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _not_fitted_map()


class ScoreMap(FittedMap):
    """A map from scores of a two-class machine to P(positive).

    A subclass says how it is fitted (`_fit`) and what it gives for a score (`_predict`). Every map
    answers 1/2 everywhere when it was fitted on no example at all, which is where the papers'
    online protocol starts.
    """

    @abstractmethod
    def _fit(self, scores: Floats, positive: Bools) -> None: ...

    @abstractmethod
    def _predict(self, scores: Floats) -> Floats: ...

    def fit(self, scores: ArrayLike, labels: ArrayLike) -> Self:
        """Fit to scores and 0/1 labels.

        Parameters
        ----------
        scores : array-like of shape (n_samples,)
        labels : array-like of shape (n_samples,)
            1 for the positive class, 0 for the other.

        Returns
        -------
        Self
            The map itself.

        Raises
        ------
        InvalidInput
            If a score is not finite, a label not 0 or 1, or the lengths differ; with raw targets,
            also where they have no finite optimum (one class only, or separable scores).

        Examples
        --------
        >>> from online_svm import ScoreBinning
        >>> ScoreBinning(n_bins=3).fit([1.0, 1.0, 2.0], [0, 1, 1]).totals_
        array([2, 1])
        """
        self._check_parameters()
        self._fit(*check_training(scores, labels))
        return self

    def predict(self, scores: ArrayLike) -> Floats:
        """Return P(positive) for each score.

        Parameters
        ----------
        scores : array-like of shape (n_samples,)

        Returns
        -------
        ndarray of shape (n_samples,)

        Raises
        ------
        InvalidInput
            If a score is not finite, or the map is not fitted.

        Examples
        --------
        >>> from online_svm import PlattScaling
        >>> PlattScaling().fit([-1.0, 1.0], [0, 1]).predict([1.0]).round(3)
        array([0.667])
        """
        return self._predict(self._asked(scores))

    def predict_unchecked(self, scores: Floats) -> Floats:
        """Do what `predict` does for scores that are known to be finite; nothing is checked.

        Examples
        --------
        >>> import numpy as np
        >>> from online_svm import PlattScaling
        >>> PlattScaling().fit([-1.0, 1.0], [0, 1]).predict_unchecked(np.array([1.0])).round(3)
        array([0.667])
        """
        return self._predict(scores)

    def _asked(self, scores: ArrayLike) -> Floats:
        """Return the scores that a fitted map is asked about."""
        self._require_fit()
        return check_scores(scores)


class IntervalMap(ScoreMap):
    """A map that gives an interval for P(positive) as well; a subclass says which (`_interval`)."""

    @abstractmethod
    def _interval(self, scores: Floats) -> Floats: ...

    def predict_interval(self, scores: ArrayLike) -> Floats:
        """Return the lower and the upper probability of the positive class for each score.

        Of `VennAbers` they are p0 and p1; of an evidential map belief and plausibility.

        Parameters
        ----------
        scores : array-like of shape (n_samples,)

        Returns
        -------
        ndarray of shape (n_samples, 2)

        Raises
        ------
        InvalidInput
            If a score is not finite, or the map is not fitted.

        Examples
        --------
        >>> from online_svm import EvidentialIsotonic, VennAbers
        >>> VennAbers().fit([], []).predict_interval([0.0])
        array([[0., 1.]])
        >>> EvidentialIsotonic("dempster").fit([0.0, 1.0], [0, 1]).predict_interval([0.0, 1.0])
        array([[0. , 0.5],
               [0.5, 1. ]])
        """
        return self._interval(self._asked(scores))


class CountsMap(ScoreMap):
    """A map that needs to know no more than the counts at the distinct scores.

    A subclass says how it is fitted to them (`_fit_counts`). So several maps can be fitted to one
    count.
    """

    @abstractmethod
    def _fit_counts(self, counts: TiedCounts) -> None: ...

    def fit_counts(self, counts: TiedCounts) -> Self:
        """Fit as `fit` does on the examples that were counted.

        Examples
        --------
        >>> import numpy as np
        >>> from online_svm import IsotonicMap
        >>> counts = pool_ties(np.array([0.0, 1.0]), np.array([False, True]))
        >>> IsotonicMap().fit_counts(counts).values_
        array([0., 1.])
        """
        self._check_parameters()
        self._fit_counts(counts)
        return self

    def _fit(self, scores: Floats, positive: Bools) -> None:
        self._fit_counts(pool_ties(scores, positive))


class WeightedMap(ScoreMap):
    """A map whose fit may weigh the examples; a subclass says how (`_fit_weighted`)."""

    @abstractmethod
    def _fit_weighted(self, scores: Floats, positive: Bools, weights: Weights) -> None: ...

    def fit(
        self, scores: ArrayLike, labels: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit to scores and 0/1 labels.

        Parameters
        ----------
        scores : array-like of shape (n_samples,)
        labels : array-like of shape (n_samples,)
            1 for the positive class, 0 for the other.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each example, not negative. A whole weight w counts as w examples, and 0 as
            none.

        Returns
        -------
        Self
            The map itself.

        Raises
        ------
        InvalidInput
            If a score is not finite, a label not 0 or 1, a weight negative or not finite, or the
            lengths differ; with raw targets, also where they have no finite optimum (one class
            only, or separable scores).

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
    """A `CountsMap` in which sums of weights take the place of the counts."""

    def _fit_weighted(self, scores: Floats, positive: Bools, weights: Weights) -> None:
        self._fit_counts(pool_weights(scores, positive, weights))
