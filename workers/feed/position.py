"""The position of a feed: cursor, counters, digest; arithmetic of entry IDs."""

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

Digest = bytes

OUT, MET, ALARMS = b"o", b"m", b"a"
"""The streams of the digest chain, in their order at one entry ID."""

_LINK = struct.Struct(">cQQI")


def chain(digest: Digest, links: Iterable[tuple[bytes, bytes, bytes]]) -> Digest:
    """Return the digest after more output entries: stream (`OUT`, `MET` or `ALARMS`), ID, payload.

    For each entry, by ID and then by stream: d <- sha256(d, stream byte, 16-byte ID, 4-byte length,
    payload). Unlike the state of one running hash, a digest can be stored after each commit.

    Examples
    --------
    >>> chain(bytes(32), [(OUT, b"1-0", b"{}")]).hex()[:8]
    '1d631555'
    """
    pack = _LINK.pack
    for stream, entry_id, payload in links:
        time, _, count = entry_id.partition(b"-")
        head = pack(stream, int(time), int(count), len(payload))
        digest = sha256(digest + head + payload).digest()
    return digest


MAX_ID_PART = 2**64 - 1  # the largest value of either part of an entry ID

LAST_ID = b"%d-%d" % (MAX_ID_PART, MAX_ID_PART)
"""The largest ID of a stream. No entry can follow it, and Redis refuses ranges after it."""

END = (
    f"the stream has reached {LAST_ID.decode()}, the last ID that Redis has: no entry can follow. "
    "Push to another feed, or begin this one anew with online-svm reset FEED --input"
)


@dataclass(frozen=True, slots=True)
class Position:
    """A point between two input entries."""

    cursor: bytes = b"0-0"  # ID of the last answered entry
    seq: int = 0  # answered entries, also rejected ones
    n: int = 0  # learned examples
    digest: Digest = bytes(32)  # see `chain`


START = Position()


def parse_id(entry_id: bytes) -> tuple[int, int]:
    """Return the two parts of an entry ID; they compare as IDs do.

    Examples
    --------
    >>> parse_id(b"5-9") < parse_id(b"5-10")
    True
    """
    time, _, count = entry_id.partition(b"-")
    return int(time), int(count)


def format_id(numbers: tuple[int, int]) -> bytes:
    """Return the entry ID with these two parts."""
    return b"%d-%d" % numbers


def last_id_at(milliseconds: float) -> bytes:
    """Return the largest ID of a millisecond."""
    return b"%d-%d" % (milliseconds, MAX_ID_PART)


def next_id(entry_id: bytes) -> bytes | None:
    """Return the ID right after another; None after `LAST_ID`.

    Examples
    --------
    >>> next_id(b"5-9"), next_id(b"5-18446744073709551615"), next_id(LAST_ID)
    (b'5-10', b'6-0', None)
    """
    time, count = parse_id(entry_id)
    if count < MAX_ID_PART:
        return format_id((time, count + 1))
    return b"%d-0" % (time + 1) if time < MAX_ID_PART else None


def previous_id(entry_id: bytes) -> bytes:
    """Return the ID right before another; b"0-0" before itself.

    Examples
    --------
    >>> previous_id(b"5-10"), previous_id(b"6-0"), previous_id(b"0-1"), previous_id(b"0-0")
    (b'5-9', b'5-18446744073709551615', b'0-0', b'0-0')
    """
    time, count = parse_id(entry_id)
    if count > 0:
        return format_id((time, count - 1))
    return last_id_at(time - 1) if time > 0 else b"0-0"
