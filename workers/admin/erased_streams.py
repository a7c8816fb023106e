"""Erased entries in Redis: find them, list them with their digests, copy streams without them.

The chain of digests covers the payload of every answer. For an erased answer the digest after it is
stored, and the one before it, so that the chain can be checked before and after the gap. The hash
`erased` has a field for each erased entry, named by its ID, with its `seq` and, if known, these
digests, but nothing of its contents. Its field `base` is the position from which the feed was
learned again.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import orjson

from workers.broker.commands import Script
from workers.broker.feed_reader import FeedReader
from workers.broker.store import Store
from workers.broker.streams import Entry, payload
from workers.errors import StateLost, Unavailable
from workers.feed.keys import LEARNED_AGAIN
from workers.feed.position import Digest, Position, parse_id
from workers.feed.state_fields import count, digest, entry_id
from workers.session.replay import links
from workers.text import counted

_BASE, _UNFINISHED = LEARNED_AGAIN.encode(), b"unfinished"
_UNKNOWN = b"-"
_SHOWN = 5  # IDs in a message


@dataclass(frozen=True, slots=True)
class ErasedEntry:
    """An erased entry."""

    seq: int  # input entries before it
    digest: Digest | None = None  # after its answer, if known
    before: Digest | None = None  # before its answer, if known


@dataclass(frozen=True, slots=True)
class Base:
    """The position from which a feed was learned again."""

    first: bytes  # ID of the first learned entry
    position: Position  # of the feed, but `n` counts the examples of the new learner


@dataclass(slots=True)
class Erased:
    """The hash `erased` of one feed."""

    entries: dict[bytes, ErasedEntry] = field(default_factory=dict)
    base: Base | None = None
    is_unfinished: bool = False  # whether an erasure was started and not completed

    def between(self, first: bytes, last: bytes) -> list[bytes]:
        """Return the IDs of erased entries in a range, bounds included, in order."""
        begin, end = parse_id(first), parse_id(last)
        return sorted((at for at in self.entries if begin <= parse_id(at) <= end), key=parse_id)

    def fields(self) -> Iterable[tuple[bytes, bytes]]:
        """Yield names and values of the hash."""
        for name, entry in self.entries.items():
            yield name, b"%d %b %b" % (entry.seq, _link(entry.digest), _link(entry.before))
        if self.base is not None:
            at = self.base.position
            texts = (self.base.first, at.cursor, at.seq, at.n, at.digest.hex().encode())
            yield _BASE, b"%b %b %d %d %b" % texts
        if self.is_unfinished:
            yield _UNFINISHED, b"1"

    @classmethod
    def parse(cls, fields: Mapping[bytes, bytes], key: str) -> Self:
        """Decode the fields of the hash. Raises StateLost if a field is damaged."""
        found = cls(is_unfinished=_UNFINISHED in fields)
        for name, value in fields.items():
            try:
                if name == _BASE:
                    found.base = _base(value)
                elif name != _UNFINISHED:
                    found.entries[entry_id(name)] = _entry(value)
            except (ValueError, IndexError) as error:
                raise StateLost(f"{key} is damaged: field {name[:60]!r}, {error}") from error
        return found


class Missing(NamedTuple):
    """Answered entries that the input of a feed no longer has."""

    trimmed: int  # number of trimmed entries, the oldest ones
    erased: tuple[bytes, ...] = ()  # IDs of erased entries, in order

    @classmethod
    def of(cls, record: Erased, cursor: bytes, count: int) -> Self:
        """Return the missing entries, given that `count` entries up to a cursor are missing."""
        erased = tuple(record.between(b"0-0", cursor))
        return cls(max(0, count - len(erased)), erased)

    @property
    def erased_shown(self) -> str:
        """The number of erased entries, and the first of their IDs.

        Examples
        --------
        >>> Missing(0, tuple(b"%d-0" % i for i in range(7))).erased_shown
        '7 erased entries (0-0, 1-0, 2-0, 3-0, 4-0 and 2 more)'
        """
        count, shown = len(self.erased), [at.decode() for at in self.erased[:_SHOWN]]
        more = f" and {count - _SHOWN} more" if count > _SHOWN else ""
        return f"{counted(count, 'erased entry', 'erased entries')} ({', '.join(shown)}{more})"


def _link(known: Digest | None) -> bytes:
    return _UNKNOWN if known is None else known.hex().encode()


def _entry(value: bytes) -> ErasedEntry:
    seq, *links = value.split(b" ")
    after, before = (None if link == _UNKNOWN else digest(link) for link in links)
    return ErasedEntry(count(seq), after, before)


def _base(value: bytes) -> Base:
    first, cursor, seq, n, link = value.split(b" ")
    position = Position(entry_id(cursor), count(seq), count(n), digest(link))
    return Base(entry_id(first), position)


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


def ids_of_person(store: FeedReader, sent: bytes, upto: bytes) -> tuple[set[bytes], int]:
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
    """Return whether an input entry has a producer's id, or is a label for it."""
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
) -> dict[bytes, tuple[Digest, Digest]]:
    """Return the digests after and before each answer to erase, where they can be computed.

    The digests from a source count only if the chain from it ends at the committed digest `end`.
    `erased` are the entries that were erased before.
    """
    missing, found = set(to_erase), dict[bytes, tuple[Digest, Digest]]()
    for source in sources:
        if missing <= found.keys():
            break
        begin, last = parse_id(source.after), source.digest
        earlier = {at: entry.digest for at, entry in erased.items() if parse_id(at) > begin}
        digests: dict[bytes, tuple[Digest, Digest]] = {}
        for link in links(source.digest, source.entries(source.after), earlier):
            if link.digest is None:
                digests, last = {}, b""
                continue
            if link.is_answer and link.id in missing and last:
                digests[link.id] = link.digest, last
            last = link.digest
        if last == end:
            found = digests | found
    return found
