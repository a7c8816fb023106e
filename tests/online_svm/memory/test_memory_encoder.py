"""The memory's encoder: codes by first learning, columns that are only added, parts of times."""

import math
from datetime import UTC, datetime

import numpy as np

from online_svm.memory.encoder import FIRST_CODE, MISSING, UNKNOWN, MemoryEncoder
from online_svm.stream.cells import cell


def cells(*rows):
    return np.array([[cell(value) for value in row] for row in rows])


def fitted(rows, **settings):
    encoder = MemoryEncoder(**{"max_categories": 64} | settings)
    encoder.add_columns(rows)
    return encoder


def test_a_value_has_its_code_from_when_it_is_learned():
    rows = cells(["b"], ["a"], ["b"], [None])
    encoder = fitted(cells(*[["b"]] * 3, *[["a"]] * 3))
    assert encoder.encode(rows, learn=False)[:, 0].tolist() == [UNKNOWN] * 3 + [MISSING]
    assert encoder.encode(rows, learn=True)[:, 0].tolist() == [2, 3, 2, MISSING]
    assert encoder.encode(cells(["c"], ["a"]), learn=False)[:, 0].tolist() == [UNKNOWN, 3]


def test_values_beyond_the_limit_share_a_code():
    rows = cells(*[[f"v{k}"] for k in (0, 0, 1, 1, 2, 3, 2, 3)])
    encoder = fitted(rows, max_categories=2)
    shared = FIRST_CODE + 2
    found = encoder.encode(rows, learn=True)[:, 0].tolist()
    assert found == [2, 2, 3, 3, shared, shared, shared, shared]
    assert encoder.encode(cells(["new"]), learn=False)[0, 0] == shared


def test_a_feature_with_another_kind_gets_a_further_column():
    encoder = fitted(cells([1], [2]))
    former = encoder.encode(cells([7]), learn=True)
    encoder.add_columns(cells(*[["red", 1]] * 4))
    rows = encoder.encode(cells(["red", 3], [5, None]), learn=True)
    np.testing.assert_array_equal(former, [[7]])
    np.testing.assert_array_equal(rows, [[math.nan, 2, 3], [5, 3, math.nan]])
    encoder.add_columns(cells([1, 1]))
    assert len(encoder.columns) == 3


def test_a_time_is_hour_weekday_day_of_year_and_day():
    moments = [datetime(2024, 2, 29, 13, 30, tzinfo=UTC), datetime(1969, 12, 31, 1, tzinfo=UTC)]
    rows = cells(*[[moment] for moment in moments])
    hours, weekdays, days_of_year, days = fitted(rows).encode(rows, learn=True).T
    np.testing.assert_array_equal(hours, [13.5, 1.0])
    np.testing.assert_array_equal(weekdays, [moment.weekday() for moment in moments])
    np.testing.assert_allclose(days_of_year, [59, 364], atol=1.0)
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    np.testing.assert_array_equal(days, [(moment - epoch).days for moment in moments])


def test_texts_have_no_column_and_rows_without_names_are_numbers():
    texts = cells(*[[f"text number {k}", k] for k in range(9)])
    assert [column.source for column in fitted(texts).columns] == [1]
    X = np.array([[1.0, np.nan], [3.0, 4.0]])
    np.testing.assert_array_equal(fitted(X, is_named=False).encode(X, learn=True), X)


def test_a_declared_boolean_reads_yes_and_no():
    encoder = fitted(cells(["yes"]), declared=("boolean",))
    found = encoder.encode(cells(["no"], [True], [0], ["?"]), learn=True)[:, 0]
    np.testing.assert_array_equal(found, [0.0, 1.0, 0.0, np.nan])
