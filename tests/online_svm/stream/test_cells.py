"""Cells: what each value of a named row becomes, whichever door it came through."""

from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from online_svm.errors import InvalidExample
from online_svm.stream.cells import (
    BOOLEAN,
    MAX_FEATURE_SIZE,
    MIN_FEATURE_SIZE,
    NOTHING,
    NUMBER,
    TEXT,
    TIME,
    cell,
    milliseconds,
    sorts,
    time_of,
    watched,
)

NOON = datetime(2024, 1, 5, 12, 30, tzinfo=UTC)


def sort_of(value):
    return int(sorts(np.array([cell(value)]))[0])


@pytest.mark.parametrize(
    ("value", "sort"),
    [
        *((v, NUMBER) for v in (0, -1, 2.5, 2**70, np.int8(3), np.float32(0.5), "1", "0", "-2.50")),
        *((v, NUMBER) for v in (Decimal("1.20"), timedelta(hours=1), pd.Timedelta("2 days"))),
        *((v, NUMBER) for v in ("+3", ".5", "5.", "1e3", "1E-3", " 12 ", "1e-400", "-0")),
        *((v, BOOLEAN) for v in (True, np.bool_(False), "true", "False", "TRUE")),
        *((v, TIME) for v in ("2024-01-05", "2024-01-05T10:30", "2024-01-05 10:30:00.123456")),
        *((v, TIME) for v in ("0001-01-01", "9999-12-31T23:59:59.999Z", "2024-02-29T00:00+05:30")),
        *((v, TIME) for v in (NOON, NOON.date(), np.datetime64("2024-01-05"), pd.Timestamp(NOON))),
        *((v, TEXT) for v in (time(10, 30), "a" * 64)),
        *((v, TEXT) for v in ("yes", "no", "red", "007", "-01", "1_000", "0x1f", "inf", "1,5")),
        *((v, TEXT) for v in ("2024-02-30", "2024-13-01", "2024-01-05T25:00", "5.1.2024", "1.2.3")),
        *((v, TEXT) for v in ("\ud800", "a\0b", "\u202eabc", "x" * 100_000, "1" * 65, "\u0661")),
        *((v, NOTHING) for v in (None, "", "  ", float("nan"), float("inf"), 10**400, "1e400")),
        *((v, NOTHING) for v in (Decimal("sNaN"), Decimal("1e400"), pd.NaT - pd.NaT)),
        *((v, NOTHING) for v in (1e101, 1e-310, pd.NA, pd.NaT, np.datetime64("NaT", "s"))),
        *((v, NOTHING) for v in ("NA", "n/a", "NaN", "null", "None", "?")),
    ],
)  # fmt: skip
def test_a_value_is_a_number_a_text_a_time_a_boolean_or_nothing(value, sort):
    assert sort_of(value) == sort


@pytest.mark.parametrize("value", [[1], {}, (1,), b"a", 2j, Fraction(1, 2), object()])
def test_what_is_no_value_of_a_table_is_refused(value):
    with pytest.raises(InvalidExample) as refused:
        cell(value)
    assert refused.value.code == "unsupported"


@given(st.one_of(st.floats(), st.integers(), st.text(), st.booleans(), st.none()))
def test_a_cell_is_a_valid_number_a_larger_one_or_a_gap(value):
    found = cell(value)
    size = abs(found)
    is_number = MIN_FEATURE_SIZE <= size <= MAX_FEATURE_SIZE
    assert np.isnan(found) or is_number or found == 0.0 or size > 2.0**512
    assert np.isfinite(found) or np.isnan(found)


@given(st.lists(st.text(max_size=3), min_size=2, max_size=30))
def test_two_texts_are_one_cell_only_if_they_are_one_text(texts):
    plain = {text.strip() for text in texts if sort_of(text) in (TEXT, NOTHING) and text.strip()}
    assert len({cell(text) for text in plain}) == len(plain)


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**20), 10**20))
def test_a_number_is_the_same_cell_as_the_text_that_shows_it(value):
    assert cell(repr(value)) == cell(value) or (
        np.isnan(cell(value)) and np.isnan(cell(repr(value)))
    )


@given(
    st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 30)),
    st.integers(-23 * 60, 23 * 60).map(lambda m: timezone(timedelta(minutes=m))),
)
def test_a_time_is_its_milliseconds_whatever_its_zone_and_form(moment, zone):
    exact = moment.replace(microsecond=moment.microsecond // 1000 * 1000, tzinfo=zone)
    expected = (exact - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    for form in (
        exact,
        exact.isoformat(),
        exact.isoformat(" "),
        exact.isoformat(timespec="milliseconds"),
    ):
        assert milliseconds(np.array([cell(form)])).tolist() == [expected]
        assert time_of(form) == expected


def test_a_date_without_a_time_is_midnight_of_utc():
    assert cell("2024-01-05") == cell(date(2024, 1, 5)) == cell(datetime(2024, 1, 5, tzinfo=UTC))


@pytest.mark.parametrize("value", ["soon", None, True, "", 1e300, "red"])
def test_what_is_no_time_has_no_milliseconds(value):
    assert time_of(value) is None


def test_monitors_see_numbers_and_shares_of_texts():
    row = np.array([[cell(v) for v in (2.5, "red", True, False, "2024-01-05", None, 7)]])
    (seen,) = watched(row, 8, hidden=[6]).tolist()
    assert seen[0] == 2.5
    assert 0.0 <= seen[1] < 1.0
    assert seen[2:4] == [1.0, 0.0]
    assert np.isnan(seen[4:]).all()
    assert watched(row[:, :1], 1) is not row  # a view of the numbers, unchanged
    assert watched(row[:, :1], 1).tolist() == [[2.5]]
