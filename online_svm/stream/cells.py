"""Encode any value of a named row as one float64, a cell.

A row of numbers, texts, booleans, times and gaps is then an ordinary array: rows of cells are held,
sent to a refit and stored like rows of numbers, and pure numbers cost nothing extra.

- The cell of a number is the number, of a duration its seconds.
- The cell of a gap (null, an empty text, or a number beyond the limit such as 1e400) is NaN.
- The cells of texts, booleans and times are floats above the largest allowed feature
  (`MAX_FEATURE_SIZE`): prefix bits for the sort, then a hash of the text (60 bits), the boolean, or
  milliseconds since 1970. Texts with equal hashes are the same category; collisions are practically
  impossible. No text is stored, so none has to be bounded or erased.

A cell depends on the value alone, so a value has the same cell through every interface (`step`,
JSON, CSV, a data frame). The kind of its column decides later what a cell means. A text is read as
follows:

- ``1``, ``-2.50``, ``+3``, ``1e3``: that number; ``007`` is a text, because of its leading zeros;
- ``true``, ``False``: that boolean; ``yes`` and ``no`` are texts;
- ``2024-01-05``, ``2024-01-05 10:30``, ``2024-01-05T10:30:00.5+02:00``: that time, UTC without an
  offset; ``2024-02-30`` is a text, because there is no such day;
- empty, blank or ``1e400``: a gap;
- ``NA``, ``N/A``, ``NaN``, ``null``, ``None``, ``?``: a text, and a gap unless the column has
  categories.

========  ==================================================  ====================================
kind      values                                              a gap
========  ==================================================  ====================================
number    numbers                                             the mean, and an indicator
boolean   true and false; as texts too, and 1 and 0           a value of its own
category  any: equal cells are one category                   a value of its own
time      ISO 8601 texts; numbers are seconds since 1970,     left out, and an indicator
          or milliseconds from 1e11 on
text      texts that rarely repeat: the column is ignored
========  ==================================================  ====================================

A value of another kind than its column is a gap; the row is not rejected.

At each freeze the kind of an undeclared column is found in the proper training set T:

1. If fewer than one row in a hundred of T has a value, the kind is unknown for now.
2. If nine in ten values are numbers, they are the kind; likewise booleans and times.
3. Otherwise the kind is category, or text if more than half of the values occur only once.

Only T is used: a kind, category or name learned from a calibration example would distinguish that
example from the next one and void the guarantee `exact`. The kind is fixed once T has `FIXED_FROM`
values of the column.
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
from typing import get_args

import numpy as np

from online_svm.compiled.kernel import kernel
from online_svm.config import KindName
from online_svm.errors import InvalidExample
from online_svm.types import Floats, Ints

# Squares of larger numbers would overflow in a kernel's sum over 100,000 features.
MAX_FEATURE_SIZE = 1e100
# Smaller numbers are subnormal: they have fewer digits, and kernels could differ by processor.
MIN_FEATURE_SIZE = float(np.finfo(np.float64).tiny)

GAP = float("nan")

NUMBER, TEXT, TIME, BOOLEAN, NOTHING = range(5)  # sorts of cells, as `sorts` returns them

_TEXT, _TIME, _BOOLEAN = 0x60 << 56, 0x70 << 56, 0x701 << 52
"""Prefix bits of a text, a time and a boolean."""

HASH = (1 << 60) - 1  # mask of the hash bits of a text

BEFORE, AFTER, TIME_BITS = 1 << 46, 1 << 50, (1 << 52) - 1
"""Offset, exclusive upper bound and bit mask of the milliseconds of a time.

With the offset the milliseconds since 1970 are positive from the year 1 on; the mask is for their
sum.
"""

FROM_MILLISECONDS = 1e11
"""As times, numbers below it are seconds since 1970 (to the year 5138), others milliseconds (from
1973)."""

_MAX_PARSED_CHARACTERS = 64
"""Length up to which a text is parsed as a number, boolean or time, and is cached."""

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

    Raises InvalidExample if the value is an array, an object or another type that no table holds.

    Examples
    --------
    >>> cell(2), cell("2.0"), cell(None), cell("")
    (2.0, 2.0, nan, nan)
    >>> cell("red") == cell(" red "), cell("red") == cell("Red"), cell("red") > MAX_FEATURE_SIZE
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
    """Return a text as a cell; see the module docstring."""
    return _remembered(text) if len(text) <= _MAX_PARSED_CHARACTERS else _read(text)


def is_number(text: str) -> bool:
    """Return whether a text without surrounding blanks reads as a number."""
    return len(text) <= _MAX_PARSED_CHARACTERS and _NUMBER.fullmatch(text) is not None


def time_of(value: object) -> int | None:
    """Return a time in milliseconds since 1970; None for a value of another sort.

    Numbers below 1e11 are seconds since 1970, larger ones milliseconds.

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
    if abs(found) <= MAX_FEATURE_SIZE:
        return math.floor(found) if -BEFORE < found < AFTER else None
    bits = struct.unpack("<Q", struct.pack("<d", found))[0]
    return (bits & TIME_BITS) - BEFORE if bits >> 52 == _TIME >> 52 else None


def of_boolean(value: bool) -> float:
    """Return a boolean as a cell."""
    return _float(_BOOLEAN | value)


def of_milliseconds(time: int) -> float:
    """Return a time as a cell; NaN before the year 1 or after 9999."""
    return _float(_TIME | time + BEFORE) if -BEFORE < time < AFTER else GAP


def _number(value: float | Decimal) -> float:
    try:
        number = float(value) + 0.0  # -0 is 0
    except (OverflowError, ValueError):  # an integer that is too large; a signalling NaN
        return GAP
    size = abs(number)
    return number if size <= MAX_FEATURE_SIZE and (size >= MIN_FEATURE_SIZE or size == 0.0) else GAP


def _other(value: object) -> float:
    """Return a boolean, or a value without a JSON type, as a cell."""
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
    if isinstance(value, list | dict):
        raise InvalidExample("value_array" if isinstance(value, list) else "value_object")
    raise InvalidExample("value_of_type", type=type(value).__name__)


def _read(text: str) -> float:
    plain = text.strip()
    if not plain:
        return GAP
    if len(plain) <= _MAX_PARSED_CHARACTERS:
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
"""Cached `_read` for short texts, most of which repeat."""


def _hashed(text: str) -> float:
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return _float(_TEXT | int.from_bytes(digest, "little") & HASH)


def _milliseconds(found: re.Match[str]) -> int | None:
    """Return the milliseconds since 1970 of a matched date; None if the date does not exist."""
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    try:
        days = (date(int(year), int(month), int(day)) - _EPOCH.date()).days
    except ValueError:
        return None
    h, m, s = (int(part or 0) for part in (hour, minute, second))
    if h > 23 or m > 59 or s > 60:  # second 60, a leap second, equals the next minute's first
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
"""Cells of texts that are gaps unless the column holds categories."""

TRUE_TEXTS = np.sort(np.array([_hashed(text) for text in ("yes", "Yes", "YES", "y", "Y")]))
FALSE_TEXTS = np.sort(np.array([_hashed(text) for text in ("no", "No", "NO", "n", "N")]))
"""Cells of texts that a declared boolean column reads as true or false."""

TRUE, FALSE = of_boolean(True), of_boolean(False)

PASSED_OVER = _float(0x702 << 52)
"""Cell in the last column of a row with ignored names; otherwise it counts as a gap."""


def sorts(cells: Floats) -> Ints:
    """Return the sort of each cell: `NUMBER`, `TEXT`, `TIME`, `BOOLEAN` or `NOTHING`.

    A text that stands for a gap is `NOTHING`.
    """
    found = np.where(np.isnan(cells), NOTHING, NUMBER)
    large = np.abs(cells) > MAX_FEATURE_SIZE
    if not np.count_nonzero(large):
        return found
    bits = cells[large].view(np.int64)
    by_prefix = np.full(len(bits), NOTHING)
    by_prefix[bits >> 60 == _TEXT >> 60] = TEXT
    by_prefix[bits >> 52 == _TIME >> 52] = TIME
    by_prefix[bits >> 52 == _BOOLEAN >> 52] = BOOLEAN
    by_prefix[np.isin(cells[large], GAP_TEXTS)] = NOTHING
    found[large] = by_prefix
    return found


def milliseconds(times: Floats) -> Ints:
    """Return the milliseconds since 1970 of cells that are times."""
    return (times.view(np.int64) & TIME_BITS) - BEFORE


def widened(rows: Floats, width: int) -> Floats:
    """Return rows with `width` columns; added columns are gaps."""
    if rows.shape[-1] >= width:
        return rows
    gaps = np.full((*rows.shape[:-1], width - rows.shape[-1]), GAP)
    return np.concatenate([rows, gaps], axis=-1)


def stacked(rows: Sequence[Floats]) -> Floats:
    """Stack rows into one array; rows with fewer columns end in gaps."""
    width = max(map(len, rows), default=0)
    if any(len(row) != width for row in rows):
        rows = [widened(row, width) for row in rows]
    return np.array(rows)


KINDS = (*get_args(KindName), "text")
"""Names of all kinds, by code; the last one cannot be declared."""

FIXED_FROM = 200  # from this number of values in T on, the kind of a column is fixed

_KIND_OF_SORT = {NUMBER: "number", BOOLEAN: "boolean", TIME: "time"}


def found_kind(cells: Floats, sorts: Ints) -> int:
    """Return the code of the kind found for a column; -1 if it has no value.

    `cells`, shape (n,): the column's cells in T.
    `sorts`, shape (n,): their sorts; see `sorts`.

    Examples
    --------
    >>> from online_svm.stream.cells import cell, sorts
    >>> def kind(*values):
    ...     cells = np.array([cell(value) for value in values])
    ...     code = found_kind(cells, sorts(cells))
    ...     return None if code < 0 else KINDS[code]
    >>> kind("1", "0", None), kind("yes", "no", "no", "yes"), kind("2024-01-05"), kind("", "NA")
    ('number', 'category', 'time', None)
    >>> kind("Ann called.", "No reply", "Second visit"), kind(True, False), kind("007", "007")
    ('text', 'boolean', 'category')
    """
    counts = np.bincount(sorts, minlength=NOTHING + 1).tolist()
    values = len(cells) - counts[NOTHING]
    if not values:
        return -1
    for sort, name in _KIND_OF_SORT.items():
        if 10 * counts[sort] >= 9 * values:
            return KINDS.index(name)
    once = int(np.count_nonzero(np.unique(cells[sorts != NOTHING], return_counts=True)[1] == 1))
    return KINDS.index("text" if 2 * once > values else "category")


def watched(rows: Floats, width: int, hidden: Sequence[int] = ()) -> Floats:
    """Return rows as inputs of the exchangeability tests: a fixed function of each cell.

    A number is unchanged, a text or a boolean becomes a number from 0 to 1 computed from its bits,
    and a time or a gap becomes missing: times always drift, so a test of them would be meaningless.

    `rows`, shape (m, n_features).
    `width`: number of leading features to test; features that a row lacks are missing.
    `hidden`: features whose cells are all treated as times.
    """
    rows = rows[:, :width]
    if rows.shape[1] == width and not hidden and np.abs(rows).max(initial=0.0) <= MAX_FEATURE_SIZE:
        return rows
    found = np.full((len(rows), width), GAP)
    _watch(np.ascontiguousarray(rows), found)
    found[:, [f for f in hidden if f < width]] = GAP
    return found


@kernel
def _watch(rows: Floats, found: Floats) -> None:
    """Write the transformed cells for the columns that both arrays have."""
