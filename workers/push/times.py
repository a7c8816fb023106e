"""The time of an example: what a number may stand for, and whether texts have a time zone."""

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from online_svm.errors import InvalidExample
from online_svm.stream.cells import is_number, time_of
from workers.push.cell_text import TimeUnit
from workers.push.reading import BadSource

_DAY = 86_400_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EXCEL = 25_569  # the day of Excel that is 1970-01-01
_PLAUSIBLE = (631_152_000_000, 4_102_444_800_000)  # milliseconds, from 1990 to 2099
_LAST = 253_402_300_799_999  # the last millisecond of the year 9999
_DATES = {4: "%Y", 6: "%Y%m", 8: "%Y%m%d", 10: "%Y%m%d%H", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}
_CLOCK = re.compile(r"[T ][0-9]{2}:[0-9]{2}[0-9:.,]* ?(?P<zone>Z|z|[+-][0-9]{2}.*)?$")
_MAX_REPEATED = 3_600_000  # milliseconds that local times repeat at the end of summer time


def _of_date(value: float) -> float:
    text = f"{value:.0f}"
    form = _DATES.get(len(text))
    if form is None or value % 1:
        raise ValueError
    return (datetime.strptime(text, form).replace(tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)


_UNITS: dict[TimeUnit, Callable[[float], float]] = {
    "date": _of_date,
    "excel": lambda value: (value - _EXCEL) * _DAY,
    "minutes": lambda value: value * 60_000,
    "seconds": lambda value: value * 1000,
    "milliseconds": lambda value: value,
    "microseconds": lambda value: value / 1000,
    "nanoseconds": lambda value: value / 1_000_000,
}
"""Milliseconds since 1970 of a number, by what it counts; `date` is one such as 20251231."""


def number_as(value: float, unit: TimeUnit) -> int | None:
    """Return a number as milliseconds since 1970; None if it is no time in this unit."""
    with suppress(ValueError, OverflowError):
        found = round(_UNITS[unit](value))
        return found if 0 <= found <= _LAST else None
    return None


def plausible(value: float) -> dict[TimeUnit, int]:
    """Return the times from 1990 to 2099 that a number may be, by unit.

    Examples
    --------
    >>> [[*plausible(number)] for number in (1766880000, 20251228, 45658, 2025, 7)]
    [['seconds'], ['date', 'minutes'], ['excel'], ['date'], []]
    """
    times = {unit: number_as(value, unit) for unit in get_args(TimeUnit)}
    first, end = _PLAUSIBLE
    return {unit: at for unit, at in times.items() if at is not None and first <= at < end}


def iso(at: int) -> str:
    """Return milliseconds since 1970 as ISO 8601."""
    text = (_EPOCH + timedelta(milliseconds=at)).isoformat().replace("+00:00", "Z")
    return text.removesuffix("T00:00:00Z")


def has_zone(text: str) -> bool | None:
    """Return whether a time in ISO 8601 has a time zone; None for a day alone.

    Examples
    --------
    >>> [has_zone(f"2025-10-26{rest}") for rest in ("T02:30:00+01:00", " 02:30", "")]
    [True, False, None]
    """
    found = _CLOCK.search(text)
    return None if found is None else found["zone"] is not None


def in_one_zone(name: str, first: str | None, text: str) -> str | None:
    """Return the first text of a column with a clock.

    Raises BadSource if one of the two has a time zone and the other has none.
    """
    with_zone = has_zone(text)
    if with_zone is None:
        return first
    if first is not None and has_zone(first) != with_zone:
        one, other = (text, first) if with_zone else (first, text)
        raise BadSource(
            f"{name} is {one!r}, with a time zone, and {other!r}, without one: write all with one, "
            "or name the zone of the others, as --zone Europe/Berlin"
        )
    return text if first is None else first


def zone_of(name: str) -> ZoneInfo:
    """Return a time zone. Raises BadSource if there is none of this name."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise BadSource(
            f"--zone {name}: no time zone has this name; send one such as Europe/Berlin"
        ) from None


def in_zone(name: str, text: str, zone: ZoneInfo) -> str:
    """Return a time in ISO 8601 in UTC; without a zone of its own it is of this `zone`.

    Raises BadSource for a local time that is there twice or never, where summer time begins or
    ends.
    """
    if has_zone(text) is not False:
        return text
    local = datetime.fromisoformat(text)
    earlier, later = (local.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    if earlier.utcoffset() != later.utcoffset():
        is_twice = earlier.utcoffset() > later.utcoffset()  # type: ignore[operator]  # of a zone
        raise BadSource(
            f"{name} is {text!r}, which is {'twice' if is_twice else 'never'} in {zone.key}, as "
            f"summer time {'ends' if is_twice else 'begins'}: write its offset, as {text}+01:00"
        )
    return earlier.astimezone(UTC).isoformat().replace("+00:00", "Z")


class TimeTexts:
    """Reads the times of a source whose texts have no convention, as JSON lines.

    A local time becomes one of the user's zone. Without a zone, the times of a column must all be
    local, or all have a time zone.
    """

    def __init__(self, zone: str | None) -> None:
        self._zone = None if zone is None else zone_of(zone)
        self._first: dict[str, str | None] = {}  # of each column, the first text with a clock

    def read(self, name: str, value: object) -> object:
        """Return a value to send. Raises BadSource as `in_one_zone` and `in_zone`."""
        if not isinstance(value, str) or not value[:4].isdecimal():  # most values are no times
            return value
        text = value.strip()
        if has_zone(text) is None or not _is_time(text):
            return value
        if self._zone is not None:
            return in_zone(name, text, self._zone)
        self._first[name] = in_one_zone(name, self._first.get(name), text)
        return value


class TimeColumn:
    """Reads the times of the examples of a source, and notes how they go on."""

    def __init__(self, name: str | None, unit: TimeUnit | None) -> None:
        self._name, self._unit = name or "time", unit
        self.first_text: str | None = None  # with a clock
        self.steps_back = 0  # times that are earlier than the one before
        self.first_back: tuple[int, int] | None = None  # the first of these, and the one before
        self._last: int | None = None

    def milliseconds(self, value: object) -> int:
        """Return the time of an example in milliseconds since 1970.

        Raises BadSource if it is not a time, if a number may be another one, and for a time without
        a zone among others.
        """
        at = self._read(value)
        if self._last is not None and at < self._last:
            self.steps_back += 1
            self.first_back = self.first_back or (at, self._last)
        self._last = at
        return at

    def is_local(self) -> bool:
        """Return whether the times have no time zone."""
        return self.first_text is not None and not has_zone(self.first_text)

    def may_repeat_an_hour(self) -> bool:
        """Return whether the first step back may be the end of summer time."""
        at, before = self.first_back or (0, 0)
        return self.is_local() and 0 < before - at <= _MAX_REPEATED

    def _read(self, value: object) -> int:
        number = _number(value)
        if number is not None:
            return self._of_number(number)
        try:
            found = time_of(value)
        except InvalidExample:
            found = None
        if found is None or not 0 <= found <= _LAST:
            raise BadSource(
                f"{self._name} is {str(value)[:40]!r}, no time: send 2024-01-05T10:30:00Z, or "
                "seconds or milliseconds since 1970"
            )
        self.first_text = in_one_zone(self._name, self.first_text, str(value).strip())
        return found

    def _of_number(self, value: float) -> int:
        if self._unit is not None:
            at = number_as(value, self._unit)
            if at is None:
                raise BadSource(f"{self._name} is {value:.17g}, no time in {self._unit}")
            return at
        found = plausible(value)
        if len(found) == 1 and found.keys() <= {"seconds", "milliseconds"}:
            return next(iter(found.values()))
        seconds = number_as(value, "seconds")
        if seconds is not None:
            found.setdefault("seconds", seconds)
        shown = " or ".join(f"{iso(at)} in {unit}" for unit, at in found.items())
        ways = " or ".join(f"--time-unit {unit}" for unit in found)
        raise BadSource(
            f"{self._name} is {value:.17g}, which may be {shown}: say which with {ways}"
            if found
            else f"{self._name} is {value:.17g}, no time: send 2024-01-05T10:30:00Z"
        )


def _is_time(text: str) -> bool:
    with suppress(InvalidExample):
        return time_of(text) is not None
    return False


def _number(value: object) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value) if abs(value) < 1e300 else None
    return float(value) if isinstance(value, str) and is_number(value.strip()) else None
