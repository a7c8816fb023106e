"""Decode a batch of ordinary entries, column by column.

An entry is ordinary if this module can prove that `decode_entry` would accept it with the same
result. If a batch has any other entry, `decode_columns` returns None, and the caller splits the
batch.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any

import numpy as np
import orjson

from online_svm.errors import InvalidExample
from online_svm.stream.cells import GAP, cell
from online_svm.stream.input_batch import SliceValue
from online_svm.stream.schema import FeatureSchema, invalid_values
from online_svm.types import Floats
from workers.config.settings import Limits
from workers.message.entry_decode import (
    LARGE_BYTES,
    MAX_FIELDS,
    EntryFields,
    check_size,
    check_values,
    pairs,
    read_id,
    read_label,
    read_probability,
    read_slices,
    read_target,
    read_time,
    read_version,
)

Times = list[int | None]
Columns = dict[bytes, Sequence[bytes]]
Texts = list[str | None]
Numbers = list[float | None]
Slices = list[SliceValue | None]

_LARGE = 1 << 20  # bytes of a column of features beyond which its values are counted before parsing

_LAYOUTS = frozenset(
    frozenset((features, *target, *id, *slices))
    for features in (b"x", b"xb")
    for target in ((), (b"y",), (b"p",))
    for id in ((), (b"id",))
    for slices in ((), (b"s",))
)
_CELL_TYPES = frozenset((float, int, str, bool, type(None)))
"""Types of the values in an ordinary object of named cells."""

_TIMED_LAYOUTS = frozenset(layout | {b"time"} for layout in _LAYOUTS)
"""Layouts of a feed whose horizon counts time."""

_SCORES = frozenset((b"score", b"score_version"))
_FEATURES = frozenset((b"x", b"xb"))


def decode_columns(
    batch: Sequence[EntryFields], schema: FeatureSchema, limits: Limits
) -> tuple[Floats, Texts, Numbers, Slices, Texts, Times] | None:
    """Return X, labels, probabilities, slices, ids and times; None if an entry is not ordinary."""
    columns = _columns(batch, schema) if batch and schema.dimension is not None else None
    if columns is None:
        return None
    # The bytes of an entry that consists of the longest value of each field.
    size = sum(len(name) + max(map(len, column)) for name, column in columns.items())
    if size > limits.max_entry_bytes:
        return None
    count = len(batch)
    try:
        labels = _categorical_column(columns.get(b"y"), count, lambda raw: read_label(raw, schema))
        ids = _column(columns.get(b"id"), count, read_id)
        probabilities = _column(columns.get(b"p"), count, lambda raw: read_probability(raw, schema))
        slices = _categorical_column(columns.get(b"s"), count, lambda raw: read_slices(raw, schema))
        times = _column(columns.get(b"time"), count, read_time)
        X = _features(columns, schema) if schema.scores is None else _scored(columns, schema)
    except (InvalidExample, ValueError, TypeError, KeyError):
        return None
    has_cells = schema.is_mixed and (schema.scores is not None or not _are_arrays(columns))
    if not has_cells and np.count_nonzero(invalid_values(X, False)):
        return None
    return X, labels, probabilities, slices, ids, times


def looks_ordinary(fields: EntryFields, schema: FeatureSchema, limits: Limits) -> bool:
    """Return whether an entry is probably ordinary, which only `decode_columns` proves."""
    if not _may_be_layout(fields):
        return False
    given = dict(pairs(fields))
    try:
        check_size(fields, limits)
        read_target(given, schema)
        # Features beside a score that are not known yet must be learned, an entry after the other.
        if schema.scores is not None and (schema.scores.is_alone or not given.keys() & _FEATURES):
            return b"score" in given
        if b"x" not in given:
            return len(given.get(b"xb", b"")) == 8 * _array_width(schema)
        check_values(given[b"x"], schema, limits)
        x = orjson.loads(given[b"x"])
        values = x.values() if isinstance(x, dict) else x
        if schema.is_mixed and isinstance(x, dict):
            return x.keys() <= schema.known.keys() and _CELL_TYPES.issuperset(map(type, values))
        is_row = 0 < len(values) == _array_width(schema)
        return is_row and {float, int}.issuperset(map(type, values))
    except (InvalidExample, ValueError, TypeError):
        return False


def _may_be_layout(fields: EntryFields) -> bool:
    """Return whether an entry has few enough fields to be ordinary."""
    return len(fields) <= (MAX_FIELDS if isinstance(fields, Mapping) else 2 * MAX_FIELDS)


def _columns(batch: Sequence[EntryFields], schema: FeatureSchema) -> Columns | None:
    """Return the values by field; None unless all entries have the same valid fields."""
    if len(set(map(type, batch))) > 1 or len(set(map(len, batch))) > 1:
        return None
    if not _may_be_layout(batch[0]):
        return None
    try:
        if isinstance(batch[0], Mapping):
            rows: Sequence[Any] = batch
            columns: Columns = {name: [fields[name] for fields in rows] for name in batch[0]}
        else:
            columns = _columns_of_lists(batch)
    except (KeyError, ValueError):
        return None
    layouts, names = _TIMED_LAYOUTS if schema.counts_time else _LAYOUTS, frozenset(columns)
    if schema.scores is not None and b"score" in names:
        names -= _SCORES
        names |= set() if b"xb" in names else {b"x"}
    return columns if names in layouts else None


def _columns_of_lists(batch: Sequence[Any]) -> Columns:
    """Return the columns of flat lists with the same names in the same order."""
    names = batch[0][::2]
    if any(fields[::2] != names for fields in batch[1:]):
        raise ValueError("names differ")
    if len(set(names)) != len(names):
        raise ValueError("a name is there twice")
    flat = list(zip(*batch, strict=True))
    return dict(zip(names, flat[1::2], strict=True))


def _column(raws: Sequence[bytes] | None, count: int, read: Callable[[bytes], Any]) -> list[Any]:
    """Return the values of a field; all None without the field."""
    return [None] * count if raws is None else list(map(read, raws))


def _categorical_column(
    raws: Sequence[bytes] | None, count: int, read: Callable[[bytes], Any]
) -> list[Any]:
    """Decode a column like `_column`, but read each of its few different values once."""
    known = {raw: read(raw) for raw in set(raws or ())}
    return _column(raws, count, known.__getitem__)


def _features(columns: Columns, schema: FeatureSchema) -> Floats:
    """Parse the column of features; any exception means that an entry is not ordinary."""
    if schema.is_full and _are_arrays(columns):
        raise ValueError("an array has no place that says which names were passed over")
    if b"xb" in columns:
        return _raw_matrix(columns[b"xb"], _array_width(schema))
    values, width = columns[b"x"], schema.dimension or 0
    # Each value gets its own brackets, so half a value, or two values, would change the shape. JSON
    # strings cannot contain a line break, so no string extends over two values.
    joined = b"[[" + b"],\n[".join(values) + b"]]"
    if len(joined) > _LARGE or max(map(len, values)) > LARGE_BYTES:
        _check_density(joined, len(values), width, schema.names or ())
    if values[0][:1] == b"[":
        return _array_matrix(joined, len(values), _array_width(schema))
    if schema.is_mixed:
        return _mixed_matrix(joined, len(values), schema)
    return _named_matrix(joined, len(values), schema.names or ())


def _scored(columns: Columns, schema: FeatureSchema) -> Floats:
    """Return rows of features and scores, each of which is a number; arrays give x0, x1, ..."""
    assert schema.scores is not None
    raws, versions = columns.get(b"score"), columns.get(b"score_version")
    count, width = len(next(iter(columns.values()))), schema.dimension or 0
    X = np.full((count, width), GAP)
    if not schema.scores.is_alone and (b"x" in columns or b"xb" in columns):
        if _are_arrays(columns):
            features = _features(columns, schema)
            places = [schema.known[f"x{i}"] for i in range(features.shape[1])]
            X[:, places] = _as_cells(features)
        elif any(b'"score' in r or b"\\" in r for r in columns[b"x"]):
            raise ValueError("features with a name of the score's")
        else:
            X = _features(columns, schema)
    n_scores = schema.scores.n_scores
    if raws is not None:
        values = orjson.loads(b"[" + b",".join(raws) + b"]")
        if n_scores > 1 or len(values) != count or not {float, int}.issuperset(map(type, values)):
            raise ValueError("not a number for each example")
        X[:, :n_scores] = schema.scores.log_odds(np.array(values, dtype=np.float64)[:, None])
    if versions is not None:
        read = {raw: cell(schema.scores.version(read_version(raw))) for raw in set(versions)}
        X[:, n_scores] = [read[raw] for raw in versions]
    return X


def _n_reserved(schema: FeatureSchema) -> int:
    """Return the number of first columns of a row that hold its score."""
    return 0 if schema.scores is None else len(schema.scores.names)


def _array_width(schema: FeatureSchema) -> int:
    """Return the number of features of an ordinary array; 0 if no array is ordinary."""
    if schema.scores is None:
        return schema.dimension or 0
    width = (schema.dimension or 0) - _n_reserved(schema)
    return width if all(f"x{i}" in schema.known for i in range(width)) else 0


def _raw_matrix(column: Sequence[bytes], width: int) -> Floats:
    if set(map(len, column)) != {8 * width}:
        raise ValueError("rows of different lengths")
    raw = np.frombuffer(b"".join(column), dtype="<f8")
    return raw.reshape(len(column), width).astype(np.float64)


def _array_matrix(joined: bytes, count: int, width: int) -> Floats:
    # "true", "false" and "null" contain a "u" or an "s", unlike numbers.
    if b'"' in joined or b"u" in joined or b"s" in joined:
        raise ValueError("not only arrays of numbers")
    return _matrix([row for (row,) in orjson.loads(joined)], count, width)


def _named_matrix(joined: bytes, count: int, names: tuple[str, ...]) -> Floats:
    if b"true" in joined or b"false" in joined or b"null" in joined:
        raise ValueError("not only objects of numbers")
    # A name has two quotation marks. More of them show a repeated name, or a string as a value.
    if joined.count(b'"') != 2 * len(names) * count:
        raise ValueError("a name too many or too few")
    rows = [row for (row,) in orjson.loads(joined)]
    if set(map(len, rows)) != {len(names)}:
        raise ValueError("names missing or too many")
    return _matrix(list(map(_values_of(names), rows)), count, len(names))


def _are_arrays(columns: Columns) -> bool:
    return b"xb" in columns or columns[b"x"][0][:1] == b"["


def _mixed_matrix(joined: bytes, count: int, schema: FeatureSchema) -> Floats:
    """Return objects of named cells as a matrix; an unknown name raises."""
    rows = [row for (row,) in orjson.loads(joined)]
    if len(rows) != count or set(map(type, rows)) != {dict}:
        raise ValueError("not an object for each example")
    reserved = _n_reserved(schema)  # columns that `_scored` fills
    names, quotes = (schema.names or ())[reserved:], joined.count(b'"') // 2
    is_complete = bool(names) and set(map(len, rows)) == {len(names)} and not schema.is_full
    has_literals = b"true" in joined or b"false" in joined or b"null" in joined
    X = np.full((count, schema.dimension or 0), GAP)
    if is_complete and quotes == count * len(names) and not has_literals:
        X[:, reserved:] = _number_cells(rows, names)
    # A string has two quotation marks. More of them may show a repeated name.
    elif quotes != sum(map(len, rows)) + sum(type(v) is str for r in rows for v in r.values()):
        raise ValueError("a name may be there twice")
    elif is_complete:
        values = chain.from_iterable(map(_values_of(names), rows))
        X[:, reserved:] = np.array([cell(value) for value in values]).reshape(count, -1)
    else:
        X = _scattered_cells(rows, schema)
    return X


def _number_cells(rows: Sequence[dict[str, float]], names: tuple[str, ...]) -> Floats:
    """Return complete objects of numbers as cells."""
    values = chain.from_iterable(map(_values_of(names), rows))
    found = np.fromiter(values, dtype=np.float64, count=len(rows) * len(names))
    return _as_cells(found).reshape(len(rows), -1)


def _as_cells(X: Floats) -> Floats:
    """Turn an array of numbers into cells, in place."""
    X += 0.0  # -0 is 0
    X[invalid_values(X, False)] = GAP
    return X


def _scattered_cells(rows: Sequence[Mapping[str, Any]], schema: FeatureSchema) -> Floats:
    """Return objects with missing names as cells."""
    places, width = schema.known, schema.dimension or 0
    if not all(row and row.keys() <= places.keys() for row in rows):
        raise ValueError("an example has a name that is not known, or none")
    X = np.full(len(rows) * width, GAP)
    at = [i * width + places[name] for i, row in enumerate(rows) for name in row]
    X[at] = [cell(value) for row in rows for value in row.values()]
    return X.reshape(len(rows), width)


def _check_density(joined: bytes, count: int, width: int, names: tuple[str, ...]) -> None:
    """Raise ValueError if a large column has more values than `count` rows of numbers."""
    in_names = sum(name.count(mark) for name in names for mark in ",[{")
    if sum(joined.count(mark) for mark in (b",", b"[", b"{")) > count * (width + 2 + in_names):
        raise ValueError("not only rows of numbers")


def _matrix(rows: Sequence[Sequence[float]], count: int, width: int) -> Floats:
    """Return rows of numbers as a matrix; any other value raises."""
    if len(rows) != count or set(map(len, rows)) != {width}:
        raise ValueError("rows of different lengths")
    values = np.fromiter(chain.from_iterable(rows), dtype=np.float64, count=count * width)
    return values.reshape(count, width)


def _values_of(names: tuple[str, ...]) -> Callable[[dict[str, float]], Sequence[float]]:
    """Return a function that returns the values of an object in the order of `names`."""
    if len(names) == 1:
        return lambda row: (row[names[0]],)
    return itemgetter(*names)
