"""Compare where the state and the answers of a feed end; every commit leaves them equal."""

from dataclasses import dataclass

from workers.broker.store import Store
from workers.errors import OutputAhead, StateAhead
from workers.feed.position import parse_id
from workers.feed.state import FeedState


@dataclass(frozen=True, slots=True)
class FeedEnds:
    """The last IDs of a feed's state and of its answers.

    Attributes
    ----------
    state : bytes
        Cursor in `st`.
    out : bytes
        The last ID added to `out`, whether or not that entry is still there.

    Examples
    --------
    >>> FeedEnds(b"5-9", b"5-10").is_behind, FeedEnds(b"5-10", b"5-9").is_ahead
    (True, True)
    """

    state: bytes
    out: bytes

    @property
    def is_behind(self) -> bool:
        """Whether `out` holds answers that `st` does not know."""
        return parse_id(self.state) < parse_id(self.out)

    @property
    def is_ahead(self) -> bool:
        """Whether `out` lacks answers that `st` says were given."""
        return parse_id(self.out) < parse_id(self.state)


def find_ends(store: Store, state: FeedState) -> FeedEnds:
    """Return the last IDs of a feed's state and of its answers.

    If `out` does not exist, a user removed the answers on purpose: it counts as equal.
    """
    out = last_id(store, store.keys.out)
    return FeedEnds(state.position.cursor, state.position.cursor if out is None else out)


def last_id(store: Store, stream: str) -> bytes | None:
    """Return the last ID added to a stream; None if the stream does not exist."""
    if store.call("TYPE", stream) == b"none":
        return None
    info = store.call("XINFO", "STREAM", stream)
    found: bytes = dict(zip(info[::2], info[1::2], strict=True))[b"last-generated-id"]
    return found


def check_ends(store: Store, state: FeedState) -> None:
    """Raise unless state and answers end at the same ID; the error says which is newer.

    A worker may be at work on the feed: what it commits meanwhile is no damage.

    Parameters
    ----------
    store : Store
    state : FeedState
        As it was read before this call.

    Raises
    ------
    OutputAhead, StateAhead
    """
    found, keys = find_ends(store, state), store.keys
    if found.is_behind and (now := store.state()) is not None:
        # The worker that has the feed may have committed between the two looks. Each commit is
        # whole, so a state that is read after the answers stands at their end at least.
        if parse_id(now.position.cursor) >= parse_id(found.out):
            return
        found, state = FeedEnds(now.position.cursor, found.out), now
    ways_on = (
        f"online-svm verify {keys.feed} --repair mends it where answering the input again gives "
        f"those answers byte for byte; else online-svm restore {keys.feed} FILE, or: online-svm "
        f"reset {keys.feed}"
    )
    if found.is_behind:
        raise OutputAhead(
            f"{keys.out} is newer than {keys.state}: the state ends at {found.state.decode()} (seq "
            f"{state.position.seq}), the answers end at {found.out.decode()}. {ways_on}"
        )
    if found.is_ahead:
        raise StateAhead(
            f"{keys.state} is newer than {keys.out}: the state ends at {found.state.decode()} (seq "
            f"{state.position.seq}), the answers end at {found.out.decode()}. {ways_on}"
        )
