"""A ring of the most recent scored examples, their slices, and weighted sums over all examples."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from online_svm.compiled.kernel import kernel
from online_svm.metrics.scores import brier_factor
from online_svm.storage.state import require
from online_svm.storage.state_schema import (
    StateSchema,
    Stored,
    StoredHeader,
    floats,
    ints,
    json_of,
    number,
    texts,
)
from online_svm.stream.alarm import Alarm
from online_svm.stream.input_batch import SliceValue
from online_svm.stream.labels import sorted_labels
from online_svm.stream.notice import Notice
from online_svm.stream.prediction import ScoredRows
from online_svm.stream.validity_report import WeightedScores
from online_svm.types import Floats, Ints

SLICE_VALUES = 20
"""The first so many values of a slice have a code of their own; further values share one."""


class SliceValues(StoredHeader):
    """Codes of the values of several slices, in order of arrival, in bounded memory.

    The first `max_values` values of a slice get codes 0, 1, ...; all later values share the code
    `max_values`. An example without a value has code -1.
    """

    _stored = StateSchema(json_of("_named"))

    def __init__(self, n_slices: int, max_values: int) -> None:
        self._max_values = max_values
        self._codes: list[dict[str, int]] = [{} for _ in range(n_slices)]

    def codes(self, sent: Sequence[SliceValue | None] | None, count: int = 0) -> Ints:
        """Return the codes of the slice values of examples, shape (m, n_slices).

        If `sent` is None, the result is for `count` examples without values.
        """
        size = count if sent is None else len(sent)
        if not self._codes:
            return np.empty((size, 0), dtype=np.int64)
        found = np.full((size, len(self._codes)), -1, dtype=np.int64)
        for row, values in enumerate(sent or ()):
            for j, value in enumerate(values or ()):
                if value is not None:
                    found[row, j] = self._code(j, value)
        return found

    def named(self, j: int) -> list[str | None]:
        """Return the values of slice `j` by code; the last, None, is for all other values."""
        return [*self._codes[j], *[None] * (self._max_values + 1 - len(self._codes[j]))]

    @property
    def _named(self) -> list[list[str]]:
        return [list(codes) for codes in self._codes]

    @_named.setter
    def _named(self, stored: list[list[str]]) -> None:
        require(isinstance(stored, list) and len(stored) == len(self._codes), "slices")
        self._codes = [{name: code for code, name in enumerate(names)} for names in stored]
        require(self._named == stored, "slices")  # lists of different names
        for codes in self._codes:
            require(len(codes) <= self._max_values, "slices")
            require(all(isinstance(name, str) for name in codes), "slices")

    def _code(self, j: int, value: str) -> int:
        codes = self._codes[j]
        code = codes.get(value)
        if code is None:
            if len(codes) == self._max_values:
                return self._max_values
            code = codes[value] = len(codes)
        return code


F = TypeVar("F", Alarm, Notice)


class SliceNames:
    """Names slices, as "country=DE", by the configured names and the received values."""

    def __init__(self, names: Sequence[str], values: SliceValues) -> None:
        self._names, self._values = names, values

    def of(self, coded: str) -> str:
        """Return the name of a slice, which the monitors give as "number=code"."""
        number, code = map(int, coded.split("="))
        value = self._values.named(number)[code]
        name = self._names[number]
        return f"{name}, other values" if value is None else f"{name}={value}"

    def of_finding(self, found: F) -> F:
        """Return an alarm or notice; if it is about a slice, with the name of the slice."""
        if found.scope != "slice" or found.name is None:
            return found
        return replace(found, name=self.of(found.name))

    def of_test(self, test: dict[str, Any]) -> dict[str, Any]:
        """Return a test of a report; if it is about a slice, with the name of the slice."""
        return test | {"name": self.of(test["name"])} if test["scope"] == "slice" else test


Classes = tuple[str | None, ...]

# Indices of the values of each example, and of the weighted sums.
LOWER, PROBABILITY, UPPER, LOG_LOSS, N_VALUES = range(5)
HIT, BRIER, WEIGHT, N_SUMS = 4, 5, 6, 7


class HeldRows(NamedTuple):
    """The held examples, in their places; see `WindowRing`."""

    point: Floats
    values: Floats
    truth: Ints
    label: Ints
    codes: Ints
    weights: Floats


class WindowRing(Stored):
    """The last `size` scored examples; labels have weights up to `most`, if that is not 1."""

    _stored = StateSchema(
        number("count"), texts("_labels", stored_as="classes", optional=True), floats("sums"),
        floats("_held.point", "k n"), floats("_held.values", f"{N_VALUES} n"),
        ints("_held.truth", "n"), ints("_held.label", "n"),
        ints("_held.codes", "._n_slices n", least=-1, below=SLICE_VALUES + 1),
        floats("_held.weights", "n", least=1.0),
    )  # fmt: skip

    def __init__(self, size: int, n_slices: int, most: int = 1) -> None:
        self.size, self._n_slices, self._most = size, n_slices, most
        # Number of examples for which each label stands: whole numbers.
        self.weights = None if most == 1 else np.ones(size)
        self.count = 0  # examples added so far
        self.classes: Classes = ()  # all seen labels, sorted; the slot of unseen labels is last
        self.point = np.zeros((0, size))  # by class; 0 for a class unknown at answer time
        self.truth = np.zeros(size, dtype=np.int64)  # index of the true label in `classes`
        self.label = np.zeros(size, dtype=np.int64)  # index of the predicted label
        self.values = np.zeros((N_VALUES, size))
        self.codes = np.full((n_slices, size), -1, dtype=np.int64)  # values of slices; -1 for none
        self.sums = np.zeros(N_SUMS)  # weighted sums of `values`, hits, Brier sums and ones
        # Classes of the last rows, and the index of each in `classes`.
        self._columns: tuple[Classes, Ints] = ((), np.zeros(0, dtype=np.int64))

    @property
    def held(self) -> int:
        """Number of examples held; they occupy the first places."""
        return min(self.count, self.size)

    @property
    def n_known(self) -> int:
        """Number of classes without the slot of unseen labels."""
        return sum(label is not None for label in self.classes)

    def add(self, rows: ScoredRows) -> None:
        """Add rows; each replaces the oldest one."""
        count = len(rows)
        if not count:
            return
        self._admit(rows.classes)
        weights = np.ones(count) if rows.weights is None else rows.weights
        if self.weights is not None:
            last = np.arange(max(0, count - self.size), count)
            self.weights[(self.count + last) % self.size] = weights[last]
        codes = rows.slices
        if codes is None:
            codes = np.full((count, len(self.codes)), -1, dtype=np.int64)
        _add_rows(
            self.count,
            1.0 - 2.0 / (self.size + 1.0),  # the weighted mean age is then the window's mean age
            (self.point, self.truth, self.label, self.values, self.codes, self.sums),
            self._columns[1],
            (
                np.ascontiguousarray(rows.columns),
                np.ascontiguousarray(rows.point),
                np.ascontiguousarray(rows.lower),
                np.ascontiguousarray(rows.upper),
                np.ascontiguousarray(codes),
                np.ascontiguousarray(weights),
            ),
        )
        self.count += count

    def repeated(self) -> "WindowRing":
        """Return a ring that has each example as often as its weight; self without weights."""
        if self.weights is None or not self.held:
            return self
        at = np.repeat(np.arange(self.held), self.weights[: self.held].astype(np.int64))
        ring = WindowRing(len(at), len(self.codes))
        ring.count, ring.classes = len(at), self.classes
        for name in ("point", "truth", "label", "values", "codes"):
            setattr(ring, name, np.ascontiguousarray(getattr(self, name)[..., at]))
        return ring

    def weighted(self) -> WeightedScores:
        """Return the weighted scores of all examples."""
        row = self.sums.tolist()
        weight = row[WEIGHT]
        if not weight:
            return WeightedScores(0.0, *[None] * 6)
        row[BRIER] *= brier_factor(self.n_known)
        columns = (HIT, LOWER, PROBABILITY, UPPER, LOG_LOSS, BRIER)
        return WeightedScores(weight, *(row[j] / weight for j in columns))

    def _admit(self, classes: Classes) -> None:
        """Add new classes to the ring, and set the columns of the classes for the next rows."""
        if classes == self._columns[0]:
            return
        seen = (*self.classes, *classes)
        known = sorted_labels(list({label for label in seen if label is not None}))
        union = (*known, None) if None in seen else known
        if union != self.classes:
            moved = np.array([union.index(label) for label in self.classes], dtype=np.int64)
            point = np.zeros((len(union), self.size))
            if self.count:
                point[moved] = self.point
                self.truth, self.label = moved[self.truth], moved[self.label]
            self.point, self.classes = point, union
        columns = np.array([union.index(label) for label in classes], dtype=np.int64)
        self._columns = (classes, columns)

    @property
    def _held(self) -> HeldRows:
        weights = np.ones(self.size) if self.weights is None else self.weights
        held = HeldRows(self.point, self.values, self.truth, self.label, self.codes, weights)
        return held._replace(**{k: v[..., : self.held] for k, v in held._asdict().items()})

    @_held.setter
    def _held(self, rows: HeldRows) -> None:
        held, k = self.held, len(self.classes)
        require(rows.point.shape == (k, held), "point")
        require(rows.truth.max(initial=-1) < k, "truth")
        require(rows.label.max(initial=-1) < k, "label")
        require(rows.weights.max(initial=1.0) <= self._most, "weights")
        self.point = np.zeros((k, self.size))
        to = (self.point, self.values, self.truth, self.label, self.codes)
        for array, values in zip(to, rows, strict=False):
            array[..., :held] = values
        if self.weights is not None:
            self.weights[:held] = rows.weights

    @property
    def _labels(self) -> list[str | None]:
        return list(self.classes)

    @_labels.setter
    def _labels(self, labels: list[str | None]) -> None:
        require(len(set(labels)) == len(labels), "classes")
        self.classes = tuple(labels)


@kernel
def _add_rows(
    count: int,
    kept: float,
    ring: tuple[Floats, Ints, Ints, Floats, Ints, Floats],
    to: Ints,
    added: tuple[Ints, Floats, Floats, Floats, Ints, Floats],
) -> None:
    """Add rows whose column j is of class to[j]; weighted sums decay by the factor `kept`.

    `added` are `truth`, shape (m,), `point`, `lower` and `upper`, shape (m, n_columns), `codes`,
    shape (m, n_slices), and `weights`, shape (m,).
    """
