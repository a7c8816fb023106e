"""Values that the calibration tests bet on: y - p of each row, overall and by part."""

from typing import NamedTuple

import numpy as np

from online_svm.compiled.jit import jit
from online_svm.stream.scored_rows import ScoredRows
from online_svm.types import Floats, Ints

BINS = 5
"""Parts of [0, 1] of equal length, by probability."""


class Columns(NamedTuple):
    """Column of the values of each test; -1 for what is not watched.

    Attributes
    ----------
    overall : int
    of_class : ndarray of shape (K,)
    of_category : ndarray of shape (n_categories,)
    of_bin : ndarray of shape (BINS,)
    """

    overall: int
    of_class: Ints
    of_category: Ints
    of_bin: Ints


class Said(NamedTuple):
    """Of each row: the probabilities, the SVM's own class, the true one, and the category."""

    point: Floats
    own: Ints
    truth: Ints
    category: Ints


def calibration_values(rows: ScoredRows, columns: Columns, width: int) -> Floats:
    """Return y - p for each row and test, NaN where a row is not in the part; shape (m, width).

    - Overall: of the SVM's own class, whose y is 1 where it is the true one. (The most probable
      label is chosen by the counts that estimate it: while they are small it is announced with too
      much on i.i.d. examples too.)
    - A class: of that class, in every row.
    - A category, or a bin of probability: of the second of two classes; of more classes, of the
      SVM's own.
    """
    values = np.empty((len(rows), width))
    said = Said(np.ascontiguousarray(rows.point), rows.own, rows.columns, rows.category)
    _fill(values, said, len(rows.classes) == 2, columns)
    return values


@jit
def _fill(values: Floats, said: Said, of_second: bool, columns: Columns) -> None:
    point, own, truth, category = said
    overall, of_class, of_category, of_bin = columns
    values[:] = np.nan
    for i in range(len(point)):
        values[i, overall] = np.float64(truth[i] == own[i]) - point[i, own[i]]
        for k in range(point.shape[1]):
            if of_class[k] >= 0:
                values[i, of_class[k]] = np.float64(truth[i] == k) - point[i, k]
        chosen = 1 if of_second else own[i]
        value = np.float64(truth[i] == chosen) - point[i, chosen]
        if 0 <= category[i] < len(of_category) and of_category[category[i]] >= 0:
            values[i, of_category[category[i]]] = value
        column = of_bin[min(int(point[i, chosen] * len(of_bin)), len(of_bin) - 1)]
        if column >= 0:
            values[i, column] = value
