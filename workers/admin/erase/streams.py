"""Erased entries in Redis: the list of them, how they are found, and streams without them."""

from collections.abc import Callable, Collection
from typing import Any

import orjson

from workers.broker.batch_size import Entry
from workers.broker.feed_reader import FeedReader, pairs_of
from workers.broker.script import Script
from workers.broker.store import Store
from workers.errors import Unavailable
from workers.feed.erased import Erased
from workers.reading.answers import payload

_REPLACE = Script.load("streams", "replace_stream")

_ATTEMPTS = 100
"""Times to copy what came meanwhile: each time it is far less than the time before."""

_COPY_SECONDS = 3600  # a copy that nobody finished expires


def erased_of(store: FeedReader) -> Erased:
    """Return what was erased from a feed.

    Raises
    ------
    StateLost
        If the list is damaged.
    """
    key = store.keys.erased
    return Erased.parse(pairs_of(store.call("HGETALL", key)), key)


def write(store: FeedReader, record: Erased) -> None:
    """Write what was erased, or is about to be."""
    fields = [part for pair in record.fields() for part in pair]
    store.call("HSET", store.keys.erased, *fields)


def finish(store: FeedReader) -> None:
    """Note that nothing is left to erase."""
    store.call("HDEL", store.keys.erased, "unfinished")


def ids_of_person(store: Store, sent: bytes, upto: bytes) -> tuple[set[bytes], int]:
    """Return the IDs of the entries with a producer's id, and how many of them wait.

    Input, labels that came late, answers and dead letters count.

    Parameters
    ----------
    store : Store
    sent : bytes
        The id.
    upto : bytes
        The committed cursor; what is in the input after it waits for its answer.
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
    """Return whether an input entry, or a request, is of an id, or its label.

    Examples
    --------
    >>> names_person([b"for", b"a", b"y", b"1"], b"a"), names_person([b"x", b"a"], b"a")
    (True, False)
    """
    pairs = zip(flat[::2], flat[1::2], strict=False)
    return any(name in (b"id", b"for") and value == sent for name, value in pairs)


def answers_person(entry: Entry, sent: bytes) -> bool:
    """Return whether an answer is of an id."""
    data = payload(entry)
    # JSON may spell a character in another way; what cannot be in the text is not parsed.
    if sent not in data and b"\\" not in data:
        return False
    try:
        message: Any = orjson.loads(data)
    except orjson.JSONDecodeError:
        return False
    person = sent.decode(errors="surrogateescape")
    return isinstance(message, dict) and person in (message.get("id"), message.get("example"))


def is_text(sent: bytes) -> bool:
    """Return whether an id is text; entries with another one are rejected, but may be erased."""
    try:
        sent.decode()
    except UnicodeDecodeError:
        return False
    return True


def without(store: Store, stream: str, gone: Callable[[Entry], bool]) -> int:
    """Replace a stream by a copy without some entries; return how many.

    Entries that are added meanwhile are in the copy. Consumer groups stay.

    Raises
    ------
    Unavailable
        If the stream grows faster than it is copied.
    """
    copy, last, dropped = store.keys.copy_of(stream), b"0-0", 0
    if store.call("TYPE", stream) == b"none":
        return 0
    store.call("DEL", copy)
    for _ in range(_ATTEMPTS):
        for page in store.pages(stream, last):
            kept = [entry for entry in page if not gone(entry)]
            store.append(copy, kept)
            store.call("EXPIRE", copy, _COPY_SECONDS)
            dropped += len(page) - len(kept)
            last = page[-1][0]
        if store.run(_REPLACE, [stream, copy], [last])[0] == b"OK":
            return dropped
    store.call("DEL", copy)
    raise Unavailable(
        f"{stream} grows faster than it can be copied: stop its producers for a while, and run the "
        "same command again"
    )


def among(gone: Collection[bytes]) -> Callable[[Entry], bool]:
    """Return the test whether an entry has one of these IDs."""
    return lambda entry: entry[0] in gone


def _was_rejected(entry: Entry, sent: bytes) -> bool:
    """Return whether a dead letter is of an id: its head has a line for each field."""
    flat = entry[1]
    head = b"\n" + dict(zip(flat[::2], flat[1::2], strict=False)).get(b"head", b"")
    # An id may hold line breaks itself.
    return any(b"\n%b=%b\n" % (name, sent) in head for name in (b"id", b"for"))
