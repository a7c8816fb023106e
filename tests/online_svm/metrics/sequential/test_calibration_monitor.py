"""Values that calibration tests bet on, against their definition written out."""

import numpy as np
import pytest

from online_svm.metrics.sequential.calibration_monitor import (
    N_PROBABILITY_BINS,
    Columns,
    calibration_values,
)
from online_svm.stream.scored_rows import ScoredRows


def scored(k, m=60, seed=0):
    rng = np.random.default_rng(seed)
    point = rng.dirichlet(np.ones(k), m)
    point[:3] = np.eye(k)[[0, 1, 1]]  # certain ones lie in the last bin, or the first
    truth, category = rng.integers(0, k, m), rng.integers(0, 4, m)
    scores = rng.normal(size=(m, 1 if k == 2 else k))
    parts = (truth, point, point, point, point, scores, category)
    return ScoredRows(np.arange(m), tuple("abcde"[:k]), *parts, model=1)


def defined(rows, columns, width):
    values = [[float("nan")] * width for _ in range(len(rows))]
    for i, p in enumerate(rows.point.tolist()):
        truth, own, category = rows.columns[i], rows.own[i], rows.category[i]
        chosen = 1 if len(p) == 2 else own
        of = {columns.overall: (truth == own) - p[own]}
        of |= {columns.of_class[k]: (truth == k) - p[k] for k in range(len(p))}
        if category < len(columns.of_category):
            of[columns.of_category[category]] = (truth == chosen) - p[chosen]
        of[columns.of_bin[min(int(N_PROBABILITY_BINS * p[chosen]), N_PROBABILITY_BINS - 1)]] = (
            truth == chosen
        ) - p[chosen]
        for column, value in of.items():
            if column >= 0:
                values[i][column] = value
    return np.array(values)


@pytest.mark.parametrize("k", [2, 3, 5])
def test_a_row_has_a_value_in_each_part_it_is_of(k):
    rows = scored(k)
    of_class = np.r_[-1, 1 : 1 + (k - 1)]
    columns = Columns(0, of_class, np.array([6, -1, 5]), np.array([7, 8, -1, 9, 10]))
    found = calibration_values(rows, columns, 11)
    np.testing.assert_array_equal(found, defined(rows, columns, 11))
    assert np.isnan(found).any(axis=0).tolist()[5:] == [True] * 6
