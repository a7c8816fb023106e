"""Times as text; and when an example was learned: the date of the entry that counted it."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from workers.broker import commands
from workers.broker.feed_reader import FeedReader
from workers.feed.keys import LEARNED_AGAIN
from workers.feed.position import parse_id
from workers.reading.answers import as_object, message, number

Dates = Mapping[int, float]
"""Milliseconds since 1970 by the number of the example that was learned then."""

NO_DATES: Dates = {}

_YEAR_2000 = 946_684_800_000  # an entry ID before it is no time
_YEAR_9999_ENDS = 253_402_300_799_000  # milliseconds since 1970


def moment(milliseconds: float) -> str:
    """Return a time in UTC as text; the bare number if `is_of_this_era` is false.

    Examples
    --------
    >>> moment(1_700_000_000_000.0), moment(5.0), moment(1e18)
    ('2023-11-14 22:13:20', '1970-01-01 00:00:00', '1000000000000000000')
    """
    if not is_of_this_era(milliseconds):
        return f"{milliseconds:.0f}"
    return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y-%m-%d %H:%M:%S}"


def is_of_this_era(milliseconds: float) -> bool:
    """Return whether a time lies in the years 1970 to 9999: an entry ID may hold any number."""
    return 0 <= milliseconds <= _YEAR_9999_ENDS


def date_of(dates: Dates, n: int) -> str:
    """Return the date at which an example was learned, in UTC; "" if none is known.

    Examples
    --------
    >>> date_of({50: 1_700_000_000_000.0, 60: 5.0}, 50)
    'Tue 2023-11-14 22:13 UTC'
    >>> date_of({50: 1_700_000_000_000.0, 60: 5.0}, 60)
    ''
    """
    at = dates.get(n, 0.0)
    if at < _YEAR_2000 or not is_of_this_era(at):
        return ""
    return f"{datetime.fromtimestamp(at / 1000, UTC):%a %Y-%m-%d %H:%M} UTC"


def learned_at(reader: FeedReader, numbers: Iterable[int]) -> dict[int, float]:
    """Return when these examples were learned, as far as answers or reports since then are kept.

    Their `n` grows with their IDs, so each time is found by halving, in about 35 reads of an entry.
    After `erase` the numbers are those of the new learner.
    """
    found, keys = dict[int, float](), reader.keys
    (base,) = reader.call(*commands.fields(keys.erased, LEARNED_AGAIN))
    after = None if base is None else base.split()[1]
    spans = [
        (stream, parse_id(first[0])[0], parse_id(reader.newest_id(stream))[0])
        for stream in (keys.out, keys.met)
        if (first := reader.first_entry(stream, after)) is not None
    ]
    for n in numbers:
        times = (_last_before(reader, stream, max(n, 1), *span) for stream, *span in spans)
        known = next((time for time in times if time is not None), None)
        if known is not None:
            found[n] = float(known)
    return found


def _last_before(reader: FeedReader, stream: str, n: int, low: int, high: int) -> int | None:
    """Return the last time in [low, high] from which an entry follows whose `n` is smaller."""
    if not _is_before(reader, stream, n, low):
        return None
    while low < high:
        middle = (low + high + 1) // 2
        if _is_before(reader, stream, n, middle):
            low = middle
        else:
            high = middle - 1
    return low


def _is_before(reader: FeedReader, stream: str, n: int, time: int) -> bool:
    found = reader.entries(stream, b"%d-0" % time, count=1)
    return bool(found) and number(as_object(message(found[0])).get("n")) < n
