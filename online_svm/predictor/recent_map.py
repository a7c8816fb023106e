"""A map fitted to what the models said of the last examples before they learned them."""

from collections.abc import Callable
from typing import Self

import numpy as np

from online_svm.predictor.published_maps import ClassMap, check_n_columns
from online_svm.storage.arrays import nest, require, under
from online_svm.storage.fields import Fields, floats, ints, one
from online_svm.types import Arrays, Floats, Ints

EVERY = 50
"""Learned examples between two fits."""

Fit = Callable[[Floats, Ints], ClassMap]
Restore = Callable[[Arrays], ClassMap]


_SINCE = one("_since", below=EVERY)
_FIELDS = Fields(floats("_scores"), ints("_columns"), _SINCE)


def fit_stops(columns: Ints, since: int) -> list[int]:
    """Return how many rows there are up to each fit, with the one that completes it; and all.

    No fit is due in fewer rows than are left to the next one, labelled or not.

    Parameters
    ----------
    columns : ndarray of shape (m,)
        Of labels that are learned; -1 where there is none.
    since : int
        Labels learned since the last fit.
    """
    left, size = EVERY - since, len(columns)
    if size <= left:
        return [size]
    completing = np.flatnonzero(columns >= 0)[left - 1 :: EVERY]
    stops: list[int] = (completing + 1).tolist()
    return stops if stops and stops[-1] == size else [*stops, size]


class RecentMap:
    """A map of progressive scores: each was given by the model of its time, before its label.

    A model that is fitted on a moving stream looks better on its calibration set, which is as old
    as what it learned, than on what comes next. The scores it gave to what came next know that.
    They are of several models, so nothing exact can be said of them.

    Parameters
    ----------
    size : int
        Labelled examples that are kept: the last ones.
    fit, restore : callable
        Fit a map to scores of shape (n, S) and class columns; read it back from its state.

    Examples
    --------
    >>> from online_svm.calibration.joint.maps import TemperatureScaling as Map
    >>> recent = RecentMap(100, lambda s, y: Map().fit(s, y), Map.from_state)
    >>> scores, columns = np.eye(3)[[0, 1, 2] * 20], np.array([0, 1, 2] * 20)
    >>> said = recent.answer(scores, columns, np.full((60, 3), 1 / 3))
    >>> bool(said[49, 1] > 0.4), bool(said[50, 2] > 0.8)
    (False, True)
    """

    def __init__(self, size: int, fit: Fit, restore: Restore) -> None:
        self._size, self._fit, self._restore = size, fit, restore
        self._forget(1)

    def _forget(self, n_scores: int) -> None:
        self._scores = np.empty((0, n_scores))
        self._columns = np.empty(0, dtype=np.int64)
        self._later: list[tuple[Floats, Ints]] = []  # less than `EVERY` labelled rows
        self._since = 0  # labels learned since the last fit
        self._map: ClassMap | None = None

    def answer(self, scores: Floats, columns: Ints, otherwise: Floats) -> Floats:
        """Answer rows in turn; each labelled one is learned after its answer.

        Parameters
        ----------
        scores : ndarray of shape (m, S)
            Another S than before means other classes: what was learned is forgotten.
        columns : ndarray of shape (m,)
            Columns of known classes; -1 where there is no label, or an unknown one.
        otherwise : ndarray of shape (m, K)
            The answers while there is no fit yet.

        Returns
        -------
        ndarray of shape (m, K)
        """
        if scores.shape[1] != self._scores.shape[1]:
            self._forget(scores.shape[1])
        found = []
        begin = 0
        for stop in fit_stops(columns, self._since):
            rows = slice(begin, stop)
            fitted = self._map
            found.append(
                otherwise[rows] if fitted is None else fitted.predict_unchecked(scores[rows])
            )
            self._learn(scores[rows], columns[rows])
            begin = stop
        return found[0] if len(found) == 1 else np.concatenate(found)

    def _learn(self, scores: Floats, columns: Ints) -> None:
        labelled = columns >= 0
        joining = int(np.count_nonzero(labelled))
        if not joining:
            return
        whole = joining == len(columns)
        self._later.append((scores, columns) if whole else (scores[labelled], columns[labelled]))
        self._since += joining
        if self._since == EVERY:
            self._keep()
            self._map, self._since = self._fit(self._scores, self._columns), 0

    def _keep(self) -> None:
        """Join what was learned since the last call to the rows that are kept."""
        scores = [self._scores, *(scores for scores, _ in self._later)]
        columns = [self._columns, *(columns for _, columns in self._later)]
        self._scores = np.concatenate(scores)[-self._size :]
        self._columns = np.concatenate(columns)[-self._size :]
        self._later = []

    def state(self) -> Arrays:
        """Return the scores, the class columns and the map."""
        self._keep()
        arrays = _FIELDS.arrays_of(self)
        if self._map is not None:
            arrays |= nest("map", self._map.state())
        return arrays

    @classmethod
    def from_state(
        cls, state: Arrays, size: int, fit: Fit, restore: Restore, n_classes: int
    ) -> Self:
        """Return the map of `n_classes` classes that `state` describes.

        Raises
        ------
        InvalidSnapshot, LookupError, ValueError
            If an array is absent or has another type, length or range.
        """
        recent = cls(size, fit, restore)
        n = len(state["columns"])
        if not n:
            return recent
        require(n <= size, "columns")
        machines = 1 if n_classes == 2 else n_classes
        Fields(
            floats("_scores", f"n {machines}"), ints("_columns", "n", below=n_classes), _SINCE
        ).fill(recent, None, state)
        fitted = under("map", state)
        if fitted:
            recent._map = restore(fitted)
            check_n_columns(recent._map, recent._scores.shape[1])
        return recent
