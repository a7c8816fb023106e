"""Read examples from data frames of pandas, polars, Arrow or any library that narwhals supports."""

from collections.abc import Iterator, Sequence
from math import isnan
from typing import Any

import numpy as np

from online_svm.errors import InvalidExample, InvalidInput
from online_svm.stream.cells import GAP, cell, time_of
from online_svm.stream.input_batch import Example
from online_svm.stream.labels import text_of
from online_svm.stream.schema import FeatureSchema, invalid_values
from online_svm.types import Floats


def examples(
    frame: Any, label: str | None = None, *, id: str | None = None, time: str | None = None
) -> Iterator[Example]:
    """Yield the rows of a data frame in order, as examples with named features.

    A value is a number, a text, a boolean, a time or a gap, as in JSON and CSV.

    Parameters
    ----------
    frame : data frame
        In memory.
    label : str, optional
        Column of the label; a gap means an unlabelled example.
    id : str, optional
        Column of the producer's id.
    time : str, optional
        Column of the time of an example, for a horizon in time.

    Raises
    ------
    InvalidInput
        If a column does not exist, or a time is malformed.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": [39, None], "country": ["DE", "FR"], "y": ["no", "yes"]})
    >>> [(example.x, example.y) for example in examples(frame, "y")]
    [({'age': 39.0, 'country': 'DE'}, 'no'), ({'age': nan, 'country': 'FR'}, 'yes')]
    """
    import narwhals as nw

    table = nw.from_native(frame, eager_only=True)
    for name in (label, id, time):
        if name is not None and name not in table.columns:
            raise InvalidInput(f"no column {name!r}; there are {', '.join(table.columns)[:200]}")
    for row in table.iter_rows(named=True):
        y, sent, at = (None if name is None else row.pop(name) for name in (label, id, time))
        yield Example(
            row,
            None if _is_gap(y) else text_of(y),
            id=None if _is_gap(sent) else str(sent),
            time=None if time is None else _time(at, time),
        )


def cells(frame: Any, names: Sequence[str]) -> Floats:
    """Return columns of a data frame as cells, shape (n_rows, len(names)); see `stream.cells`.

    A name without a column gives a column of gaps. Raises InvalidExample if a value is an array, an
    object, or another type that no table holds.
    """
    import narwhals as nw

    table = nw.from_native(frame, eager_only=True)
    found = np.full((len(table), len(names)), GAP)
    columns = set(table.columns)
    for i, name in enumerate(names):
        if name in columns:
            found[:, i] = _column(table[name], name)
    return found


def rows(frame: Any, schema: FeatureSchema) -> Floats:
    """Convert a data frame to rows of a schema, shape (n_rows, schema.dimension).

    Raises InvalidExample if a row cannot be answered; see `FeatureSchema.row`.
    """
    if not schema.is_mixed or schema.names is None:
        return np.array([schema.row(example.x) for example in examples(frame)])
    import narwhals as nw

    names = nw.from_native(frame, eager_only=True).columns
    return schema.finished(cells(frame, schema.names), names)


def is_frame(table: Any) -> bool:
    """Return whether an object is a data frame in memory whose columns have names."""
    import narwhals as nw

    if not nw.dependencies.is_into_dataframe(table):
        return False
    names = nw.from_native(table, eager_only=True).columns
    return bool(names) and all(isinstance(name, str) for name in names)


def numbers(X: Floats, names: Sequence[str], schema: FeatureSchema) -> Floats:
    """Convert rows of numbers with these column names to rows of a schema of cells."""
    known = schema.names or ()
    found = np.full((len(X), len(known)), GAP)
    for column, name in zip(X.T, names, strict=True):
        if name in known:
            found[:, known.index(name)] = _of_numbers(column)
    return schema.finished(found, names)


def _of_numbers(values: Floats) -> Floats:
    return np.where(invalid_values(values, allows_missing=False), GAP, values + 0.0)


def _column(values: Any, name: str) -> Floats:
    if values.dtype.is_float() or (values.dtype.is_integer() and not values.null_count()):
        return _of_numbers(np.asarray(values.to_numpy(), dtype=np.float64))
    try:
        return np.array([cell(value) for value in values.to_list()], dtype=np.float64)
    except InvalidExample as error:
        raise error.of_feature(name) from None


def _is_gap(value: Any) -> bool:
    return not isinstance(value, str) and isnan(cell(value))


def _time(value: Any, name: str) -> int:
    found = time_of(value)
    if found is None or found < 0:
        raise InvalidInput(f"{name} is {str(value)[:40]!r}, no time")
    return found
