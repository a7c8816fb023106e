"""Fork: copy the kept input of a feed, or of a recording, to a new feed.

An interrupted fork can be continued any number of times. A partial copy is recognised by its
contents: each of its entries that the source still has must be equal.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from workers.admin.erased_streams import Missing, erased_of
from workers.broker.feed_reader import FeedReader
from workers.broker.store import Store
from workers.broker.streams import Entry
from workers.errors import BadConfiguration, InputLost
from workers.feed.position import MAX_ID_PART, parse_id
from workers.push.convention import keep_convention, readable_convention
from workers.reading.registry import NoSuchFeed

Progress = Callable[[int], None]

_START = b"0-0"


@dataclass(frozen=True, slots=True)
class Fork:
    """The result of a fork."""

    copied: int  # entries that this call copied
    total: int  # entries of the new feed
    missing: Missing  # entries that the source answered and no longer has


def fork(store: FeedReader, target: Store, progress: Progress | None = None) -> Fork:
    """Copy the kept input of a feed to a new one, under the same IDs; continue a partial copy.

    How its tables are written is copied as well.

    Entries that are added to the source meanwhile are not copied. `progress` is called with the
    number of entries of the new feed so far.

    Raises BadConfiguration if the target exists and is not a partial copy of this source, or the
    source has no input; InputLost if the source trimmed entries before they were copied.
    """
    keys = store.keys
    last = store.newest_id(keys.input)
    if last == _START:
        raise NoSuchFeed(f"feed {keys.feed!r} has no input to copy")
    state = store.state()
    cursor, seq = (_START, 0) if state is None else (state.position.cursor, state.position.seq)
    answered = _copied_before(store, target, parse_id(cursor))
    target.register()
    keep_convention(target, readable_convention(store))
    before, copied = target.length(target.keys.input), 0
    for page in unbroken_input(store, target.newest_id(target.keys.input), last, _trimmed):
        target.append(target.keys.input, page)
        copied += len(page)
        answered += sum(parse_id(entry[0]) <= parse_id(cursor) for entry in page)
        if progress is not None:
            progress(before + copied)
    missing = Missing.of(erased_of(store), cursor, seq - answered)
    return Fork(copied, before + copied, missing)


def _copied_before(store: FeedReader, target: Store, cursor: tuple[int, int]) -> int:
    """Return the number of entries up to the cursor that earlier calls copied."""
    if not target.types():
        return 0
    source, copy = store.keys, target.keys
    no_copy = BadConfiguration(
        f"feed {copy.feed!r} exists and is no half-made copy of {source.feed!r}: choose "
        "another name with --to"
    )
    if set(target.types()) != {copy.input} or target.has_snapshots():  # a worker has begun it
        raise no_copy
    first = _first(store)
    count = common = 0
    for page in target.pages(copy.input, _START):
        count += sum(parse_id(entry[0]) <= cursor for entry in page)
        kept = [entry for entry in page if parse_id(entry[0]) >= first]
        if kept and kept != store.entries(source.input, kept[0][0], kept[-1][0], len(kept) + 1):
            raise no_copy
        common += len(kept)
    if not common:
        raise InputLost(
            f"feed {copy.feed!r} ends before the input that {source.feed!r} still has: if it "
            f"is a half-made copy, delete it with online-svm reset {copy.feed} --input, and fork "
            "again; if not, choose another name with --to"
        )
    return count


def unbroken_input(
    store: FeedReader, after: bytes, last: bytes, error_text: Callable[[str, bytes], str]
) -> Iterator[list[Entry]]:
    """Yield the input in (after, last] a page at a time; raise InputLost if some is trimmed.

    `error_text` returns the text of the error, from the feed and the ID before the gap.
    """
    if parse_id(after) >= parse_id(last):
        return
    for page in store.pages(store.keys.input, after, last):
        # Redis trims from the start: if the entry before a page still exists, the page is complete.
        if after != _START and parse_id(after) < _first(store):
            raise InputLost(error_text(store.keys.feed, after))
        yield page
        after = page[-1][0]


def _trimmed(feed: str, after: bytes) -> str:
    return (
        f"feed {feed!r} gave up input after {after.decode()} before it was copied: stop its worker "
        "meanwhile, or start it with --keep-input; delete the copy with online-svm reset NAME "
        "--input, and fork again"
    )


def _first(store: FeedReader) -> tuple[int, int]:
    """Return the ID of the oldest entry of the input; an ID beyond all others if it is empty."""
    found = store.first_entry(store.keys.input)
    return (MAX_ID_PART + 1, 0) if found is None else parse_id(found[0])
