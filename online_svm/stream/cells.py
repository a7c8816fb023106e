"""Cells: one value of a named row as one float64, whatever it is.

A row of numbers, texts, booleans, times and gaps is then an array like any other: it is held, sent
to a refit and stored as rows of numbers are, and a row of numbers alone costs nothing more.

- A number is itself; of a duration the seconds.
- A gap (null, an empty text, a number that no feature can be, such as 1e400) is NaN.
- Text, booleans and times are floats larger than any feature may be (`LARGEST`): a prefix that says
  what it is, then 60 bits of a hash of the text, the boolean, or milliseconds since 1970. So two
  texts are one category if their hashes are equal, which is as good as never by chance, and no
  text is kept anywhere: there is none to bound, and none to erase.

A cell depends on the value alone, not on the column and not on what came before. So a value gives
the same cell through every door (`step`, JSON, CSV, a data frame): a text that reads as a number,
a boolean or a time is one. What a column makes of its cells is decided later: see `kinds`.

=====================================  =====================================================
text                                   cell
=====================================  =====================================================
``1``, ``-2.50``, ``+3``, ``1e3``      that number
``007``                                text: a number has no leading zeros
``1e400``                              a gap: no feature can be so large
``true``, ``False``                    that boolean
``yes``, ``no``                        text
``2024-01-05``, ``2024-01-05 10:30``,
``2024-01-05T10:30:00.5+02:00``        that time; UTC where nothing else is said
``2024-02-30``                         text: there is no such day
an empty one, or blanks                a gap
``NA``, ``N/A``, ``NaN``, ``null``,
``None``, ``?``                        text, which is a gap where a column is not of categories
=====================================  =====================================================
"""

import hashlib
import math
import re
import struct
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from datetime import time as datetime_time
from decimal import Decimal
from functools import lru_cache

import numpy as np

from online_svm.errors import InvalidExample
from online_svm.types import Floats, Ints

# Squares of larger numbers, summed over 100,000 features, would overflow in the kernel.
LARGEST = 1e100
# Below this a double loses precision (subnormal), and kernels would differ between processors.
SMALLEST = float(np.finfo(np.float64).tiny)

GAP = float("nan")

NUMBER, TEXT, TIME, BOOLEAN, NOTHING = range(5)
"""What a cell is, as `sorts` says it."""

_TEXT, _TIME, _BOOLEAN = 0x60 << 56, 0x70 << 56, 0x701 << 52
"""First bits of a text, a time and a boolean."""

HASH = (1 << 60) - 1
"""Bits of a text that are those of its hash."""

BEFORE, AFTER, TIME_BITS = 1 << 46, 1 << 50, (1 << 52) - 1
"""The first is added to the milliseconds of a time, so that those of the year 1 are positive.

They are below the second; the last are the bits that hold them."""

FROM_MILLISECONDS = 1e11
"""Numbers below it are seconds since 1970: it is the year 5138 in seconds, 1973 in milliseconds."""

_LONG = 64
"""Characters of a text beyond which it is no number, and is not remembered."""

_NUMBER = re.compile(r"[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_DATE = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
    r"(?:[T ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]{1,9}))?)?"
    r" ?(Z|z|[+-][0-9]{2}(?::?[0-9]{2})?)?)?"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def cell(value: object) -> float:
    """Return a value as a cell.

    Raises
    ------
    InvalidExample
        If it is an array, an object or something else that is no value of a table.

    Examples
    --------
    >>> cell(2), cell("2.0"), cell(None), cell("")
    (2.0, 2.0, nan, nan)
    >>> cell("red") == cell(" red "), cell("red") == cell("Red"), cell("red") > LARGEST
    (True, False, True)
    >>> cell("2024-01-05") == cell("2024-01-05T02:00+02:00") == cell(date(2024, 1, 5))
    True
    >>> cell([1, 2])
    Traceback (most recent call last):
    online_svm.errors.InvalidExample: a value is an array; send a number, text, boolean or null
    """
    kind = type(value)
    if kind is float or kind is int:
        return _number(value)  # type: ignore[arg-type]  # narrowed above
    if kind is str:
        return of_text(value)  # type: ignore[arg-type]  # narrowed above
    if value is None:
        return GAP
    return _other(value)


def of_text(text: str) -> float:
    """Return a text as a cell; see the table at the head of this file."""
    return _remembered(text) if len(text) <= _LONG else _read(text)


def is_number(text: str) -> bool:
    """Return whether a text, without blanks around it, reads as a number.

    Examples
    --------
    >>> is_number("-2.50"), is_number("007"), is_number("inf")
    (True, False, False)
    """
    return len(text) <= _LONG and _NUMBER.fullmatch(text) is not None


def time_of(value: object) -> int | None:
    """Return the milliseconds since 1970 of a value that is a time; None if it is none.

    A number is seconds since 1970; from 1e11 on milliseconds.

    Examples
    --------
    >>> time_of("1970-01-01T00:00:01Z"), time_of("1700000000"), time_of(1700000000000)
    (1000, 1700000000000, 1700000000000)
    >>> time_of("soon") is None
    True
    """
    found = cell(value)
    if abs(found) < FROM_MILLISECONDS:
        return math.floor(found * 1000.0)
    if abs(found) <= LARGEST:
        return math.floor(found) if -BEFORE < found < AFTER else None
    bits = struct.unpack("<Q", struct.pack("<d", found))[0]
    return (bits & TIME_BITS) - BEFORE if bits >> 52 == _TIME >> 52 else None


def of_boolean(value: bool) -> float:
    """Return a boolean as a cell."""
    return _float(_BOOLEAN | value)


def of_milliseconds(time: int) -> float:
    """Return a time as a cell; NaN for one before the year 1 or after 9999."""
    return _float(_TIME | time + BEFORE) if -BEFORE < time < AFTER else GAP


def _number(value: float | Decimal) -> float:
    try:
        number = float(value) + 0.0  # -0 is 0
    except (OverflowError, ValueError):  # an integer that is too large; a signalling NaN
        return GAP
    size = abs(number)
    return number if size <= LARGEST and (size >= SMALLEST or size == 0.0) else GAP


def _other(value: object) -> float:
    """Return a value that JSON has no own type for, or a boolean, as a cell."""
    if isinstance(value, bool | np.bool_):
        return of_boolean(bool(value))
    if isinstance(value, int | float | np.integer | np.floating):
        return _number(float(value)) if not isinstance(value, int) else _number(value)
    if isinstance(value, str):
        return of_text(str(value))
    if isinstance(value, np.datetime64):
        time = value.astype("datetime64[ms]").astype(np.int64)
        return GAP if np.isnat(value) else of_milliseconds(int(time))
    if type(value).__name__ in ("NAType", "NaTType"):  # of pandas
        return GAP
    if isinstance(value, datetime):
        aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        return of_milliseconds((aware - _EPOCH) // _MILLISECOND)
    if isinstance(value, date):
        return of_milliseconds((value - _EPOCH.date()) // _MILLISECOND)
    if isinstance(value, Decimal):
        return _number(value)
    if isinstance(value, timedelta):
        return _number(value.total_seconds())
    if isinstance(value, datetime_time):
        return of_text(str(value))
    shown = {"list": "an array", "dict": "an object"}
    what = shown.get(type(value).__name__, f"a {type(value).__name__}")
    raise InvalidExample("unsupported", f"a value is {what}; send a number, text, boolean or null")


def _read(text: str) -> float:
    plain = text.strip()
    if not plain:
        return GAP
    if len(plain) <= _LONG:
        if is_number(plain):
            return _number(float(plain))
        if plain.lower() in ("true", "false"):
            return of_boolean(plain.lower() == "true")
        if (found := _DATE.fullmatch(plain)) is not None:
            time = _milliseconds(found)
            if time is not None:
                return of_milliseconds(time)
    return _hashed(plain)


_remembered = lru_cache(maxsize=1 << 15)(_read)
"""The same for short texts, most of which come again and again."""


def _hashed(text: str) -> float:
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return _float(_TEXT | int.from_bytes(digest, "little") & HASH)


def _milliseconds(found: re.Match[str]) -> int | None:
    """Return the milliseconds since 1970 of a date that was matched; None if there is none such."""
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    try:
        days = (date(int(year), int(month), int(day)) - _EPOCH.date()).days
    except ValueError:
        return None
    h, m, s = (int(part or 0) for part in (hour, minute, second))
    if h > 23 or m > 59 or s > 60:  # a leap second is the next minute's first
        return None
    time = ((days * 24 + h) * 60 + m) * 60_000 + s * 1000 + int((fraction or "0").ljust(3, "0")[:3])
    if zone is None or zone in "Zz":
        return time
    hours, minutes = int(zone[1:3]), int(zone[-2:]) if len(zone) > 3 else 0
    ahead = (hours * 60 + minutes) * 60_000
    return time - ahead if zone[0] == "+" else time + ahead


def _float(bits: int) -> float:
    found: float = struct.unpack("<d", struct.pack("<Q", bits))[0]
    return found


GAP_TEXTS = np.sort(
    np.array(
        [
            _hashed(text)
            for text in (
                "NA", "na", "N/A", "n/a", "NaN", "nan", "NAN", "null", "NULL", "Null", "None",
                "none", "?",
            )
        ]
    )
)  # fmt: skip
"""Cells of the texts that are gaps where a column is not of categories."""

TRUE_TEXTS = np.sort(np.array([_hashed(text) for text in ("yes", "Yes", "YES", "y", "Y")]))
FALSE_TEXTS = np.sort(np.array([_hashed(text) for text in ("no", "No", "NO", "n", "N")]))
"""Cells of the texts that a column which is declared boolean takes for true and false."""

TRUE, FALSE = of_boolean(True), of_boolean(False)

PASSED_OVER = _float(0x702 << 52)
"""In the last column, of a row with names that were passed over; wherever cells are read, a gap."""

FIRST_TIME = _float(_TIME)
"""Texts are below it, and times and booleans are not."""


def sorts(cells: Floats) -> Ints:
    """Return what each cell is: `NUMBER`, `TEXT`, `TIME`, `BOOLEAN` or `NOTHING`.

    A text that stands for a gap is nothing too.

    Examples
    --------
    >>> sorts(np.array([cell(v) for v in (1, "red", "2024-01-05", True, None, "NA")])).tolist()
    [0, 1, 2, 3, 4, 4]
    """
    found = np.where(np.isnan(cells), NOTHING, NUMBER)
    large = np.abs(cells) > LARGEST
    if not np.count_nonzero(large):
        return found
    bits = cells[large].view(np.int64)
    of = np.full(len(bits), NOTHING)
    of[bits >> 60 == _TEXT >> 60] = TEXT
    of[bits >> 52 == _TIME >> 52] = TIME
    of[bits >> 52 == _BOOLEAN >> 52] = BOOLEAN
    of[np.isin(cells[large], GAP_TEXTS)] = NOTHING
    found[large] = of
    return found


def milliseconds(times: Floats) -> Ints:
    """Return the milliseconds since 1970 of cells that are times.

    Examples
    --------
    >>> milliseconds(np.array([cell("1970-01-02")])).tolist()
    [86400000]
    """
    return (times.view(np.int64) & TIME_BITS) - BEFORE


def widened(rows: Floats, width: int) -> Floats:
    """Return rows with so many columns: those that came later are gaps in them.

    Examples
    --------
    >>> widened(np.array([[1.0], [2.0]]), 2)
    array([[ 1., nan],
           [ 2., nan]])
    """
    if rows.shape[-1] >= width:
        return rows
    gaps = np.full((*rows.shape[:-1], width - rows.shape[-1]), GAP)
    return np.concatenate([rows, gaps], axis=-1)


def stacked(rows: Sequence[Floats]) -> Floats:
    """Return rows as one array; a shorter one, of a time of fewer columns, ends in gaps.

    Examples
    --------
    >>> stacked([np.array([1.0]), np.array([2.0, 3.0])])
    array([[ 1., nan],
           [ 2.,  3.]])
    """
    width = max(map(len, rows), default=0)
    if any(len(row) != width for row in rows):
        rows = [widened(row, width) for row in rows]
    return np.array(rows)
