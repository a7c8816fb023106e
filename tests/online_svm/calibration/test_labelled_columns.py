"""Maps that are fitted on one sort of a column, against each map by itself."""

from collections.abc import Callable

import numpy as np
import pytest

from online_svm import (
    EvidentialBinning,
    EvidentialIsotonic,
    IsotonicMap,
    PlattScaling,
    ScoreBinning,
    VennAbers,
)
from online_svm.calibration.one_against_all import LabelledColumns, OneAgainstAll
from online_svm.calibration.score_map import CountsMap, ScoreMap

COUNTING = [IsotonicMap, ScoreBinning, VennAbers, EvidentialBinning, EvidentialIsotonic]


@pytest.mark.parametrize("make_map", [*COUNTING, PlattScaling])
@pytest.mark.parametrize("n_columns", [1, 3])
@pytest.mark.parametrize("n", [0, 1, 90])
def test_each_column_has_the_map_that_is_fitted_on_it_alone(
    make_map: Callable[[], ScoreMap], n_columns: int, n: int
) -> None:
    rng = np.random.default_rng(n + n_columns)
    scores = rng.integers(-9, 9, size=(n, n_columns)) / 4.0
    codes = rng.integers(0, max(n_columns, 2), n)
    columns = LabelledColumns(scores, codes)
    for _ in range(2):  # what the first set of maps asked for serves the second
        fitted = OneAgainstAll(make_map).fit_columns(columns)
        for j, map_ in enumerate(fitted.maps_):
            alone = make_map().fit(scores[:, j], codes == (1 if n_columns == 1 else j)).state()
            for name, values in map_.state().items():
                np.testing.assert_array_equal(values, alone[name])


def test_maps_of_the_counts_share_one_count_of_a_column() -> None:
    columns = LabelledColumns([[0.0], [1.0], [1.0]], [0, 1, 0])
    assert columns.counts(0) is columns.counts(0)
    assert all(isinstance(make_map(), CountsMap) for make_map in COUNTING)
    assert not isinstance(PlattScaling(), CountsMap)
