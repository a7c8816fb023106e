"""FittedMap: check, fit, ask and store a map of scores and 0/1 labels."""

from abc import ABC, abstractmethod
from typing import ClassVar, Self

from numpy.typing import ArrayLike

from online_svm.calibration.argument_checks import (
    check_fitted,
    check_scores,
    check_training,
    check_weights,
)
from online_svm.calibration.diagram import TiedCounts, pool_ties, pool_weights
from online_svm.types import Arrays, Bools, Floats, Weights


class FittedMap(ABC):
    """What every map does alike: check scores and labels, ask to be fitted, be stored.

    A subclass says how it is fitted (`_fit`), and what of it is stored (`_state`) and read back
    (`_from_state`); `_learned` names an attribute that it has once it is fitted.
    """

    _learned: ClassVar[str]

    @abstractmethod
    def _fit(self, scores: Floats, positive: Bools) -> None: ...

    @abstractmethod
    def _state(self) -> Arrays: ...

    @classmethod
    @abstractmethod
    def _from_state(cls, state: Arrays) -> Self: ...

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

    def _check_parameters(self) -> None:  # noqa: B027  (most maps have none)
        """Raise InvalidInput if a parameter is out of its range."""

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
        return cls._from_state(state)

    def _require_fit(self) -> None:
        check_fitted(hasattr(self, self._learned), type(self).__name__)

    def _asked(self, scores: ArrayLike) -> Floats:
        """Return the scores that a fitted map is asked about."""
        self._require_fit()
        return check_scores(scores)


class CountsMap(FittedMap):
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


class WeightedMap(FittedMap):
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


class PointMap(FittedMap):
    """A map that gives one probability for a score; a subclass says which (`_predict`)."""

    @abstractmethod
    def _predict(self, scores: Floats) -> Floats: ...

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
