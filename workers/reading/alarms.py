"""The alarms of a feed that are open, and when alarms were committed."""

from collections.abc import Iterable, Sequence
from typing import Any

from workers.broker.batch_size import Entry
from workers.broker.feed_reader import FeedReader
from workers.feed.keys import ALARM
from workers.feed.position import parse_id
from workers.reading.answers import answer


def open_alarms(store: FeedReader, report: Sequence[Any] | None) -> list[dict[str, Any]]:
    """Return the alarms that are open, the oldest first; of one test the newest.

    The newest report says which were open then, and the later entries of `alarms` are added. An
    alarm that closed since that report is still among them.

    Parameters
    ----------
    store : FeedReader
    report : entry or None
        The newest of `met`.

    Raises
    ------
    StateLost
        If another program wrote to the streams.
    """
    after, found = b"0-0", list[dict[str, Any]]()
    if report is not None:
        after, found = report[0], list(answer(report).get("monitors", {}).get("open", ()))
    for page in store.pages(store.keys.alarms, after):
        for entry in page:
            found += answer(entry)["alarms"]
    newest = {(one["kind"], one["scope"], one["name"], one["monitor"]): one for one in found}
    return sorted(newest.values(), key=lambda one: int(one["n"]))


def commit_times(raised: Iterable[Entry]) -> dict[bytes, int]:
    """Return when entries of `alarms` were committed, in milliseconds since 1970, by their IDs.

    Parameters
    ----------
    raised : iterable of entry
        Of the stream `raised`; what another program wrote is passed over.

    Examples
    --------
    >>> commit_times([(b"1700000000123-0", [b"alarm", b"17-0"]), (b"5-0", [b"x", b"1"])])
    {b'17-0': 1700000000123}
    """
    return {
        bytes(fields[1]): parse_id(entry_id)[0]
        for entry_id, fields in raised
        if len(fields) == 2 and fields[0] == ALARM.encode()
    }
