"""Parts of rows that calibration tests bet on, against their definition written out."""

import numpy as np
import pytest

from online_svm.metrics.sequential.calibration_monitor import (
    N_PROBABILITY_BINS,
    AnsweredRows,
    Cells,
    Columns,
    _fill,
)
from online_svm.stream.prediction import ScoredRows

M = 60


def scored(k, seed=0):
    rng = np.random.default_rng(seed)
    point = rng.dirichlet(np.ones(k), M)
    point[:3] = np.eye(k)[[0, 1, 1]]  # certain ones lie in the last bin, or the first
    truth, category = rng.integers(0, k, M), rng.integers(-1, 4, M)
    scores = rng.normal(size=(M, 1 if k == 2 else k))
    parts = (truth, point, point, point, point, scores, category)
    return ScoredRows(np.arange(M), tuple("abcde"[:k]), *parts, model=1)


def defined(rows, columns, examples, slices):
    """Part, event, probability and doubt of each cell."""
    for i, p in enumerate(rows.point.tolist()):
        truth, own, category = rows.columns[i], rows.own[i], min(rows.category[i], 2)
        chosen = 1 if len(p) == 2 else own
        b = min(int(N_PROBABILITY_BINS * p[chosen]), N_PROBABILITY_BINS - 1)
        of_category = -1 if category < 0 else columns.of_category[category]
        cells = [(0, own), (columns.of_bin[b], chosen), (of_category, chosen)]
        cells += list(zip(columns.of_class, columns.watched, strict=True))
        for code, table in zip(slices[i], columns.of_slice, strict=True):
            cells.append((-1 if code < 0 else table[min(code, 1)], chosen))
        doubt = 0.0 if examples[i] < 0 else 2.25 / max(examples[i], 1)
        yield [(part, float(truth == k), p[k], doubt) for part, k in cells]


@pytest.mark.parametrize("k", [2, 3, 5])
def test_a_row_has_a_cell_for_each_part_it_is_of(k):
    rows, rng = scored(k), np.random.default_rng(1)
    watched = np.arange(1, k)
    columns = Columns(
        np.array([6, -1, 5]), np.array([7, 8, -1, 9, 10]), watched, 20 + watched,
        np.array([[30, 31], [32, -1]]),
    )  # fmt: skip
    examples, slices = rng.integers(-1, 40, M), rng.integers(-1, 4, (M, 2))
    shape = M, 3 + len(watched) + 2
    found = Cells(np.empty(shape, dtype=np.int64), *(np.empty(shape) for _ in range(3)))
    answered = (rows.point, rows.own, rows.columns, rows.category, examples, slices)
    _fill(*found, AnsweredRows(*answered), columns, k == 2)
    expected = np.array(list(defined(rows, columns, examples, slices)))
    for column, values in enumerate(found):
        np.testing.assert_array_equal(values, expected[..., column])
