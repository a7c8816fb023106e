"""Columns of the memory's trees: an encoder whose columns are only ever added.

The encoder of the window (`refit.feature_encoder`) is replaced when the rows of the window require
it. Rows of the memory outlive that, so their columns keep their meaning:

========  =====================================================================================
kind      columns
========  =====================================================================================
number    its value; NaN if it is missing
boolean   1 or 0; NaN if it is missing
category  a code, given when a value is first learned; beyond `max_categories` values share one
time      hour of the day, day of the week, day of the year, and days since 1970
text      none
========  =====================================================================================

A feature whose kind has changed gets further columns; its former ones are then missing.

The forests are fitted on bins of these columns (`BinnedRows`). The edges of the bins stay until the
number of rows has doubled, or there is a further column; then they are computed again from the raw
cells. So most fits need the bins of new rows alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

import numpy as np

from online_svm.memory.rows import LabelledRows
from online_svm.refit.committee.forest import BINS, bins_of, edges_of
from online_svm.refit.feature_encoder import (
    BOOLEAN,
    CATEGORY,
    MAX_CATEGORIES,
    NUMBER,
    TEXT,
    TIME,
)
from online_svm.refit.time_columns import fill_times
from online_svm.storage.state import require
from online_svm.storage.state_schema import StateSchema, Stored, floats, ints, number, part
from online_svm.stream.cells import (
    FALSE,
    FALSE_TEXTS,
    KINDS,
    MAX_FEATURE_SIZE,
    TRUE,
    TRUE_TEXTS,
    found_kind,
    sorts,
)
from online_svm.types import Arrays, Bools, Bytes, Floats

MISSING, UNKNOWN, FIRST_CODE = 0, 1, 2
"""Codes of a missing category and of one that was not learned yet; the codes of values follow."""

MAX_VALUES = 250
"""Limit on the values of a category with codes of their own: a code is a bin."""

_DAY, _WEEK, _YEAR = 86_400_000.0, 7.0, 365.2425  # milliseconds; days
_EPOCH_WEEKDAY = 3.0  # 1970-01-01 was a Thursday
TIME_PARTS = 4


ENCODER_SCHEMA = StateSchema(ints("columns", "c 3"), floats("cells", "t"), ints("places", "t"))


class EncodedColumn(NamedTuple):
    """A column: its feature, the feature's kind, and the part of a time."""

    source: int  # index of the feature in a row of cells
    kind: int
    part: int = 0


@dataclass
class MemoryEncoder:
    """The columns of the memory.

    Examples
    --------
    >>> from online_svm.stream.cells import cell
    >>> rows = np.array([[cell(v) for v in row] for row in (["red", 1], ["blue", 2], ["red", 3])])
    >>> encoder = MemoryEncoder()
    >>> encoder.add_columns(rows)
    >>> encoder.encode(rows[:1], learn=True), encoder.encode(rows, learn=False)[:, 0]
    (array([[2., 1.]]), array([2., 1., 2.]))
    """

    declared: Sequence[str] = ()  # declared kinds of the first features
    is_named: bool = True  # otherwise all features are numbers
    max_categories: int = MAX_CATEGORIES
    columns: list[EncodedColumn] = field(default_factory=list)
    # One dict for each column: codes of the values of a category, by their cell.
    codes: list[dict[float, int]] = field(default_factory=list)

    @property
    def are_categories(self) -> Bools:
        """Whether each column holds codes, shape (width,)."""
        return np.array([column.kind == CATEGORY for column in self.columns], dtype=np.bool_)

    def add_columns(self, rows: Floats) -> None:
        """Add the columns of features of `rows`, shape (n, n_features), that have none yet."""
        known = {(column.source, column.kind) for column in self.columns}
        found = sorts(rows) if self.is_named else None
        for f in range(rows.shape[1]):
            kind = NUMBER
            if f < len(self.declared):
                kind = KINDS.index(self.declared[f])
            elif found is not None:
                kind = found_kind(rows[:, f], found[:, f])
            if kind in (-1, TEXT) or (f, kind) in known:
                continue
            parts = TIME_PARTS if kind == TIME else 1
            self.columns += [EncodedColumn(f, kind, part) for part in range(parts)]
            self.codes += [{} for _ in range(parts)]

    def encode(self, rows: Floats, *, learn: bool) -> Floats:
        """Return the columns of rows, shape (n, width).

        `learn`: whether values of categories that have no code get one.
        """
        out = np.empty((len(rows), len(self.columns)))
        numbers = [c for c, (f, kind, _) in enumerate(self.columns) if kind == NUMBER]
        numbers = [c for c in numbers if self.columns[c].source < rows.shape[1]]
        values = rows[:, [self.columns[c].source for c in numbers]]
        out[:, numbers] = np.where(np.abs(values) <= MAX_FEATURE_SIZE, values, np.nan)
        for c, column in enumerate(self.columns):
            if c in numbers:
                continue
            if column.source >= rows.shape[1]:
                out[:, c] = MISSING if column.kind == CATEGORY else np.nan
                continue
            cells = rows[:, column.source]
            if column.kind == BOOLEAN:
                out[:, c] = _truths(cells)
            elif column.kind == TIME:
                out[:, c] = _part_of_time(cells, column.part)
            else:
                out[:, c] = self._coded(cells, self.codes[c], learn=learn)
        return out

    def state(self) -> Arrays:
        """Return the columns, and the values of categories in the order of their codes."""
        places = [c for c, codes in enumerate(self.codes) for _ in codes]
        return {
            "columns": np.array(self.columns, dtype=np.int64).reshape(-1, 3),
            "cells": np.array([cell for codes in self.codes for cell in codes]),
            "places": np.array(places, dtype=np.int64),
        }

    def restore(self, state: Arrays) -> None:
        """Continue from a state; raises InvalidSnapshot if it does not fit."""
        held = ENCODER_SCHEMA.values(MemoryEncoder, None, state)
        self.columns = [EncodedColumn(*column) for column in held["columns"].tolist()]
        self.codes = [{} for _ in self.columns]
        for c, cell in zip(held["places"].tolist(), held["cells"].tolist(), strict=True):
            self.codes[c][cell] = FIRST_CODE + len(self.codes[c])
        require(all(len(codes) <= MAX_VALUES for codes in self.codes), "cells")

    def _coded(self, cells: Floats, codes: dict[float, int], *, learn: bool) -> Floats:
        """Return the codes of a category's cells, in the order in which they are learned."""
        values, firsts, places = np.unique(cells, return_index=True, return_inverse=True)
        found = np.empty(len(values))
        limit = min(self.max_categories, MAX_VALUES)
        for i in np.argsort(firsts).tolist():
            value = float(values[i])
            if value != value:
                found[i] = MISSING
            elif value in codes:
                found[i] = codes[value]
            elif len(codes) < limit and learn:
                codes[value] = found[i] = FIRST_CODE + len(codes)
            else:
                found[i] = FIRST_CODE + limit if len(codes) >= limit else UNKNOWN
        return np.asarray(found[places])


def _truths(cells: Floats) -> Floats:
    is_true = (cells == 1.0) | (cells == TRUE) | np.isin(cells, TRUE_TEXTS)
    is_false = (cells == 0.0) | (cells == FALSE) | np.isin(cells, FALSE_TEXTS)
    return np.where(is_true, 1.0, np.where(is_false, 0.0, np.nan))


def _part_of_time(cells: Floats, part: int) -> Floats:
    """Return the hour of the day, the day of the week or of the year, or the day since 1970."""
    times = np.empty(len(cells))
    fill_times(np.ascontiguousarray(cells), times)
    days = np.floor(times / _DAY)
    if part == 0:
        return np.asarray((times - days * _DAY) / 3_600_000.0)
    if part == 1:
        return np.asarray(days + _EPOCH_WEEKDAY - _WEEK * np.floor((days + _EPOCH_WEEKDAY) / _WEEK))
    if part == 2:
        return np.asarray(days - _YEAR * np.floor(days / _YEAR))
    return days


class Edges(NamedTuple):
    """Bin edges of the columns."""

    values: Floats  # shape (width, BINS - 1)

    @classmethod
    def fit(cls, X: Floats, are_categories: Bools) -> Self:
        """Return the edges of encoded rows; codes of categories need none.

        The first edge of a column with missing values is below all values: these have bin 0.
        """
        edges = np.full((X.shape[1], BINS - 1), np.finfo(np.float64).max)
        for c in np.flatnonzero(~are_categories).tolist():
            values = X[~np.isnan(X[:, c]), c]
            found = edges_of(values[:, None])[0] if len(values) else edges[c]
            if len(values) < len(X):
                found = np.append(np.finfo(np.float64).min, found[:-1])
            edges[c] = found
        return cls(edges)

    def bins(self, X: Floats, are_categories: Bools) -> Bytes:
        """Return the bins of encoded rows, shape (n, width); the code in a category's column."""
        bins = np.ascontiguousarray(bins_of(X, self.values).T)
        of = np.flatnonzero(are_categories)
        bins[:, of] = X[:, of].astype(np.uint8)
        return bins


class BinnedRows(Stored):
    """Encoder and edges of the memory, and the bins of the rows of the last fit."""

    _stored = StateSchema(
        part("encoder"), number("_stop"), number("_renewed_at"),
        floats("edges", f"width {BINS - 1}"),
    )  # fmt: skip

    def __init__(self, encoder: MemoryEncoder) -> None:
        self.encoder = encoder
        self.edges: Floats = np.empty((0, BINS - 1))
        self._stop = 0  # number after the newest encoded row
        self._renewed_at = 0  # number of the fit that computed the edges
        # Computed again from the rows after a restore.
        self._bins: Bytes | None = None  # shape (n, width)
        self._numbers = np.empty(0, dtype=np.int64)  # shape (n,); of these rows

    @property
    def are_categories(self) -> Bools:
        """Whether each column with edges holds codes, shape (width,)."""
        return self.encoder.are_categories[: len(self.edges)]

    def update(self, rows: LabelledRows, number: int) -> Bytes:
        """Learn the rows that are new; return the bins of all, shape (n, width).

        `number`: of the row after the last; it decides when edges are renewed.
        """
        is_new = rows.numbers >= self._stop
        self.encoder.add_columns(rows.X[is_new])
        is_wider = len(self.encoder.columns) > len(self.edges)
        if is_wider or number >= 2 * self._renewed_at:
            # Older rows may have values in a further column.
            encoded = self.encoder.encode(rows.X, learn=True)
            self.edges = Edges.fit(encoded, self.encoder.are_categories).values
            self._renewed_at = number
            self._bins = self._binned(encoded)
        else:
            new = self._binned(self.encoder.encode(rows.X[is_new], learn=True))
            old = self._known(rows.chosen(~is_new))
            self._bins = np.concatenate([old, new])
        self._stop, self._numbers = number, rows.numbers
        return self._bins

    def of(self, rows: LabelledRows, edges: Floats) -> Bytes:
        """Return the bins of rows by other edges, those of an earlier fit."""
        encoded = self.encoder.encode(rows.X, learn=False)[:, : len(edges)]
        return Edges(edges).bins(encoded, self.encoder.are_categories[: len(edges)])

    def _known(self, rows: LabelledRows) -> Bytes:
        """Return the bins of rows that were encoded before."""
        if self._bins is None or not np.isin(rows.numbers, self._numbers).all():
            return self.of(rows, self.edges)
        return self._bins[np.searchsorted(self._numbers, rows.numbers)]

    def _binned(self, encoded: Floats) -> Bytes:
        return Edges(self.edges).bins(encoded, self.are_categories)

    def copied_encoder(self) -> MemoryEncoder:
        """Return a copy of the encoder, which later rows do not change."""
        codes = [dict(each) for each in self.encoder.codes]
        return replace(self.encoder, columns=[*self.encoder.columns], codes=codes)
