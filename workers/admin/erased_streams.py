"""Erased entries in Redis: find them, list them with their digests, copy streams without them.

The chain of digests covers the payload of every answer. For an erased answer the digest after it is
stored, so that the chain can be checked before and after the gap.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from workers.broker.commands import Script
from workers.broker.feed_reader import FeedReader
from workers.broker.store import Store
from workers.broker.streams import Entry
from workers.errors import Unavailable
from workers.feed.erased import Erased, ErasedEntry
from workers.feed.position import Digest, parse_id
from workers.reading.answers import payload
from workers.session.replay import links

_REPLACE = Script.load("streams", "replace_stream")

_ATTEMPTS = 100  # rounds of copying; each copies the entries that were added during the last one
_COPY_SECONDS = 3600  # time after which an unfinished copy expires


def erased_of(store: FeedReader) -> Erased:
    """Return the erased entries of a feed; raise StateLost if the list is damaged."""
    key = store.keys.erased
    return Erased.parse(store.hash_fields(key), key)


def write(store: Store, record: Erased) -> None:
    """Write the list of entries that are erased, or will be."""
    store.write_erased([part for pair in record.fields() for part in pair])


def ids_of_person(store: Store, sent: bytes, upto: bytes) -> tuple[set[bytes], int]:
    """Return the IDs of answered entries with a producer's id, and the number of unanswered ones.

    Entries are delayed labels too. Those up to the committed cursor `upto` are answered; they are
    found in the input, the answers and the dead letters.
    """
    keys = store.keys
    matches: tuple[tuple[str, Callable[[Entry], bool]], ...] = (
        (keys.input, lambda entry: has_person(entry[1], sent)),
        (keys.out, lambda entry: answers_person(entry, sent)),
        (keys.dlq, lambda entry: _was_rejected(entry, sent)),
    )
    found = {
        entry[0]
        for stream, is_match in matches
        for entry in store.each(stream, b"0-0", upto)
        if is_match(entry)
    }
    return found, sum(has_person(entry[1], sent) for entry in store.each(keys.input, upto))


def has_person(flat: list[bytes], sent: bytes) -> bool:
    """Return whether an input entry or a request has a producer's id, or is a label for it."""
    pairs = zip(flat[::2], flat[1::2], strict=False)
    return any(name in (b"id", b"for") and value == sent for name, value in pairs)


def answers_person(entry: Entry, sent: bytes) -> bool:
    """Return whether an answer has a producer's id, or is the answer to a label for it."""
    data = payload(entry)
    # Skip parsing if the bytes of the id do not occur; but JSON may escape characters.
    if sent not in data and b"\\" not in data:
        return False
    try:
        message: Any = orjson.loads(data)
    except orjson.JSONDecodeError:
        return False
    person = sent.decode(errors="surrogateescape")
    return isinstance(message, dict) and person in (message.get("id"), message.get("example"))


def remove_entries(store: Store, stream: str, is_removed: Callable[[Entry], bool]) -> int:
    """Replace a stream by a copy without some entries; return their number.

    The copy has the entries that are added meanwhile, and the consumer groups. Raises Unavailable
    if the stream grows faster than it is copied.
    """
    copy, last, removed = store.keys.copy_of(stream), b"0-0", 0
    if not store.has_stream(stream):
        return 0
    store.delete(copy)
    for _ in range(_ATTEMPTS):
        for page in store.pages(stream, last):
            kept = [entry for entry in page if not is_removed(entry)]
            store.append(copy, kept)
            store.expire(copy, _COPY_SECONDS)
            removed += len(page) - len(kept)
            last = page[-1][0]
        if store.run(_REPLACE, [stream, copy], [last])[0] == b"OK":
            return removed
    store.delete(copy)
    raise Unavailable(
        f"{stream} grows faster than it can be copied: stop its producers for a while, and run the "
        "same command again"
    )


def _was_rejected(entry: Entry, sent: bytes) -> bool:
    """Return whether a dead letter has a producer's id in its head, which has a line a field."""
    flat = entry[1]
    head = b"\n" + dict(zip(flat[::2], flat[1::2], strict=False)).get(b"head", b"")
    # Not split into lines: the id may contain line breaks.
    return any(b"\n%b=%b\n" % (name, sent) in head for name in (b"id", b"for"))


class ChainSource(NamedTuple):
    """A point from which the chain can be followed."""

    digest: Digest  # at the start
    after: bytes  # ID of the start
    # Returns answers, reports and alarms after an ID, up to the committed cursor
    entries: Callable[[bytes], Sequence[Iterable[Entry]]]


def link_digests(
    to_erase: Iterable[bytes],
    erased: Mapping[bytes, ErasedEntry],
    sources: Iterable[ChainSource],
    end: Digest,
) -> dict[bytes, Digest]:
    """Return the digest after each answer to erase, where it can be computed.

    The digests from a source count only if the chain from it ends at the committed digest `end`.
    `erased` are the entries that were erased before.
    """
    missing, found = set(to_erase), dict[bytes, Digest]()
    for source in sources:
        if missing <= found.keys():
            break
        begin, last = parse_id(source.after), source.digest
        earlier = {at: entry.digest for at, entry in erased.items() if parse_id(at) > begin}
        digests: dict[bytes, Digest] = {}
        for link in links(source.digest, source.entries(source.after), earlier):
            if link.digest is None:
                digests, last = {}, b""
                continue
            last = link.digest
            if link.is_answer and link.id in missing:
                digests[link.id] = link.digest
        if last == end:
            found = digests | found
    return found
