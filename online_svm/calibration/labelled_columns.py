"""Scores with class labels, one column a map, and what several maps need of them."""

import numpy as np
from numpy.typing import ArrayLike

from online_svm.calibration.argument_checks import check_finite
from online_svm.calibration.diagram import TiedCounts, pool_ties
from online_svm.errors import InvalidInput
from online_svm.types import Bools, Floats, Ints


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


def check_codes(codes: ArrayLike, n_samples: int, n_classes: int) -> Ints:
    """Return class codes as int64, or raise InvalidInput if one is not in [0, n_classes).

    Examples
    --------
    >>> check_codes([0, 2], 2, 3)
    array([0, 2])
    """
    values = np.asarray(codes)
    if values.shape != (n_samples,) or (values.dtype.kind not in "iub" and n_samples):
        raise InvalidInput(
            f"codes: expected {n_samples} integers, one a row of scores, got {values.dtype} "
            f"of shape {values.shape}"
        )
    if n_samples and not (values.min() >= 0 and values.max() < n_classes):
        raise InvalidInput(f"codes: must lie in 0..{n_classes - 1} for this number of columns")
    return values.astype(np.int64)


def check_columns(scores: ArrayLike) -> Floats:
    """Return rows of scores as float64, or raise InvalidInput if they are no finite matrix.

    Examples
    --------
    >>> check_columns([[1, 2], [3, 4]])
    array([[1., 2.],
           [3., 4.]])
    """
    try:
        columns = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput("scores: expected rows of numbers, all of one length") from error
    if columns.ndim != 2 or not columns.shape[1]:
        raise InvalidInput(
            "scores: expected shape (n, 1) for two classes, or one column a class, "
            f"got {columns.shape}"
        )
    return check_finite(columns, "scores")
