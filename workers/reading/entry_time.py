"""Times in entry IDs as text."""

from datetime import UTC, datetime

_YEARS = (0.0, 253_402_300_799_000.0)  # milliseconds from 1970 to the year 9999


def moment(milliseconds: float) -> str:
    """Return a time in UTC as text; the number where it is no time of this era.

    Examples
    --------
    >>> moment(1_700_000_000_000.0), moment(5.0), moment(1e18)
    ('2023-11-14 22:13:20', '1970-01-01 00:00:00', '1000000000000000000')
    """
    if not is_of_this_era(milliseconds):
        return f"{milliseconds:.0f}"
    return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y-%m-%d %H:%M:%S}"


def is_of_this_era(milliseconds: float) -> bool:
    """Return whether a time lies between the years 1970 and 9999: an ID may hold any number."""
    return _YEARS[0] <= milliseconds <= _YEARS[1]
