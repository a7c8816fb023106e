"""Parse the entries of a feed's output streams, and the settings stored with the feed."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from workers.broker.feed_reader import FeedReader
from workers.broker.streams import no_answer, payload
from workers.errors import BadConfiguration, StateLost
from workers.feed.codes import parse
from workers.feed.pinned_config import Groups, check_supported, stored_groups
from workers.feed.position import parse_id


def check_known(store: FeedReader) -> None:
    """Raise BadConfiguration if an earlier version began the feed, by other rules.

    A damaged state raises nothing: the answers can still be shown.
    """
    try:
        state = store.state()
    except StateLost:
        return
    if state is not None:
        check_supported(store.keys.feed, state.pinned)


def answer(entry: Sequence[Any]) -> dict[str, Any]:
    """Return the parsed payload of an entry of `out` or `met`.

    StateLost: it is not a JSON object, so another program wrote it.
    """
    parsed = message(entry)
    if not isinstance(parsed, dict):
        raise no_answer(entry)
    return parsed


def message(entry: Sequence[Any]) -> Any:
    """Return the parsed payload of an entry; None if another program wrote it."""
    try:
        return parse(payload(entry))
    except (StateLost, ValueError):
        return None


def is_prediction(payload: Any) -> bool:
    """Return whether a parsed payload of `out` answers an example, rather than a label."""
    return isinstance(payload, dict) and (
        "guarantee" in payload or payload.get("status") in ("warming", "ok")
    )


def newest_answer(payloads: Iterable[Any]) -> Mapping[str, Any]:
    """Return the newest prediction among parsed payloads; if there is none, the newest object."""
    objects = [payload for payload in payloads if isinstance(payload, dict)]
    answers = [payload for payload in objects if is_prediction(payload)] or objects
    return answers[-1] if answers else {}


def newest_label(
    entries: Iterable[tuple[bytes, Any]], previous: float | None = None
) -> float | None:
    """Return the time of the newest label among entries of `out`, in milliseconds since 1970.

    The entries are IDs and parsed payloads, the oldest first. `previous` is the time of the newest
    label before them, and the result if they have none. If it is unknown, the first entry's time
    stands for it.
    """
    for entry_id, parsed in entries:
        is_label = isinstance(parsed, dict) and parsed.get("status") == "label"
        if previous is None or is_label:
            previous = float(parse_id(entry_id)[0])
    return previous


def number(value: Any) -> float:
    """Return a JSON number as a float; NaN for anything else.

    Examples
    --------
    >>> number(3), number("3"), number(None), number(True)
    (3.0, nan, nan, nan)
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and abs(value) < 1e300 else math.nan


def as_object(value: Any) -> dict[str, Any]:
    """Return a value that is an object of JSON; an empty one for any other."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """Return a value that is a list of JSON; an empty one for any other."""
    return value if isinstance(value, list) else []


def stored_values(reader: FeedReader) -> Groups:
    """Return the stored settings of a feed, by group; empty if none are readable."""
    try:
        state = reader.state()
        return {} if state is None else stored_groups(reader.keys.feed, state.pinned)
    except (StateLost, BadConfiguration):
        return {}  # the answers can still be shown
