"""Erased entries in Redis: how they are found, their list, the digests there, streams without them.

The chain of digests covers the payload of every answer. For an erased answer the digest after it is
stored, so the answers before and after it stay bound to one another.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from operator import itemgetter
from typing import Any, NamedTuple

import orjson

from workers.broker.commands import Script
from workers.broker.feed_reader import FeedReader
from workers.broker.store import Store
from workers.broker.streams import Entry
from workers.errors import Unavailable
from workers.feed.erased import Erased, ErasedEntry
from workers.feed.position import ALARMS, MET, OUT, Digest, chain, parse_id
from workers.reading.answers import payload

_REPLACE = Script.load("streams", "replace_stream")

_ATTEMPTS = 100  # times to copy what came meanwhile: each time it is far less than the time before
_COPY_SECONDS = 3600  # an unfinished copy expires


def erased_of(store: FeedReader) -> Erased:
    """Return the erased entries of a feed; raise StateLost if the list is damaged."""
    key = store.keys.erased
    return Erased.parse(store.hash_fields(key), key)


def write(store: Store, record: Erased) -> None:
    """Write the list of entries that are erased or about to be."""
    store.write_erased([part for pair in record.fields() for part in pair])


def ids_of_person(store: Store, sent: bytes, upto: bytes) -> tuple[set[bytes], int]:
    """Return the IDs of the entries with a producer's id `sent`, and how many of them wait.

    Input, late labels, answers and dead letters count. Input after the committed cursor `upto`
    waits for its answer.
    """
    keys = store.keys
    matches: tuple[tuple[str, Callable[[Entry], bool]], ...] = (
        (keys.input, lambda entry: names_person(entry[1], sent)),
        (keys.out, lambda entry: answers_person(entry, sent)),
        (keys.dlq, lambda entry: _was_rejected(entry, sent)),
    )
    found = {
        entry[0]
        for stream, is_of in matches
        for page in store.pages(stream, b"0-0", upto)
        for entry in page
        if is_of(entry)
    }
    waiting = sum(
        names_person(entry[1], sent) for page in store.pages(keys.input, upto) for entry in page
    )
    return found, waiting


def names_person(flat: list[bytes], sent: bytes) -> bool:
    """Return whether an input entry, or a request, is of an id, or its label."""
    pairs = zip(flat[::2], flat[1::2], strict=False)
    return any(name in (b"id", b"for") and value == sent for name, value in pairs)


def answers_person(entry: Entry, sent: bytes) -> bool:
    """Return whether an answer is of an id."""
    data = payload(entry)
    # JSON may escape a character; a text that cannot hold the id is not parsed.
    if sent not in data and b"\\" not in data:
        return False
    try:
        message: Any = orjson.loads(data)
    except orjson.JSONDecodeError:
        return False
    person = sent.decode(errors="surrogateescape")
    return isinstance(message, dict) and person in (message.get("id"), message.get("example"))


def without(store: Store, stream: str, gone: Callable[[Entry], bool]) -> int:
    """Replace a stream by a copy without some entries; return how many.

    Entries that are added meanwhile are in the copy. Consumer groups stay.

    Raises Unavailable if the stream grows faster than it is copied.
    """
    copy, last, dropped = store.keys.copy_of(stream), b"0-0", 0
    if not store.has_stream(stream):
        return 0
    store.delete(copy)
    for _ in range(_ATTEMPTS):
        for page in store.pages(stream, last):
            kept = [entry for entry in page if not gone(entry)]
            store.append(copy, kept)
            store.expire(copy, _COPY_SECONDS)
            dropped += len(page) - len(kept)
            last = page[-1][0]
        if store.run(_REPLACE, [stream, copy], [last])[0] == b"OK":
            return dropped
    store.delete(copy)
    raise Unavailable(
        f"{stream} grows faster than it can be copied: stop its producers for a while, and run the "
        "same command again"
    )


def _was_rejected(entry: Entry, sent: bytes) -> bool:
    """Return whether a dead letter is of an id: its head has a line for each field."""
    flat = entry[1]
    head = b"\n" + dict(zip(flat[::2], flat[1::2], strict=False)).get(b"head", b"")
    # An id may hold line breaks itself.
    return any(b"\n%b=%b\n" % (name, sent) in head for name in (b"id", b"for"))


Entries = Iterable[Entry]


class ChainLink(NamedTuple):
    """One link of the chain."""

    id: bytes
    is_answer: bool  # else a report or alarms
    is_erased: bool
    digest: Digest | None  # after it; None if an erased entry before it has no digest


class ChainSource(NamedTuple):
    """A point from which the chain can be followed."""

    digest: Digest  # at the beginning
    after: bytes  # its ID
    # Gives answers, reports and alarms after an ID, up to the committed cursor
    entries: Callable[[bytes], Sequence[Entries]]


def links(
    digest: Digest, streams: Sequence[Entries], erased: Mapping[bytes, ErasedEntry]
) -> Iterator[ChainLink]:
    """Follow the chain from a digest through answers, reports and alarms, in that order at one ID.

    `erased` are the erased entries after the beginning: their answers are not among the streams.
    """
    kinds = (OUT, MET, ALARMS)
    found = [_placed(stream, place) for place, stream in enumerate(streams)]
    empty = ((parse_id(at), 0, (at, None)) for at in sorted(erased, key=parse_id))
    now: Digest | None = digest
    for _, place, (at, data) in merge(empty, *found, key=itemgetter(0, 1)):
        if data is None:
            now = erased[at].digest
        elif now is not None:
            now = chain(now, [(kinds[place], at, data)])
        yield ChainLink(at, place == 0, data is None, now)


def link_digests(
    to_erase: Iterable[bytes],
    erased: Mapping[bytes, ErasedEntry],
    sources: Iterable[ChainSource],
    end: Digest,
) -> dict[bytes, Digest]:
    """Return the digest after each answer to erase, as far as it can be known.

    A source is proved by the chain from it, which must reach the committed digest `end`. `erased`
    has the entries that were erased before.
    """
    wanted, found = set(to_erase), dict[bytes, Digest]()
    for source in sources:
        if wanted <= found.keys():
            break
        begin, last = parse_id(source.after), source.digest
        earlier = {at: entry for at, entry in erased.items() if parse_id(at) > begin}
        here: dict[bytes, Digest] = {}
        for link in links(source.digest, source.entries(source.after), earlier):
            if link.digest is None:
                here, last = {}, b""
                continue
            last = link.digest
            if link.is_answer and link.id in wanted:
                here[link.id] = link.digest
        if last == end:
            found = here | found
    return found


def _placed(
    stream: Entries, place: int
) -> Iterator[tuple[tuple[int, int], int, tuple[bytes, bytes | None]]]:
    for entry in stream:
        yield parse_id(entry[0]), place, (entry[0], payload(entry))
