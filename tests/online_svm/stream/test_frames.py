"""Rows of data frames, of each library that people use: the same examples as in JSON."""

import json
from datetime import date, datetime, time, timedelta
from decimal import Decimal

import narwhals as nw
import numpy as np
import pandas as pd
import pytest
from system_tools import package

from online_svm.config import PredictorConfig
from online_svm.errors import InvalidExample, InvalidInput
from online_svm.stream import frames
from online_svm.stream.cells import MAX_FEATURE_SIZE, cell
from online_svm.stream.frames import examples
from online_svm.stream.schema import FeatureSchema

COLUMNS = {
    "number": [1.5, None, -2.0, 1e300],
    "whole": [1, None, 3, 2**60],
    "boolean": [True, None, False, True],
    "category": ["DE", None, "007", ""],
    "moment": [datetime(2024, 1, 5, 10, 30), None, datetime(1, 1, 2), datetime(2024, 2, 29)],
    "day": [date(2024, 1, 5), None, date(1969, 12, 31), date(9999, 12, 31)],
    "price": [Decimal("1.20"), None, Decimal("-3.4"), Decimal(0)],
    "spell": [timedelta(hours=1), None, timedelta(days=-2), timedelta(0)],
    "hour": [time(10, 30), None, time(11, 0, 5), time(0)],
    "id": ["a", "b", "3", "d"],
    "sent": [datetime(2024, 1, 5 + i) for i in range(4)],
    "y": [1, None, 0, 1],
}  # fmt: skip


def of_pandas():
    return pd.DataFrame(COLUMNS)


def of_pandas_with_extension_types():
    return pd.DataFrame(COLUMNS).convert_dtypes().astype({"category": "category"})


def of_polars():
    polars = package("polars", "pip install polars")
    return polars.DataFrame(COLUMNS).with_columns(polars.col("category").cast(polars.Categorical))


def of_arrow():
    return package("pyarrow", "pip install 'online-svm[archive]'").table(COLUMNS)


def as_in_json(value):
    """Return what a person sends of a value."""
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    return json.loads(json.dumps(value, default=str))


@pytest.mark.parametrize(
    "frame", [of_pandas, of_pandas_with_extension_types, of_polars, of_arrow],
    ids=lambda make: make.__name__,
)  # fmt: skip
def test_a_data_frame_has_the_cells_of_the_same_json(frame):
    found = list(examples(frame(), "y", id="id", time="sent"))
    assert [example.y for example in found] == ["1", None, "0", "1"]
    assert [example.id for example in found] == COLUMNS["id"]
    assert [example.time for example in found] == [1704412800000 + i * 86_400_000 for i in range(4)]
    for i, example in enumerate(found):
        assert list(example.x) == list(COLUMNS)[:9]
        cells = np.array([cell(value) for value in example.x.values()])
        expected = np.array([cell(as_in_json(COLUMNS[name][i])) for name in example.x])
        # Pandas holds whole numbers as floats where one is missing.
        np.testing.assert_array_equal(cells, expected)
    assert np.isnan([cell(value) for value in found[1].x.values()]).all()


def test_a_missing_column_and_a_wrong_time_are_named():
    with pytest.raises(InvalidInput, match="no column 'label'; there are number, whole"):
        list(examples(of_pandas(), "label"))
    with pytest.raises(InvalidInput, match="category is 'DE', no time"):
        list(examples(of_pandas(), "y", time="category"))


ODD = {
    "number": [1.5, None, -0.0, 1e308, 5e-324],
    "count": [1, 2, 3, 4, 2**60 + 1],
    "text": ["red", "", "1.0", None, "2024-01-05"],
}


@pytest.mark.parametrize(
    "frame",
    [
        of_pandas,
        of_pandas_with_extension_types,
        of_polars,
        of_arrow,
        pd.DataFrame(ODD),
        pd.DataFrame(ODD).astype({"count": "float32"}).convert_dtypes(),
        pd.DataFrame({"mixed": [1, "1", None, float("inf"), np.int64(3)]}, dtype=object),
    ],
)
def test_columns_at_once_are_the_rows_one_by_one(frame):
    table = frame() if callable(frame) else frame
    schema = FeatureSchema(PredictorConfig())
    names = nw.from_native(table, eager_only=True).columns
    for known in (
        schema.knowing(dict.fromkeys([*names, "absent"])),
        schema.knowing({"number": 1}),
        schema.knowing({"number": 1, "text": 2}, max_names=1),
    ):
        rows = [known.row(example.x) for example in examples(table)]
        assert frames.rows(table, known).tobytes() == np.array(rows).tobytes()
    assert frames.rows(table, known)[0, -1] > MAX_FEATURE_SIZE  # that there are further names


def test_a_declared_schema_of_numbers_takes_its_columns_by_name():
    schema = FeatureSchema(PredictorConfig(features=("b", "a")))
    found = frames.rows(pd.DataFrame({"b": [1, 2], "a": [3, 4]}), schema)
    assert found.tolist() == [[3.0, 1.0], [4.0, 2.0]]
    with pytest.raises(InvalidExample, match="'c' is unknown"):
        frames.rows(pd.DataFrame({"b": [1], "c": [3]}), schema)


def test_what_cannot_be_a_value_is_named():
    schema = FeatureSchema(PredictorConfig()).knowing({"a": 1, "b": 2, "c": 3})
    with pytest.raises(InvalidExample, match="feature 'b': a value is an array"):
        frames.rows(pd.DataFrame({"b": [[1, 2]]}), schema)
