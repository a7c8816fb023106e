"""The entries of a feed's output streams, and the settings stored with the feed."""

import math
from collections.abc import Sequence
from typing import Any

from workers.broker.feed_reader import FeedReader
from workers.errors import BadConfiguration, StateLost
from workers.feed.agreement import Groups, check_computed, stored_groups
from workers.feed.keys import FIELD
from workers.message.compact.decode import parse


def check_known(store: FeedReader) -> None:
    """Raise BadConfiguration if the answers of a feed are of semantics that were given up.

    A state that cannot be read hides no answers: they can be shown all the same.
    """
    try:
        state = store.state()
    except StateLost:
        return
    if state is not None:
        check_computed(store.keys.feed, state.agreement)


def newest(store: FeedReader, stream: str, count: int) -> list[Any]:
    """Return the last `count` entries of a stream, the oldest first."""
    found: list[Any] = store.call("XREVRANGE", stream, "+", "-", "COUNT", count)
    return found[::-1]


def payload(entry: Sequence[Any]) -> bytes:
    """Return the payload of an entry of `out` or `met`.

    Raises
    ------
    StateLost
        If it has no payload: another program wrote it.
    """
    fields = entry[1]
    if FIELD.encode() not in fields[::2]:
        raise no_answer(entry)
    return bytes(fields[2 * fields[::2].index(FIELD.encode()) + 1])


def answer(entry: Sequence[Any]) -> dict[str, Any]:
    """Return the parsed payload of an entry of `out` or `met`; an answer as in the full form.

    Raises
    ------
    StateLost
        If it is not a JSON object: another program wrote it.
    """
    found = message(entry)
    if not isinstance(found, dict):
        raise no_answer(entry)
    return found


def message(entry: Sequence[Any]) -> Any:
    """Return the parsed payload of an entry; None if another program wrote it."""
    try:
        return parse(payload(entry))
    except (StateLost, ValueError):
        return None


def number(value: Any) -> float:
    """Return a JSON number as a float; NaN for anything else.

    Examples
    --------
    >>> number(3), number("3"), number(None), number(True)
    (3.0, nan, nan, nan)
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and abs(value) < 1e300 else math.nan


def no_answer(entry: Sequence[Any]) -> StateLost:
    """Return the error for an entry of an output stream that this program did not write."""
    return StateLost(
        f"entry {entry[0].decode()} of an output stream is no answer: another program wrote it; "
        "online-svm verify tells what else differs"
    )


def stored_values(reader: FeedReader) -> Groups:
    """Return the stored settings of a feed, by group; empty if it has none that can be read."""
    try:
        state = reader.state()
        return {} if state is None else stored_groups(reader.keys.feed, state.agreement)
    except (StateLost, BadConfiguration):
        return {}  # the answers can be shown all the same
