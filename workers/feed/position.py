"""The position of a feed: cursor, counters, chained digest; the order of entry IDs."""

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

Digest = bytes

OUT, MET, ALARMS = b"o", b"m", b"a"
"""The chained streams, in their order within one entry ID."""

_LINK = struct.Struct(">cQQI")


def chain(digest: Digest, links: Iterable[tuple[bytes, bytes, bytes]]) -> Digest:
    """Return the digest after more output entries: stream (`OUT`, `MET` or `ALARMS`), ID, payload.

    For each entry, by ID and then by stream: d <- sha256(d, stream byte,
    16-byte ID, 4-byte length, payload). The digest is 32 bytes, so it can be stored after each
    commit; the state of a running hash could not.

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


MAX_ID_PART = 2**64 - 1
"""The largest value of either number of an entry ID."""

LAST_ID = b"%d-%d" % (MAX_ID_PART, MAX_ID_PART)
"""The last ID that a stream can have. No entry can follow it, and Redis refuses ranges after it."""

END = (
    f"the stream has reached {LAST_ID.decode()}, the last ID that Redis has: no entry can follow. "
    "Push to another feed, or begin this one anew with online-svm reset FEED --input"
)


@dataclass(frozen=True, slots=True)
class Position:
    """A point between two input entries."""

    cursor: bytes = b"0-0"  # ID of the last entry answered; b"0-0" at the start
    seq: int = 0  # entries answered, rejected ones included
    n: int = 0  # examples learned
    digest: Digest = bytes(32)  # 32 bytes; see `chain`


START = Position()


def parse_id(entry_id: bytes) -> tuple[int, int]:
    """Return the two numbers of an entry ID; they compare as IDs do.

    Examples
    --------
    >>> parse_id(b"5-9") < parse_id(b"5-10")
    True
    """
    time, _, count = entry_id.partition(b"-")
    return int(time), int(count)


def format_id(numbers: tuple[int, int]) -> bytes:
    """Return the entry ID with these two numbers."""
    return b"%d-%d" % numbers


def last_id_at(milliseconds: float) -> bytes:
    """Return the last ID that an entry of this millisecond can have."""
    return b"%d-%d" % (milliseconds, MAX_ID_PART)


def next_id(entry_id: bytes) -> bytes | None:
    """Return the ID right after another; None after the last ID of a stream.

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
    """Return the ID right before another, but never one below b"0-0".

    Examples
    --------
    >>> previous_id(b"5-10"), previous_id(b"6-0"), previous_id(b"0-1"), previous_id(b"0-0")
    (b'5-9', b'5-18446744073709551615', b'0-0', b'0-0')
    """
    time, count = parse_id(entry_id)
    if count > 0:
        return format_id((time, count - 1))
    return last_id_at(time - 1) if time > 0 else b"0-0"
