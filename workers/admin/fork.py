"""Fork: copy the kept input of a feed to a new feed.

An interrupted fork can be continued any number of times. A partial copy has no mark; it is
recognised by its contents: every entry that the source still has is equal to the entry in the copy.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from workers.broker.batch_size import Entry
from workers.broker.store import Store
from workers.errors import BadConfiguration, InputLost
from workers.feed.position import parse_id
from workers.reading.answers import newest
from workers.reading.registry import NoSuchFeed

Progress = Callable[[int], None]

_START = b"0-0"


@dataclass(frozen=True, slots=True)
class Fork:
    """The result of a fork.

    Attributes
    ----------
    copied : int
        Entries that this call copied.
    total : int
        Entries of the new feed.
    trimmed : int
        Entries that the source answered and has trimmed; the new feed lacks them.
    """

    copied: int
    total: int
    trimmed: int


def fork(store: Store, target: Store, progress: Progress | None = None) -> Fork:
    """Copy the kept input of a feed to a new one, under the same IDs; continue a partial copy.

    The source may grow meanwhile; the entries that it has at the beginning are copied.

    Parameters
    ----------
    store, target : Store
    progress : callable, optional
        Called with the number of entries of the new feed so far.

    Raises
    ------
    BadConfiguration
        If the target exists and is not a partial copy of this source, or the source has no input.
    InputLost
        If the source trimmed entries before they were copied.
    """
    keys = store.keys
    last = _last(store, keys.input)
    if last == _START:
        raise NoSuchFeed(f"feed {keys.feed!r} has no input to copy")
    state = store.state()
    cursor, seq = (_START, 0) if state is None else (state.position.cursor, state.position.seq)
    answered = _copied_before(store, target, parse_id(cursor))
    target.register()
    before, copied = target.length(target.keys.input), 0
    for page in _unbroken(store, _last(target, target.keys.input), last):
        target.append(target.keys.input, page)
        copied += len(page)
        answered += sum(parse_id(entry[0]) <= parse_id(cursor) for entry in page)
        if progress is not None:
            progress(before + copied)
    return Fork(copied, before + copied, max(0, seq - answered))


def is_input_alone(store: Store) -> bool:
    """Return whether a feed has only input: no worker has started it."""
    return set(store.types()) == {store.keys.input} and not store.has_snapshots()


def _copied_before(store: Store, target: Store, cursor: tuple[int, int]) -> int:
    """Return how many entries up to the cursor were copied by earlier calls.

    Raises
    ------
    BadConfiguration
        If the target has entries that are not from this source.
    InputLost
        If the source no longer has the last copied entry.
    """
    if not target.types():
        return 0
    theirs = target.keys
    another = BadConfiguration(
        f"feed {theirs.feed!r} exists and is no half-made copy of {store.keys.feed!r}: choose "
        "another name with --to"
    )
    if not is_input_alone(target):
        raise another
    first = _first(store)
    count = common = 0
    for page in target.pages(theirs.input, _START):
        count += sum(parse_id(entry[0]) <= cursor for entry in page)
        kept = [entry for entry in page if parse_id(entry[0]) >= first]
        if kept and kept != _span(store, kept):
            raise another
        common += len(kept)
    if not common:
        raise InputLost(
            f"feed {theirs.feed!r} ends before the input that {store.keys.feed!r} still has: if it "
            f"is a half-made copy, delete it with online-svm reset {theirs.feed} --input, and fork "
            "again; if not, choose another name with --to"
        )
    return count


def _unbroken(store: Store, after: bytes, last: bytes) -> Iterator[list[Entry]]:
    """Yield the input in (after, last] a page at a time.

    Raises
    ------
    InputLost
        If entries were trimmed before they were copied.
    """
    if parse_id(after) >= parse_id(last):
        return
    for page in store.pages(store.keys.input, after, last):
        # Redis trims from the start: if the entry before the page is there, the page is complete.
        if after != _START and parse_id(after) < _first(store):
            raise InputLost(
                f"feed {store.keys.feed!r} gave up input after {after.decode()} before it was "
                "copied: stop its worker meanwhile, or start it with --keep-input; delete the copy "
                "with online-svm reset NAME --input, and fork again"
            )
        yield page
        after = page[-1][0]


def _span(store: Store, entries: Sequence[Entry]) -> list[Entry]:
    """Return the source's entries from the first of these to the last."""
    found: list[Entry] = store.call(
        "XRANGE", store.keys.input, entries[0][0], entries[-1][0], "COUNT", len(entries) + 1
    )
    return found


def _first(store: Store) -> tuple[int, int]:
    """Return the ID of the oldest entry of the input; beyond any ID if there is none."""
    found = store.call("XRANGE", store.keys.input, "-", "+", "COUNT", 1)
    return parse_id(found[0][0]) if found else (1 << 64, 0)


def _last(store: Store, stream: str) -> bytes:
    """Return the ID of the newest entry of a stream; the start if there is none."""
    found = newest(store, stream, 1)
    return bytes(found[0][0]) if found else _START
