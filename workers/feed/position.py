"""The position of a feed: cursor, counters and digest; the order of entry IDs."""

from dataclasses import dataclass

from workers.feed.digest import Digest

_MOST = 2**64 - 1

LAST_ID = b"%d-%d" % (_MOST, _MOST)
"""The last ID that a stream can have. No entry can follow it, and Redis refuses ranges after it."""

END = (
    f"the stream has reached {LAST_ID.decode()}, the last ID that Redis has: no entry can follow. "
    "Push to another feed, or begin this one anew with online-svm reset FEED --input"
)


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
        32 bytes; see `workers.feed.digest`.
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
