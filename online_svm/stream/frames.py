"""Read examples from data frames of pandas, polars, Arrow or any library that narwhals supports."""

from collections.abc import Iterator, Mapping, Sequence
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

    check_table(frame)
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


def check_rows(X: Any, argument: str = "X") -> None:
    """Raise InvalidInput for rows that are not in memory, or can be read only once.

    `argument`: the name of X in the caller's signature, for the message.
    """
    import narwhals as nw

    if nw.dependencies.is_into_dataframe(X):
        return
    if isinstance(nw.from_native(X, pass_through=True), nw.LazyFrame):
        raise InvalidInput(f"{argument}: a lazy frame holds no rows yet; give {argument}.collect()")
    if isinstance(X, Iterator):
        raise InvalidInput(
            f"{argument}: rows can be read only once from an iterator; give list({argument})"
        )


def check_table(X: Any, argument: str = "X") -> None:
    """Raise InvalidInput as `check_rows`, or for sparse or masked rows, dicts, or equal names."""
    import narwhals as nw

    check_rows(X, argument)
    if hasattr(X, "toarray"):  # every sparse matrix and array of scipy has it; one kind is a dict
        raise InvalidInput(
            f"{argument}: sparse rows are not taken; give dense ones, as {argument}.toarray()"
        )
    if np.ma.is_masked(X):
        raise InvalidInput(
            f"{argument}: masked values are not taken; give them as NaN: "
            f"{argument}.astype(float).filled(float('nan'))"
        )
    is_list = isinstance(X, Sequence) or (isinstance(X, np.ndarray) and X.ndim == 1)
    first = X[0] if is_list and len(X) else X
    if isinstance(first, Mapping):
        raise InvalidInput(
            f"{argument}: rows as dicts are not taken; give a frame, as "
            f"pandas.DataFrame({argument})"
        )
    names = column_names(X) if nw.dependencies.is_into_dataframe(X) else []
    if twice := [name for name in names if names.count(name) > 1]:
        raise InvalidInput(
            f"{argument}: two columns have the name {twice[0]!r}; rename one of them"
        )


def column_names(frame: Any) -> list[Any]:
    """Return the names of the columns of a data frame in memory, which may be the same."""
    return list(frame.column_names if hasattr(frame, "column_names") else frame.columns)


def scores_by_name(X: Any, classes: Sequence[Any] | None = None, argument: str = "X") -> Floats:
    """Return scores as numbers, with one column a class in the order of `classes`.

    `classes`: None for the codes 0, 1, ..., one a column.

    Columns with the names of the classes may come in any order. Without names, or with the names 0,
    1, ... that a frame has by default, they are taken by position. So is a single column, which is
    about the second of two classes.

    Raises InvalidInput if several columns have other names, or the single one has the name of the
    first class; TypeError or ValueError if a score is no number.
    """
    import narwhals as nw

    check_table(X, argument)
    names = []
    if nw.dependencies.is_into_series(X):
        names = [nw.from_native(X, series_only=True).name or None]
    elif nw.dependencies.is_into_dataframe(X):
        names = column_names(X)
    scores = np.asarray(X, dtype=np.float64)
    are_numbers = not any(isinstance(name, bool) for name in names)  # False equals 0
    if names == [None] or (are_numbers and names == [*range(len(names))]):
        return scores
    if classes is None:
        classes = range(max(2, len(names)))
    places = {text: k for k, label in enumerate(classes) for text in (str(label), text_of(label))}
    order = [places.get(text_of(name)) for name in names]
    if len(order) == 1 and order != [0]:
        return scores
    if {*order} != {*range(len(classes))}:
        raise InvalidInput(
            f"{argument}: it has the columns {_listed(names)}; give one for each of the classes, "
            f"{_listed(classes)}, or an array in this order"
        )
    return scores[:, np.argsort(np.array(order))]


def _listed(names: Sequence[Any]) -> str:
    return ", ".join(map(repr, names))[:200]


def is_frame(table: Any) -> bool:
    """Return whether an object is a data frame in memory whose columns have names."""
    import narwhals as nw

    if not nw.dependencies.is_into_dataframe(table):
        return False
    names = column_names(table)
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
