"""The alarms of a feed that are open."""

from collections.abc import Sequence
from typing import Any

from workers.admin.answers import answer
from workers.broker.feed_reader import FeedReader


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
