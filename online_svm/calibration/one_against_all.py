"""Multi-class calibration from two-class maps: one map a class, then normalisation."""

from collections.abc import Callable
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from online_svm.calibration.diagram import TiedCounts, check_codes, check_columns, pool_ties
from online_svm.calibration.score_map import CountsMap, IntervalMap, ScoreMap
from online_svm.errors import InvalidInput
from online_svm.storage.state import State, under
from online_svm.storage.state_schema import StateSchema, StoredArrays, one, record
from online_svm.types import Bools, Floats


class LabelledColumns:
    """Checked scores and class codes; each column is sorted and counted once for all maps.

    Parameters and errors are as in `OneAgainstAll.fit`.
    """

    def __init__(self, scores: ArrayLike, codes: ArrayLike) -> None:
        self.scores = check_columns(scores)
        n_samples, n_columns = self.scores.shape
        self._codes = check_codes(codes, n_samples, max(n_columns, 2))
        self._counts: dict[int, TiedCounts] = {}

    def __len__(self) -> int:
        return int(self.scores.shape[1])

    def positive(self, j: int) -> Bools:
        """Return a mask of the examples whose class is that of column `j`."""
        first = 1 if len(self) == 1 else 0
        return np.asarray(self._codes == first + j)

    def counts(self, j: int) -> TiedCounts:
        """Return the counts at each distinct score of column `j`; computed once."""
        if j not in self._counts:
            column = np.ascontiguousarray(self.scores[:, j])
            self._counts[j] = pool_ties(column, self.positive(j))
        return self._counts[j]


class OneAgainstAll(StoredArrays):
    """Probabilities of K classes from one score map a class (Zadrozny & Elkan 2002).

    Each map is fitted on the scores of its class, with that class as positive. The K values are
    divided by their sum; a row of zeros becomes uniform. A single column of scores means two
    classes; its map returns P(class 1). The probabilities carry no validity guarantee.

    Parameters
    ----------
    make_map : callable
        Returns an unfitted ScoreMap: a class such as `PlattScaling`, or a function.

    Attributes
    ----------
    maps_ : list of ScoreMap
        One map a column of scores.

    Examples
    --------
    >>> from online_svm import ScoreBinning
    >>> fitted = OneAgainstAll(lambda: ScoreBinning(2)).fit([[-1.0], [1.0]], [0, 1])
    >>> fitted.predict([[-3.0], [3.0]])
    array([[1., 0.],
           [0., 1.]])
    """

    _stored = StateSchema(
        one("_n_maps", least=1, below=1 << 16),
        record("_fitted_maps", stored_as="maps", of="_restored_maps"),
    )
    maps_: list[ScoreMap]

    def __init__(self, make_map: Callable[[], ScoreMap]) -> None:
        self.make_map = make_map

    def fit(self, scores: ArrayLike, codes: ArrayLike) -> Self:
        """Fit one map to each column.

        `scores` has shape (n_samples, n_classes), or for two classes (n_samples, 1), positive for
        class 1; `codes`, shape (n_samples,), holds the class of each example, from 0. Raises
        InvalidInput if a score is not finite, a code is out of range, or the lengths differ.
        """
        return self.fit_columns(LabelledColumns(scores, codes))

    def fit_columns(self, columns: LabelledColumns) -> Self:
        """Fit as `fit` does, on columns that several calibrators share."""
        self.maps_ = [_fitted(self.make_map(), columns, j) for j in range(len(columns))]
        return self

    def predict(self, scores: ArrayLike) -> Floats:
        """Return the probability of each class, shape (n_samples, n_classes).

        Raises InvalidInput if a score is not finite, the number of columns differs from `fit`, or
        the maps are not fitted.
        """
        return self.predict_unchecked(self._columns(scores))

    def predict_unchecked(self, scores: Floats) -> Floats:
        """Predict without checks; the scores must be finite and have the columns of `fit`."""
        if len(self.maps_) == 1:
            return both_classes(self._points(0, scores))
        each = [self._points(j, scores) for j in range(len(self.maps_))]
        return normalise_rows(np.column_stack(each))

    def predict_interval(self, scores: ArrayLike) -> Floats:
        """Return lower and upper probabilities, shape (n_samples, n_classes, 2).

        The interval of a class comes from its own map, one against the rest; intervals are not
        normalised over the classes. Errors are as in `predict`; maps without intervals are one too.
        """
        columns = self._columns(scores)
        each = [_interval(map_, columns[:, j]) for j, map_ in enumerate(self.maps_)]
        if len(each) == 1:
            each.insert(0, 1.0 - each[0][:, ::-1])
        return np.stack(each, axis=1)

    @property
    def _n_maps(self) -> int:
        return len(self.__dict__.get("maps_", ()))

    @_n_maps.setter
    def _n_maps(self, count: int) -> None:
        self.maps_ = count * [self.make_map()]  # the restored ones replace it

    @property
    def _fitted_maps(self) -> list[ScoreMap]:
        self._require_fit()
        return self.maps_

    @_fitted_maps.setter
    def _fitted_maps(self, maps: list[ScoreMap]) -> None:
        self.maps_ = maps

    def _restored_maps(self, state: State) -> list[ScoreMap]:
        kind = type(self.make_map())
        return [kind.from_state(under(str(j), state.arrays)) for j in range(self._n_maps)]

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
    """Return the probabilities of both classes, shape (m, 2), given P(class 1)."""
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
    """Divide each row, shape (n_samples, n_classes), by its sum; a row of zeros becomes uniform.

    Values are non-negative and are added from left to right.
    """
    total = values[:, 0].copy()
    for column in values.T[1:]:  # the order of np.sum depends on the shape
        total += column
    empty = total == 0.0
    shares = values / np.where(empty, 1.0, total)[:, np.newaxis]
    shares[empty] = 1.0 / values.shape[1]
    return shares
