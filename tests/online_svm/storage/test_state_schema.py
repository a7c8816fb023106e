"""A table of fields: what was stored comes back, and what does not fit is refused."""

from typing import Any

import numpy as np
import pytest

from online_svm.errors import InvalidSnapshot
from online_svm.storage.container import pack, unpack
from online_svm.storage.state_schema import StateSchema, flag, floats, ints, number, one, weights

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
