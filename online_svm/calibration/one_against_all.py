"""Several classes from two-class maps: one map a class, normalised over the classes."""

from collections.abc import Callable
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from online_svm.calibration.argument_checks import check_codes, check_columns
from online_svm.calibration.diagram import TiedCounts, pool_ties
from online_svm.calibration.score_map import CountsMap, IntervalMap, ScoreMap
from online_svm.errors import InvalidInput
from online_svm.storage.arrays import nest, under
from online_svm.storage.fields import Fields, one
from online_svm.types import Arrays, Bools, Floats


class LabelledColumns:
    """Checked scores and class codes; a column is sorted and counted once for all maps.

    Parameters
    ----------
    scores : array-like of shape (n_samples, 1) or (n_samples, n_classes)
        A single column where positive means class 1 of two, or one column a class.
    codes : array-like of int of shape (n_samples,)
        Class of each example, from 0.

    Raises
    ------
    InvalidInput
        If a score is not finite, a code is out of range, or the lengths differ.

    Examples
    --------
    >>> columns = LabelledColumns([[-1.0], [1.0], [1.0]], [0, 1, 0])
    >>> len(columns), columns.positive(0), columns.counts(0).totals
    (1, array([False,  True, False]), array([1, 2]))
    """

    def __init__(self, scores: ArrayLike, codes: ArrayLike) -> None:
        self.scores = check_columns(scores)
        n_samples, n_columns = self.scores.shape
        self._codes = check_codes(codes, n_samples, max(n_columns, 2))
        self._counts: dict[int, TiedCounts] = {}

    def __len__(self) -> int:
        return int(self.scores.shape[1])

    def positive(self, j: int) -> Bools:
        """Return which examples are of the class of column j."""
        first = 1 if len(self) == 1 else 0
        return np.asarray(self._codes == first + j)

    def counts(self, j: int) -> TiedCounts:
        """Return the examples, and those of the class, at each distinct score of column j."""
        if j not in self._counts:
            column = np.ascontiguousarray(self.scores[:, j])
            self._counts[j] = pool_ties(column, self.positive(j))
        return self._counts[j]


class OneAgainstAll:
    """Probabilities of K classes from one score map for each (Zadrozny & Elkan 2002).

    The map of a class is fitted on that class's column of scores, with the class as positive. The
    K values are divided by their sum; a row of zeros becomes uniform. A single column stands for
    two classes: its map gives P(class 1). The result is a point, and carries no guarantee.

    Parameters
    ----------
    make_map : callable returning a ScoreMap
        Makes an unfitted map: a class such as `PlattScaling`, or a function.

    Attributes
    ----------
    maps_ : list of ScoreMap
        One a column of scores.

    Examples
    --------
    >>> from online_svm import ScoreBinning
    >>> fitted = OneAgainstAll(lambda: ScoreBinning(2)).fit([[-1.0], [1.0]], [0, 1])
    >>> fitted.predict([[-3.0], [3.0]])
    array([[1., 0.],
           [0., 1.]])
    """

    maps_: list[ScoreMap]

    def __init__(self, make_map: Callable[[], ScoreMap]) -> None:
        self.make_map = make_map

    def fit(self, scores: ArrayLike, codes: ArrayLike) -> Self:
        """Fit one map a column.

        Parameters
        ----------
        scores : array-like of shape (n_samples, 1) or (n_samples, n_classes)
            A single column where positive means class 1 of two, or one column a class.
        codes : array-like of int of shape (n_samples,)
            Class of each example, from 0.

        Returns
        -------
        OneAgainstAll
            Itself.

        Raises
        ------
        InvalidInput
            If a score is not finite, a code is out of range, or the lengths differ.

        Examples
        --------
        >>> from online_svm import PlattScaling
        >>> scores = [[1.0, -1.0, -1.0], [-1.0, 1.0, -1.0], [-1.0, -1.0, 1.0]]
        >>> len(OneAgainstAll(PlattScaling).fit(scores, [0, 1, 2]).maps_)
        3
        """
        return self.fit_columns(LabelledColumns(scores, codes))

    def fit_columns(self, columns: LabelledColumns) -> Self:
        """Fit one map a column, as `fit` does, by what other maps may have asked for already.

        Examples
        --------
        >>> from online_svm import IsotonicMap
        >>> columns = LabelledColumns([[-1.0], [1.0]], [0, 1])
        >>> OneAgainstAll(IsotonicMap).fit_columns(columns).predict([[0.0]])
        array([[0.5, 0.5]])
        """
        self.maps_ = [_fitted(self.make_map(), columns, j) for j in range(len(columns))]
        return self

    def predict(self, scores: ArrayLike) -> Floats:
        """Return the probability of every class for each row of scores.

        Parameters
        ----------
        scores : array-like of shape (n_samples, 1) or (n_samples, n_classes)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Rows sum to one.

        Raises
        ------
        InvalidInput
            If a score is not finite, the number of columns differs from that of `fit`, or nothing
            is fitted.

        Examples
        --------
        >>> from online_svm import PlattScaling
        >>> OneAgainstAll(PlattScaling).fit([[-1.0], [1.0]], [0, 1]).predict([[0.0]])
        array([[0.5, 0.5]])
        """
        return self.predict_unchecked(self._columns(scores))

    def predict_unchecked(self, scores: Floats) -> Floats:
        """Do what `predict` does for scores of as many columns that are known to be finite.

        Examples
        --------
        >>> from online_svm import PlattScaling
        >>> fitted = OneAgainstAll(PlattScaling).fit([[-1.0], [1.0]], [0, 1])
        >>> fitted.predict_unchecked(np.array([[0.0]]))
        array([[0.5, 0.5]])
        """
        if len(self.maps_) == 1:
            return both_classes(self._points(0, scores))
        each = [self._points(j, scores) for j in range(len(self.maps_))]
        return normalise_rows(np.column_stack(each))

    def predict_interval(self, scores: ArrayLike) -> Floats:
        """Return a lower and an upper probability of every class for each row of scores.

        A class has the interval of its own map, against the rest: unlike the points, intervals
        are not brought together over the classes.

        Parameters
        ----------
        scores : array-like of shape (n_samples, 1) or (n_samples, n_classes)

        Returns
        -------
        ndarray of shape (n_samples, n_classes, 2)

        Raises
        ------
        InvalidInput
            As `predict`; or if the maps give no intervals.

        Examples
        --------
        >>> from online_svm import VennAbers
        >>> fitted = OneAgainstAll(VennAbers).fit([[-1.0], [1.0]], [0, 1])
        >>> fitted.predict_interval([[2.0]]).tolist()
        [[[0.0, 0.5], [0.5, 1.0]]]
        """
        columns = self._columns(scores)
        each = [_interval(map_, columns[:, j]) for j, map_ in enumerate(self.maps_)]
        if len(each) == 1:
            each.insert(0, 1.0 - each[0][:, ::-1])
        return np.stack(each, axis=1)

    def state(self) -> Arrays:
        """Return the fitted maps as arrays; those of map j are named "j.name".

        Examples
        --------
        >>> from online_svm import PlattScaling
        >>> sorted(OneAgainstAll(PlattScaling).fit([[-1.0], [1.0]], [0, 1]).state())
        ['0.options', '0.parameters', 'n_maps']
        """
        self._require_fit()
        state: Arrays = {"n_maps": np.array([len(self.maps_)], dtype=np.int64)}
        for j, map_ in enumerate(self.maps_):
            state |= nest(str(j), map_.state())
        return state

    @classmethod
    def from_state(cls, state: Arrays, make_map: Callable[[], ScoreMap]) -> Self:
        """Return the fitted maps that `state` describes; `make_map` gives their class.

        Raises
        ------
        InvalidSnapshot
            If an array is absent or has another type or length.

        Examples
        --------
        >>> from online_svm import PlattScaling
        >>> fitted = OneAgainstAll(PlattScaling).fit([[-1.0], [1.0]], [0, 1])
        >>> OneAgainstAll.from_state(fitted.state(), PlattScaling).predict([[0.0]])
        array([[0.5, 0.5]])
        """
        restored = cls(make_map)
        kind = type(make_map())
        count = Fields(one("n_maps")).values(cls, None, state)["n_maps"]
        restored.maps_ = [kind.from_state(under(str(j), state)) for j in range(count)]
        return restored

    def _points(self, j: int, scores: Floats) -> Floats:
        return self.maps_[j].predict_unchecked(np.ascontiguousarray(scores[:, j]))

    def _require_fit(self) -> None:
        if not hasattr(self, "maps_"):
            raise InvalidInput("OneAgainstAll: not fitted yet; call fit(scores, codes) first")

    def _columns(self, scores: ArrayLike) -> Floats:
        self._require_fit()
        columns = check_columns(scores)
        if columns.shape[1] != len(self.maps_):
            raise InvalidInput(
                f"scores: expected {len(self.maps_)} columns, as in fit, got {columns.shape[1]}"
            )
        return columns


def both_classes(positive: Floats) -> Floats:
    """Return the probabilities of two classes, shape (m, 2), from those of the second.

    Examples
    --------
    >>> both_classes(np.array([0.25, 1.0])).tolist()
    [[0.75, 0.25], [0.0, 1.0]]
    """
    both = np.empty((len(positive), 2))
    np.subtract(1.0, positive, out=both[:, 0])
    both[:, 1] = positive
    return both


def _fitted(map_: ScoreMap, columns: LabelledColumns, j: int) -> ScoreMap:
    if isinstance(map_, CountsMap):
        map_.fit_counts(columns.counts(j))
        return map_
    return map_.fit(columns.scores[:, j], columns.positive(j))


def _interval(map_: ScoreMap, scores: Floats) -> Floats:
    if not isinstance(map_, IntervalMap):
        raise InvalidInput(f"{type(map_).__name__}: gives points, no intervals; use predict")
    return map_.predict_interval(scores)


def normalise_rows(values: Floats) -> Floats:
    """Divide each row by its sum, added from the left; a row of zeros becomes uniform.

    Parameters
    ----------
    values : ndarray of shape (n_samples, n_classes)
        Not negative.

    Examples
    --------
    >>> normalise_rows(np.array([[1.0, 3.0], [0.0, 0.0]]))
    array([[0.25, 0.75],
           [0.5 , 0.5 ]])
    """
    total = values[:, 0].copy()
    for column in values.T[1:]:  # np.sum may add in another order, by the shape of the block
        total += column
    empty = total == 0.0
    shares = values / np.where(empty, 1.0, total)[:, np.newaxis]
    shares[empty] = 1.0 / values.shape[1]
    return shares
