"""The entries of a feed's output streams, and the settings stored with the feed."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from workers.broker.feed_reader import FeedReader
from workers.errors import BadConfiguration, StateLost
from workers.feed.keys import FIELD
from workers.feed.pinned_config import Groups, check_supported, stored_groups
from workers.feed.position import parse_id
from workers.message.compact import parse


def check_known(store: FeedReader) -> None:
    """Raise BadConfiguration if the answers of a feed are of semantics that were given up.

    A state that cannot be read hides no answers: they can be shown all the same.
    """
    try:
        state = store.state()
    except StateLost:
        return
    if state is not None:
        check_supported(store.keys.feed, state.pinned)


def payload(entry: Sequence[Any]) -> bytes:
    """Return the payload of an entry of `out` or `met`; StateLost: it has none."""
    fields = entry[1]
    if FIELD.encode() not in fields[::2]:
        raise no_answer(entry)
    return bytes(fields[2 * fields[::2].index(FIELD.encode()) + 1])


def answer(entry: Sequence[Any]) -> dict[str, Any]:
    """Return the parsed payload of an entry of `out` or `met`; an answer as in the full form.

    StateLost: it is not a JSON object, so that another program wrote it.
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


def tells_guarantee(found: Any) -> bool:
    """Return whether an entry of `out` has a guarantee: a label, for example, has none."""
    return isinstance(found, dict) and (
        "guarantee" in found or found.get("status") in ("warming", "ok")
    )


def newest_answer(found: Iterable[Any]) -> Mapping[str, Any]:
    """Return the newest of parsed payloads with a guarantee; without one the newest object."""
    known = [one for one in found if isinstance(one, dict)]
    answers = [one for one in known if tells_guarantee(one)] or known
    return answers[-1] if answers else {}


def newest_label(entries: Iterable[tuple[bytes, Any]], before: float | None = None) -> float | None:
    """Return when the newest label among entries of `out` came, in milliseconds since 1970.

    Without one that is `before`, when the newest label before them came, or the time of the first
    entry: none has come since. The entries are IDs and parsed payloads, the oldest first.
    """
    for entry, found in entries:
        is_label = isinstance(found, dict) and found.get("status") == "label"
        if before is None or is_label:
            before = float(parse_id(entry)[0])
    return before


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
        return {} if state is None else stored_groups(reader.keys.feed, state.pinned)
    except (StateLost, BadConfiguration):
        return {}  # the answers can be shown all the same
