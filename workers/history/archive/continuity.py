"""Continuity of an archive: it is of the feed that Redis has, and not of an earlier one."""

from pathlib import Path

from workers.broker.feed_reader import FeedReader
from workers.errors import BadConfiguration
from workers.feed.position import parse_id
from workers.feed.state import FeedState
from workers.history.archive.reader import last_answer
from workers.reading.answers import answer, payload


class BegunAnew(BadConfiguration):
    """A feed that was reset after it was archived: its answers are others."""

    def __init__(self, feed: str, directory: Path) -> None:
        super().__init__(
            f"feed {feed!r} was begun anew after {directory} was written: archive it to another "
            "directory"
        )


def last_archived(store: FeedReader, state: FeedState, directory: Path) -> int | None:
    """Return the `seq` of the last archived answer; None if none is archived.

    A feed that answers the same input again has the same answers, and the archive goes on.

    Raises
    ------
    BegunAnew
        If the feed has another answer there, has not come so far, or goes on with a lower `seq`.
    BadConfiguration
        If the archive cannot be read.
    """
    last = last_answer(directory)
    if last is None:
        return None
    entry_id, text, seq = last
    out = store.keys.out
    same = store.call("XRANGE", out, entry_id, entry_id)
    is_other = bool(same) and payload(same[0]) != text
    is_behind = parse_id(state.position.cursor) < parse_id(entry_id)
    following = store.call("XRANGE", out, b"(" + entry_id, "+", "COUNT", 1)
    then = answer(following[0]).get("seq") if following else None
    is_lower = isinstance(then, int) and seq is not None and then <= seq
    if is_other or is_behind or is_lower:
        raise BegunAnew(store.keys.feed, directory)
    return seq
