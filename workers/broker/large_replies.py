"""Replies that Redis does not give, because they exceed its `client-output-buffer-limit`.

Redis then closes the connection before the reply is complete. A read of several entries is repeated
with fewer, and a string is read in pieces. A single entry cannot be read in pieces. So the reader
stops where Redis never gives it, with an error that names the entry.

Nothing here writes, so its scripts have no failpoints.
"""

from math import inf

from workers.broker.connection import Connection
from workers.broker.script import Script
from workers.errors import ReadCut, ReplyNotGiven, Stopped, Unavailable, WorkerError
from workers.log import Logger

_ENTRY_SIZE = Script.load("entry_size")
_PIECE = Script.load("piece")

_CUTS_OF_ONE = 5
"""Cut replies to a read of one entry, before it is asked why. Some may be restarts of Redis; the
pauses between them grow, so that they take about a second."""

_CUTS_OF_PIECE = 2  # one may be a restart of Redis

_LARGE = 1 << 20
"""Bytes from which an entry is the likely reason where the limit cannot be looked up."""

_OVERHEAD = 1 << 15
"""Bytes that Redis may count in addition to a quarter more than the entry has (its allocator)."""

_FIRST_PIECE, _LEAST_PIECE = 1 << 20, 1 << 10

log = Logger("online_svm.redis")


def most_cuts(count: int) -> int:
    """Return how many cut replies end a read of `count` entries.

    A read of several entries is repeated with fewer at once.

    Examples
    --------
    >>> most_cuts(256), most_cuts(1)
    (1, 5)
    """
    return _CUTS_OF_ONE if count == 1 else 1


def check_entry_is_given(connection: Connection, stream: str, after: bytes) -> None:
    """Raise if the first entry after an ID, whose reply was cut, is larger than Redis gives.

    If the entry is smaller than the limit, the network broke the connection and the read is worth
    another attempt. If the limit cannot be looked up, an entry of 1 MiB counts as too large.

    Raises
    ------
    ReplyNotGiven
    """
    found = connection.evaluate(_ENTRY_SIZE, [stream], [after])
    if not found:
        return
    entry, size = found[0].decode(), int(found[1])
    limit = _output_limit(connection, stream)
    is_given = size < _LARGE if limit is None else size + size // 4 + _OVERHEAD < limit
    if is_given:
        return
    named = "may be too small" if limit is None else f"is {limit:.0f} bytes for normal clients"
    raise ReplyNotGiven(
        f"{stream}: Redis closes the connection whenever it is asked for entry {entry} of {size} "
        f"bytes; its client-output-buffer-limit {named}. Raise it (CONFIG SET "
        f'client-output-buffer-limit "normal 0 0 0"), or delete the entry: XDEL {stream} {entry}'
    )


def value_of(connection: Connection, key: str) -> bytes | None:
    """Return a string, in pieces if Redis does not give it whole; None if there is no such key.

    Raises
    ------
    ReplyNotGiven
        If it does not give small pieces either.
    """
    try:
        whole: bytes | None = connection.call("GET", key, most_cuts=_CUTS_OF_PIECE)
    except ReadCut as error:
        log.warning("a read failed; reading the value in pieces", key=key, reason=str(error))
    else:
        return whole
    return _in_pieces(connection, key)


def _in_pieces(connection: Connection, key: str) -> bytes | None:
    held, size, whole = bytearray(), _FIRST_PIECE, 1
    while len(held) < whole:
        first = len(held) + 1
        try:
            reply = connection.call(
                "EVAL", _PIECE.text, 1, key, first, len(held) + size, most_cuts=_CUTS_OF_PIECE
            )
        except ReadCut as error:
            if size <= _LEAST_PIECE:
                raise _no_piece(key, size) from None
            size //= 2
            log.warning("a read failed; reading smaller pieces", bytes=size, reason=str(error))
            continue
        if not reply:
            return None
        whole, piece = reply
        held += piece
    return bytes(held)


def _no_piece(key: str, size: int) -> ReplyNotGiven:
    return ReplyNotGiven(
        f"{key}: Redis closes the connection even when it is asked for {size} bytes of it: raise "
        'its limit (CONFIG SET client-output-buffer-limit "normal 0 0 0")'
    )


def _output_limit(connection: Connection, stream: str) -> float | None:
    """Return the bytes that Redis buffers for a normal client, at most: infinity without a limit.

    None if it cannot be looked up, as in the role of a worker.
    """
    try:
        _, text = connection.call("CONFIG", "GET", "client-output-buffer-limit", key=stream)
    except (Stopped, Unavailable):
        raise
    except WorkerError:
        return None
    hard, soft = text.decode().partition("normal")[2].split()[:2]
    return min((int(limit) for limit in (hard, soft) if int(limit) > 0), default=inf)
