"""Verify a feed from its start: answer the input of an archive again, and compare the answers.

The archive has the IDs of all entries. So the digest of the whole history is compared with the one
in Redis, whatever Redis still keeps.
"""

from collections import deque
from collections.abc import Iterable, Iterator

from workers.admin.verify import Comparison, Verification, feed_state, fresh
from workers.broker.batch_size import Entry
from workers.broker.store import Store
from workers.errors import BadConfiguration
from workers.feed.position import START, parse_id
from workers.feed.state import FeedState
from workers.history.archive.reader import Archive


def verify_archive(store: Store, archive: Archive) -> Verification:
    """Recompute a whole feed from its archive, and what came after it from Redis.

    Answers, reports and alarms are compared with those of the archive, and after its end with those
    in Redis.

    Raises
    ------
    BadConfiguration
        If the archive is of another feed, or does not begin with the first entry.
    StateLost
        If the state of the feed is damaged.
    """
    state = feed_state(store)
    _check(store, state, archive)
    comparison = _ArchivedComparison(store, state, archive)
    for page in _joined(archive.inputs(), store, store.keys.input, archive, state):
        comparison.check(comparison.answer(page))
    return comparison.result()


def _check(store: Store, state: FeedState, archive: Archive) -> None:
    feed = store.keys.feed
    identity = archive.identity
    if (identity.feed, identity.config_hash) != (feed, state.agreement.config_hash):
        raise BadConfiguration(
            f"{archive.directory}: is the archive of feed {identity.feed!r}, or of one that was "
            f"begun with another configuration: it says nothing of {feed!r}"
        )
    first = archive.first_answer()
    if first is None or first[1] != 0 or archive.first("input") != first[0]:
        raise BadConfiguration(
            f"{archive.directory}: does not begin with the first entry of feed {feed!r}, so its "
            f"history cannot be answered again: online-svm verify {feed} checks what Redis keeps"
        )


class _ArchivedComparison(Comparison):
    """Compares with the entries of an archive, and beyond its end with those in Redis."""

    def __init__(self, store: Store, state: FeedState, archive: Archive) -> None:
        super().__init__(store, state, START, *fresh(store.keys.feed, state))
        kinds = zip(store.keys.outputs, ("answers", "reports", "alarms"), strict=False)
        self._entries = {
            stream: _Ahead(_joined(archive.payloads(kind), store, stream, archive, state))
            for stream, kind in kinds
        }

    def committed(self, stream: str, after: bytes, upto: bytes) -> Iterable[Entry]:  # noqa: ARG002
        """Return the next entries up to an ID: they are asked for in order."""
        return self._entries[stream].take(upto)

    def is_trimmed(self, stream: str, entry_id: bytes) -> bool:  # noqa: ARG002
        """Return False: an archive keeps everything."""
        return False


class _Ahead:
    """Entries of one stream, handed out in order."""

    def __init__(self, pages: Iterator[list[Entry]]) -> None:
        self._pages, self._held = pages, deque[Entry]()

    def take(self, upto: bytes) -> Iterator[Entry]:
        """Yield the entries up to an ID that were not yielded before."""
        end = parse_id(upto)
        while self._fill() and parse_id(self._held[0][0]) <= end:
            yield self._held.popleft()

    def _fill(self) -> bool:
        if not self._held:
            self._held.extend(next(self._pages, ()))
        return bool(self._held)


def _joined(
    archived: Iterator[list[Entry]], store: Store, stream: str, archive: Archive, state: FeedState
) -> Iterator[list[Entry]]:
    """Yield the archived pages of a stream, then what Redis has of it after the archive's end."""
    yield from archived
    end, cursor = archive.end, state.position.cursor
    if parse_id(end) < parse_id(cursor):
        yield from store.pages(stream, end, cursor)
