"""Digests of the chain of answers, at the entries that are erased.

The chain goes through the payload of every answer. Where one is erased, the digest after it takes
its place: so the answers before and after are still bound to one another.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from operator import itemgetter
from typing import NamedTuple

from workers.broker.batch_size import Entry
from workers.feed.digest import ALARMS, MET, OUT, Digest, chain
from workers.feed.erased import ErasedEntry
from workers.feed.position import parse_id
from workers.reading.answers import payload

Entries = Iterable[Entry]


class ChainLink(NamedTuple):
    """One link of the chain.

    Attributes
    ----------
    id : bytes
    is_answer : bool
        Whether it is that of an answer; else of a report or of alarms.
    is_erased : bool
    digest : bytes or None
        After it; None where an erased entry before it has no digest.
    """

    id: bytes
    is_answer: bool
    is_erased: bool
    digest: Digest | None


class ChainSource(NamedTuple):
    """Where the chain can be followed from.

    Attributes
    ----------
    digest : bytes
        At the beginning.
    after : bytes
        ID where that is.
    entries : callable
        Gives answers, reports and alarms after an ID, up to the committed cursor.
    """

    digest: Digest
    after: bytes
    entries: Callable[[bytes], Sequence[Entries]]


def links(
    digest: Digest, streams: Sequence[Entries], erased: Mapping[bytes, ErasedEntry]
) -> Iterator[ChainLink]:
    """Follow the chain through answers, reports and alarms, in that order at one ID.

    Parameters
    ----------
    digest : bytes
        At the beginning.
    streams : three iterables of entries
    erased : mapping of bytes to ErasedEntry
        Those after the beginning: their answers are not among the streams.
    """
    kinds = (OUT, MET, ALARMS)
    found = [_placed(stream, place) for place, stream in enumerate(streams)]
    empty = ((parse_id(at), 0, (at, None)) for at in sorted(erased, key=parse_id))
    now: Digest | None = digest
    for _, place, (at, data) in merge(empty, *found, key=itemgetter(0, 1)):
        if data is None:
            now = erased[at].link
        elif now is not None:
            now = chain(now, [(kinds[place], at, data)])
        yield ChainLink(at, place == 0, data is None, now)


def link_digests(
    to_erase: Iterable[bytes],
    erased: Mapping[bytes, ErasedEntry],
    sources: Iterable[ChainSource],
    end: Digest,
) -> dict[bytes, Digest]:
    """Return the digest after each answer that is to be erased, as far as it can be known.

    A source proves itself: from it, the chain must reach the committed digest.

    Parameters
    ----------
    to_erase : iterable of bytes
        IDs of answers, which are still there.
    erased : mapping of bytes to ErasedEntry
        What was erased before.
    sources : iterable of ChainSource
    end : bytes
        The committed digest.
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
