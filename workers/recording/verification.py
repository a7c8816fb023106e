"""Verify a recording: answer its input again from its first snapshot, and compare every byte.

The answers before that are proved by the chain of digests, which the snapshot contains.
"""

from workers.admin.erased_streams import erased_of
from workers.admin.verify import Difference, Verification, verify
from workers.errors import SnapshotsLost
from workers.feed.position import Digest, Position, parse_id
from workers.reading.registry import feed_state
from workers.recording.reader import Recording, is_whole
from workers.session.replay import links


def verify_file(recording: Recording) -> Verification:
    """Recompute from the first snapshot, or from the start of the feed if all input is recorded.

    Raises SnapshotsLost if the recording has no snapshot from which it could be recomputed.
    """
    state = feed_state(recording)
    if state.snapshot is None and not is_whole(recording.facts()):
        raise SnapshotsLost(
            f"{recording.path}: has no snapshot yet, so it cannot be verified: back the feed "
            f"{recording.keys.feed!r} up once more, while a worker is at work"
        )
    found = verify(recording)
    _follow_chain(recording, found)
    return found


def _follow_chain(recording: Recording, found: Verification) -> None:
    """Check the digest of the answers before the start of the recomputation."""
    out, end = recording.keys.out, found.start
    begin = next(iter(recording.begun()), None)
    first = Position() if begin is None else begin
    streams = [
        recording.each(stream, first.cursor, end.cursor) for stream in recording.keys.outputs[:-1]
    ]
    begun = parse_id(first.cursor)
    erased = {
        at: entry
        for at, entry in erased_of(recording).entries.items()
        if begun < parse_id(at) <= parse_id(end.cursor)
    }
    digest, unproved = None if begin is None else begin.digest, 0

    def prove(at: bytes, committed: Digest | None) -> None:
        """Compare the digest so far with the one that was committed at an entry."""
        if digest is None or committed is None:
            found.unlinked += unproved
        elif digest != committed:
            found.note(Difference(out, at, committed.hex().encode(), digest.hex().encode()))

    stored = {at: entry.digest for at, entry in erased.items()}
    for link in links(digest or b"", streams, stored):
        if link.is_erased:
            prove(link.id, erased[link.id].before)
            unproved = 0
        elif link.is_answer:
            found.chained += 1
            unproved += 1
        digest = link.digest if link.is_erased or digest is not None else None
    prove(end.cursor, end.digest)
