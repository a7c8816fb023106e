"""Columns of a time: sines and cosines of the hour, the weekday and the day of the year, and days.

All are computed with additions and products alone, so that they are the same on any machine.
"""

import math

import numpy as np

from online_svm.compiled.intrinsics import bits_of
from online_svm.compiled.jit import inner, jit
from online_svm.stream.cells import AFTER, BEFORE, FROM_MILLISECONDS, TIME_BITS, of_milliseconds
from online_svm.types import Floats

WAVES = 6
"""Columns of a time before its days."""

_DAY = 86_400_000
_FIRST_TIME, _LAST_TIME = of_milliseconds(1 - BEFORE), of_milliseconds(AFTER - 1)
_TURN = 2.0 * math.pi
_SINE = np.array([1.0 / math.factorial(2 * k + 1) for k in range(9)])
_COSINE = np.array([1.0 / math.factorial(2 * k) for k in range(9)])


@jit
def fill_times(cells: Floats, times: Floats) -> None:
    """Fill in the milliseconds since 1970 of cells; NaN where they are no times."""
    for i in range(len(cells)):
        times[i] = milliseconds_of(cells[i])


@inner
def milliseconds_of(value: float) -> float:
    """Return the milliseconds since 1970 of a cell; NaN where it is no time."""
    if _FIRST_TIME <= value <= _LAST_TIME:
        return float((bits_of(value) & TIME_BITS) - BEFORE)
    if abs(value) < FROM_MILLISECONDS:
        return math.floor(value * 1000.0)
    return math.floor(value) if -BEFORE < value < AFTER else math.nan


@inner
def write_time(time: float, coded: Floats) -> None:
    """Write the columns of a time; a gap has the middle of every circle, and no day."""
    if time != time:
        coded[WAVES] = np.nan
        return
    day = int(np.floor(time / _DAY))
    _wave((time - day * _DAY) / _DAY, coded[0:2])
    _wave((day + 4) % 7 / 7.0, coded[2:4])
    _wave(_day_of_year(day) / 366.0, coded[4:6])
    coded[WAVES] = time / _DAY


@inner
def _wave(turns: float, coded: Floats) -> None:
    """Write sine and cosine of an angle, given in turns from 0 to 1.

    The angle is reduced to an eighth of a turn on either side of a quarter; there the Taylor
    polynomials of degree 17 and 16 are exact to the last place but one.
    """
    quarter = np.floor(4.0 * turns + 0.5)
    x = (turns - 0.25 * quarter) * _TURN
    square = x * x
    sine = cosine = 0.0
    for k in range(8, -1, -1):
        sine = _SINE[k] - square * sine
        cosine = _COSINE[k] - square * cosine
    sine *= x
    q = int(quarter) % 4
    if q == 1:
        sine, cosine = cosine, -sine
    elif q == 2:
        sine, cosine = -sine, -cosine
    elif q == 3:
        sine, cosine = -cosine, sine
    coded[0], coded[1] = sine, cosine


@inner
def _day_of_year(day: int) -> int:
    """Return the day of the year, from 0 on, of a day since 1970 (proleptic Gregorian).

    Years are counted from March on, so that the leap day is the last (Hinnant, chrono-compatible
    low-level date algorithms).
    """
    from_march = day + 719468
    era = from_march // 146097
    of_era = from_march - era * 146097
    year = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return of_year - 306 if of_year >= 306 else of_year + 59 + is_leap
