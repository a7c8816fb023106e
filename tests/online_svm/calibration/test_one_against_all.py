"""Maps of each class against the rest, against each map by itself."""

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
from online_svm.calibration.one_against_all import LabelledColumns, OneAgainstAll, normalise_rows
from online_svm.calibration.score_map import CountsMap
from online_svm.errors import InvalidInput, InvalidSnapshot

COUNTING = [IsotonicMap, ScoreBinning, VennAbers, EvidentialBinning, EvidentialIsotonic]


def three_classes(n=200):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, size=n)
    return rng.normal(size=(n, 3)) + 1.5 * np.eye(3)[codes], codes


@pytest.mark.parametrize("make_map", [*COUNTING, PlattScaling])
@pytest.mark.parametrize("n_columns", [1, 3])
@pytest.mark.parametrize("n", [0, 1, 90])
def test_each_column_has_its_own_map_and_rows_sum_to_one(make_map, n_columns, n):
    rng = np.random.default_rng(n + n_columns)
    scores = rng.integers(-9, 9, size=(n, n_columns)) / 4.0
    codes = rng.integers(0, max(n_columns, 2), n)
    columns = LabelledColumns(scores, codes)
    asked = rng.normal(size=(50, n_columns))
    for _ in range(2):  # what the first set of maps asked for serves the second
        fitted = OneAgainstAll(make_map).fit_columns(columns)
        each = []
        for j, map_ in enumerate(fitted.maps_):
            alone = make_map().fit(scores[:, j], codes == (1 if n_columns == 1 else j))
            for name, values in map_.state().items():
                np.testing.assert_array_equal(values, alone.state()[name])
            each.append(alone.predict(asked[:, j]))
        each = [1.0 - each[0], each[0]] if n_columns == 1 else each
        expected = np.array(each).T / np.sum(each, axis=0)[:, None]
        found = fitted.predict(asked)
        np.testing.assert_allclose(found, expected, rtol=1e-14)
        for part in (OneAgainstAll(make_map).restore(fitted.state()), fitted):
            assert part.predict(asked).tobytes() == found.tobytes()
            assert part.predict(np.asfortranarray(asked)).tobytes() == found.tobytes()
        rows = [fitted.predict(asked[i : i + 1]) for i in range(50)]
        assert np.concatenate(rows).tobytes() == found.tobytes()


def test_maps_of_the_counts_share_one_count_of_a_column():
    columns = LabelledColumns([[0.0], [1.0], [1.0]], [0, 1, 0])
    assert columns.counts(0) is columns.counts(0)
    assert all(isinstance(make_map(), CountsMap) for make_map in COUNTING)
    assert not isinstance(PlattScaling(), CountsMap)


def test_a_row_that_sums_to_zero_becomes_uniform():
    scores = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    fitted = OneAgainstAll(lambda: ScoreBinning(2)).fit(scores, [0, 1, 2])
    assert fitted.predict([[0.0, 0.0, 0.0]]).tolist() == [[1 / 3, 1 / 3, 1 / 3]]


def test_rows_are_added_from_the_left_in_every_memory_order():
    rows = np.random.default_rng(2).random((9, 11))
    expected = []
    for row in rows.tolist():
        total = 0.0
        for value in row:
            total += value
        expected.append([value / total for value in row])
    assert normalise_rows(rows).tolist() == expected
    assert normalise_rows(np.asfortranarray(rows)).tolist() == expected


def test_a_state_without_one_of_its_maps_is_refused():
    scores, codes = three_classes(30)
    state = OneAgainstAll(PlattScaling).fit(scores, codes).state()
    with pytest.raises(InvalidSnapshot, match="options"):
        OneAgainstAll(PlattScaling).restore(
            {name: array for name, array in state.items() if not name.startswith("maps.2.")}
        )


@pytest.mark.parametrize(
    ("scores", "codes", "told"),
    [
        ([[0.0] * 3, [1.0, 0.0, 0.0]], [0, 3], "codes:"),
        ([[0.0] * 3, [1.0, 0.0, 0.0]], [-1, 0], "codes:"),
        ([[0.0] * 3, [1.0, 0.0, 0.0]], [0.5, 1.0], "codes:"),
        ([[0.0] * 3, [1.0, 0.0, 0.0]], [0], "codes:"),
        ([1.0, 2.0], [0, 1], "scores: expected shape"),
    ],
)
def test_scores_and_codes_that_do_not_fit_are_refused(scores, codes, told):
    with pytest.raises(InvalidInput, match=told):
        OneAgainstAll(PlattScaling).fit(scores, codes)
    with pytest.raises(InvalidInput, match="expected 3 columns, as in fit, got 1"):
        OneAgainstAll(PlattScaling).fit(*three_classes(30)).predict([[1.0]])
