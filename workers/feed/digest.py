"""The chained digest of all answers, reports and alarms of a feed."""

import struct
from collections.abc import Iterable
from hashlib import sha256

Digest = bytes

OUT, MET, ALARMS = b"o", b"m", b"a"
"""The streams that are chained, in their order at one entry ID."""

_LINK = struct.Struct(">cQQI")


def chain(digest: Digest, links: Iterable[tuple[bytes, bytes, bytes]]) -> Digest:
    """Return the digest after more output entries.

    For each entry: d <- sha256(d, stream byte, 16-byte ID, 4-byte length, payload). The digest is
    32 bytes, so it can be stored after each commit; the state of a running hash could not.

    Parameters
    ----------
    digest : bytes
        Before these entries.
    links : iterable of (bytes, bytes, bytes)
        Stream (`OUT`, `MET` or `ALARMS`), entry ID, payload; in ID order, and at one ID in
        that order.

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
