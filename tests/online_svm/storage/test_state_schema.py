"""A table of fields: what was stored comes back, and what does not fit is refused."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

from online_svm.errors import InvalidSnapshot
from online_svm.storage.state import State, pack, unpack
from online_svm.storage.state_schema import (
    Field,
    StateSchema,
    Stored,
    StoredArrays,
    StoredHeader,
    StoredRecord,
    flag,
    floats,
    ints,
    json_of,
    number,
    numbers,
    one,
    part,
    record,
    texts,
    weights,
)

TABLE = StateSchema(
    floats("_sums"),
    ints("ages_", least=-1, below=9),
    weights("totals_", beside="ages_"),
    one("every", least=1),
    number("count"),
    number("last", optional=True),
    flag("is_open"),
)


class Held:
    def __init__(self) -> None:
        self._sums = np.zeros((2, 3))
        self.every, self.count, self.is_open = 1, 0, False
        self.last: int | None = None

    def filled(self) -> "Held":
        self._sums = np.arange(6.0).reshape(2, 3)
        self.ages_, self.totals_ = np.array([-1, 8]), np.array([1.0, 2.5])
        self.every, self.count, self.is_open, self.last = 7, 3, True, 5
        return self


def test_an_object_has_the_same_fields_after_it_was_stored() -> None:
    held, restored = Held().filled(), Held()
    TABLE.fill(restored, *unpack(pack(TABLE.header_of(held), TABLE.arrays_of(held))))
    for name, value in vars(held).items():
        np.testing.assert_array_equal(getattr(restored, name), value)
        assert type(getattr(restored, name)) is type(value)


def test_a_state_shares_no_memory_with_its_object() -> None:
    held, restored = Held().filled(), Held()
    header, arrays = TABLE.header_of(held), TABLE.arrays_of(held)
    TABLE.fill(restored, header, arrays)
    arrays["sums"][:] = 9.0
    assert held._sums.max() == restored._sums.max() == 5.0


NOT_FITTING = [
    {"sums": None}, {"sums": np.zeros(6)}, {"sums": np.zeros((2, 3), dtype=np.int64)},
    {"sums": np.full((2, 3), np.nan)}, {"ages": np.array([-2, 0])}, {"ages": np.array([0, 9])},
    {"ages": np.zeros((2, 1), dtype=np.int64)}, {"totals": np.zeros(3)},
    {"totals": np.zeros(2, dtype=np.bool_)}, {"every": np.zeros(1, dtype=np.int64)},
    {"every": np.ones(2, dtype=np.int64)}, {"count": None}, {"count": -1}, {"count": True},
    {"last": 2.0}, {"last": None}, {"is_open": 1},
]  # fmt: skip


@pytest.mark.parametrize("change", NOT_FITTING, ids=str)
def test_a_field_that_does_not_fit_is_refused_by_its_name(change: dict[str, Any]) -> None:
    held = Held().filled()
    header, arrays = TABLE.header_of(held), TABLE.arrays_of(held)
    ((name, value),) = change.items()
    place = header if name in header else arrays
    place[name] = value
    if value is None:
        del place[name]
    restored = Held()
    with pytest.raises(InvalidSnapshot, match=name):
        TABLE.fill(restored, header, arrays)
    assert vars(restored).keys() == vars(Held()).keys()
    assert restored.every == 1


class Part(StoredArrays):
    _stored = StateSchema(floats("_sums"))

    def __init__(self, size: int = 2) -> None:
        self._sums = np.zeros(size)


class Whole(StoredArrays):
    _stored = StateSchema(one("count"), part("_first"), part("_by_name"), part("_listed"))

    def __init__(self, has_first: bool = True) -> None:
        self.count, self.is_checked = 0, False
        self._first = Part() if has_first else None
        self._by_name = {"a": Part(), "b": Part(3)}
        self._listed = [Part(), Part(1)]

    def _on_restored(self) -> None:
        self.is_checked = True


@pytest.mark.parametrize("has_first", [True, False])
def test_parts_are_stored_under_their_names_and_restored_in_place(has_first: bool) -> None:
    whole, other = Whole(has_first), Whole(has_first)
    whole.count = 3
    whole._by_name["b"]._sums[:] = 7.0
    whole._listed[1]._sums[:] = 9.0
    state = whole.state()
    assert ("first.sums" in state) == has_first
    assert {"by_name.b.sums", "listed.1.sums"} <= state.keys()
    assert other.restore(state) is other
    assert (other.count, other.is_checked) == (3, True)
    assert other._by_name["b"]._sums.tolist() == [7.0] * 3
    assert other._listed[1]._sums.tolist() == [9.0]


def test_a_part_that_does_not_fit_is_refused() -> None:
    state = Whole().state()
    with pytest.raises(InvalidSnapshot, match=r"Part.*'sums' has shape \(1,\)"):
        Whole().restore(state | {"by_name.b.sums": np.zeros(1)})


class Pair(NamedTuple):
    X: np.ndarray[Any, Any]
    columns: np.ndarray[Any, Any]


@dataclass(frozen=True)
class Widths(StoredRecord):
    _stored = StateSchema(floats("width", "d", least=0.0))
    width: np.ndarray[Any, Any]

    def _on_restored(self) -> None:
        if not len(self.width):
            raise ValueError("no width")


class Total(StoredHeader):
    _stored = StateSchema(number("total"))

    def __init__(self) -> None:
        self.total = 0


def even(stored: Any) -> int:
    if stored % 2:
        raise ValueError("odd")
    return int(stored)


class Composite(Stored):
    """A named tuple, texts, numbers, JSON, a record, and parts that depend on what was read."""

    _stored = StateSchema(
        floats("_pair.X", "n .width"), ints("_pair.columns", "n", below=".k"),
        texts("_labels"), texts("_seen", optional=True), numbers("_counts", below=9),
        json_of("_even", of=even), record("_scaling", of=Widths, optional=True, stored_as="scale"),
        part("_total", stored_as="sum"), part("_sums", of="_new_sums"), part("_flat", stored_as=""),
    )  # fmt: skip

    def __init__(self, width: int = 2, k: int = 3) -> None:
        self.width, self.k = width, k
        self._pair = Pair(np.empty((0, width)), np.empty(0, dtype=np.int64))
        self._labels: dict[str, None] = {}
        self._seen: list[str | None] = []
        self._counts: list[int] = []
        self._even = 0
        self._scaling: Widths | None = None
        self._total, self._sums, self._flat = Total(), Part(0), Part(1)

    def _new_sums(self) -> Part:
        return Part(len(self._labels))

    def filled(self) -> "Composite":
        self._pair = Pair(np.ones((4, 2)), np.array([0, 1, 2, 0]))
        self._labels, self._seen, self._counts = {"a": None, "b": None}, ["x", None], [1, 8]
        self._even, self._scaling = 4, Widths(np.array([1.0, 2.0]))
        self._total.total, self._sums, self._flat = 7, Part(2), Part(1)
        return self


def test_a_whole_of_parts_and_records_is_the_same_after_it_was_stored() -> None:
    state = Composite().filled().state()
    again = Composite().restore(unpack(pack(*state)))
    assert (again._labels, again._seen, again._counts) == (
        {"a": None, "b": None},
        ["x", None],
        [1, 8],
    )
    assert (again._even, again._total.total, len(again._sums._sums)) == (4, 7, 2)
    np.testing.assert_array_equal(again._pair.columns, [0, 1, 2, 0])
    assert again._scaling is not None
    np.testing.assert_array_equal(again._scaling.width, [1.0, 2.0])
    assert Composite().restore(Composite().state())._scaling is None
    assert state.arrays.keys() == {"X", "columns", "scale.width", "sums.sums", "sums"}


def test_a_field_that_the_constructor_takes_is_stored_and_not_set() -> None:
    table, held = StateSchema(Field("name", kind="number", is_given=True)), Total()
    held.name = 3  # type: ignore[attr-defined]
    assert table.header_of(held) == {"name": 3}
    assert table.fill(Total(), {"name": 3}, {}).total == 0
    assert table.values(Total, {"name": 3}, {}) == {"name": 3}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"X": np.ones((4, 3))}, "'X' has shape"), ({"X": np.ones((3, 2))}, "'columns' has shape"),
        ({"columns": np.array([0, 1, 3, 0])}, "'columns'"), ({"labels": ["a", "a"]}, "'labels'"),
        ({"labels": "ab"}, "'labels'"), ({"seen": [1]}, "'seen'"), ({"counts": [9]}, "'counts'"),
        ({"counts": [True]}, "'counts'"), ({"even": 3}, "odd"), ({"even": "x"}, "Composite"),
        ({"scale.width": np.array([-1.0])}, "Widths: 'width'"), ({"sum": {"total": -1}}, "Total"),
        ({"scale.width": np.array([])}, "no width"), ({"sum": 3}, "Total"),
        ({"sums.sums": np.zeros(3)}, "Part"), ({"labels": ["a", None]}, "'labels'"),
    ],
)  # fmt: skip
def test_a_part_of_a_whole_that_does_not_fit_is_refused(change: dict[str, Any], told: str) -> None:
    header, arrays = Composite().filled().state()
    ((name, value),) = change.items()
    (header if name in header else arrays)[name] = value
    with pytest.raises(InvalidSnapshot, match=told):
        Composite().restore(State(header, arrays))
