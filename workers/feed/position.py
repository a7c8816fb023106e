"""The position of a feed: cursor, counters, and the chained digest of all answers."""

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

Digest = bytes

OUT = b"o"
MET = b"m"
ALARMS = b"a"

_MOST = 2**64 - 1

LAST_ID = b"%d-%d" % (_MOST, _MOST)
"""The last ID that a stream can have. No entry can follow it, and Redis refuses ranges after it."""

END = (
    f"the stream has reached {LAST_ID.decode()}, the last ID that Redis has: no entry can follow. "
    "Push to another feed, or begin this one anew with online-svm reset FEED --input"
)

_LINK = struct.Struct(">cQQI")


@dataclass(frozen=True, slots=True)
class Position:
    """A point between two input entries.

    Attributes
    ----------
    cursor : bytes
        ID of the last entry answered; b"0-0" at the start.
    seq : int
        Entries answered, rejected ones included.
    n : int
        Examples learned.
    digest : bytes
        32 bytes; see `chain`.
    """

    cursor: bytes = b"0-0"
    seq: int = 0
    n: int = 0
    digest: Digest = bytes(32)


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


def next_id(entry_id: bytes) -> bytes | None:
    """Return the ID right after another; None after the last ID of a stream.

    Examples
    --------
    >>> next_id(b"5-9"), next_id(b"5-18446744073709551615"), next_id(LAST_ID)
    (b'5-10', b'6-0', None)
    """
    time, count = parse_id(entry_id)
    if count < _MOST:
        return b"%d-%d" % (time, count + 1)
    return b"%d-0" % (time + 1) if time < _MOST else None


def previous_id(entry_id: bytes) -> bytes:
    """Return the ID right before another, b"0-0" before the first one that a stream can have.

    Examples
    --------
    >>> previous_id(b"5-10"), previous_id(b"6-0"), previous_id(b"0-1"), previous_id(b"0-0")
    (b'5-9', b'5-18446744073709551615', b'0-0', b'0-0')
    """
    time, count = parse_id(entry_id)
    if count > 0:
        return b"%d-%d" % (time, count - 1)
    return b"%d-%d" % (time - 1, _MOST) if time > 0 else b"0-0"


def chain(digest: Digest, links: Iterable[tuple[bytes, bytes, bytes]]) -> Digest:
    """Return the digest after more output entries.

    For each entry: d <- sha256(d, stream byte, 16-byte ID, 4-byte length, payload). The digest is
    32 bytes, so it can be stored after each commit; the state of a running hash could not.

    Parameters
    ----------
    digest : bytes
        Before these entries.
    links : iterable of (bytes, bytes, bytes)
        Stream (`OUT`, `MET` or `ALARMS`), entry ID, payload; in ID order, and at one ID in the
        order `out`, `met`, `alarms`.

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
