"""Verify a feed from its start: answer the input of an archive again, and compare the answers.

The archive has the IDs of all entries, so the digest of the whole history can be compared with the
one in Redis, even if Redis has trimmed entries.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain

from workers.admin.erased_streams import erased_of
from workers.admin.erasure import learn_again
from workers.admin.verify import Comparison, Verification, feed_state
from workers.broker.store import Store
from workers.broker.streams import Entry
from workers.errors import BadConfiguration
from workers.feed.erased import Base, Erased
from workers.feed.position import Digest, parse_id, previous_id
from workers.feed.state import FeedState
from workers.offline.archive.reader import Archive
from workers.session.replay import Replay, links


def verify_archive(store: Store, archive: Archive) -> Verification:
    """Recompute a feed from the input in its archive and, after its end, in Redis.

    Answers, reports and alarms are compared with those in the archive and, after its end, in Redis.

    Raises BadConfiguration if the archive is of another feed, or does not begin with the first
    entry; StateLost if the state of the feed is damaged.
    """
    state, record = feed_state(store), erased_of(store)
    _check(store, state, archive, record)
    comparison = _ArchivedComparison(store, state, archive)
    pages = _joined(archive.inputs, store, store.keys.input, archive, state)
    for page in pages if record.base is None else comparison.around(record, record.base, pages):
        comparison.check(comparison.replay.answer(page))
    return comparison.result()


def _check(store: Store, state: FeedState, archive: Archive, record: Erased) -> None:
    feed = store.keys.feed
    identity = archive.identity
    if (identity.feed, identity.config_hash) != (feed, state.pinned.config_hash):
        raise BadConfiguration(
            f"{archive.directory}: is the archive of feed {identity.feed!r}, or of one that was "
            f"begun with another configuration: it says nothing of {feed!r}"
        )
    first = archive.first_answer()
    erased = {entry.seq for entry in record.entries.values()}
    is_whole = first is not None and first[1] is not None and erased.issuperset(range(first[1]))
    if first is None or not is_whole or archive.first("input") != first[0]:
        raise BadConfiguration(
            f"{archive.directory}: does not begin with the first entry of feed {feed!r}, so its "
            f"history cannot be answered again: online-svm verify {feed} checks what Redis keeps"
        )
    _check_erased(archive, record)


def _check_erased(archive: Archive, record: Erased) -> None:
    """Raise BadConfiguration if the archive has entries that were erased from the feed."""
    if not record.entries:
        return
    pages = archive.pages("answers", ())
    left = sum(at in record.entries for page in pages for at, _ in page)
    if left:
        raise BadConfiguration(
            f"{archive.directory}: has {left:,} answers that were erased from the feed: online-svm "
            f"erase {archive.identity.feed} --id ID --archive DIR erases them there too"
        )


class _ArchivedComparison(Comparison):
    """Compares with the entries in an archive and, after its end, in Redis."""

    def __init__(self, store: Store, state: FeedState, archive: Archive) -> None:
        super().__init__(store, state, Replay.of(store.keys.feed, state))
        self._state, self._archive = state, archive
        kinds = zip(store.keys.outputs, ("answers", "reports", "alarms"), strict=False)
        self._entries = {
            stream: _Queue(_joined(partial(archive.payloads, kind), store, stream, archive, state))
            for stream, kind in kinds
        }

    def around(
        self, record: Erased, base: Base, pages: Iterator[list[Entry]]
    ) -> Iterator[list[Entry]]:
        """Yield the entries to recompute: before the first erased one, and after the new learner.

        Between these, only the chain of answers is checked. After them the replay continues with
        the learner of the erasure, which is learned again from the input that it had.
        """
        first = min(record.entries, key=parse_id)
        left = deque[Entry]()
        for page in pages:
            before = [entry for entry in page if parse_id(entry[0]) < parse_id(first)]
            if before:
                yield before
            if len(before) < len(page):
                left.extend(page[len(before) :])
                break
        digest = self._follow(record, base)
        self.replay = self._learn_again(record, base)
        self.replay.position = replace(base.position, digest=digest)
        after = parse_id(base.position.cursor)
        for page in chain([list(left)], pages):
            rest = [entry for entry in page if parse_id(entry[0]) > after]
            if rest:
                yield rest

    def _follow(self, record: Erased, base: Base) -> Digest:
        """Follow the chain of answers to the new learner's position; return the digest there."""
        begin, upto = self.replay.position, base.position.cursor
        streams = [entries.take(upto) for entries in self._entries.values()]
        after = parse_id(begin.cursor)
        erased = {at: e.digest for at, e in record.entries.items() if after < parse_id(at)}
        digest: Digest | None = begin.digest
        for link in links(begin.digest, streams, erased):
            digest = link.digest
            if link.is_answer and not link.is_erased:
                self.found.chained += 1
                self.found.unlinked += digest is None
        return base.position.digest if digest is None else digest

    def _learn_again(self, record: Erased, base: Base) -> Replay:
        before, cursor = previous_id(base.first), base.position.cursor
        return learn_again(
            self._store.keys.feed,
            self._state,
            lambda: self._archive.inputs(before, cursor),
            record.between(base.first, cursor),
            base.position,
            base.first,
        )[1]

    def committed(self, stream: str, after: bytes, upto: bytes) -> Iterable[Entry]:  # noqa: ARG002
        """Return the next entries up to an ID: the calls are in order."""
        return self._entries[stream].take(upto)

    def is_trimmed(self, stream: str, entry_id: bytes) -> bool:  # noqa: ARG002
        """Return False: an archive keeps everything."""
        return False


class _Queue:
    """The entries of a stream, in order."""

    def __init__(self, pages: Iterator[list[Entry]]) -> None:
        self._pages, self._held = pages, deque[Entry]()

    def take(self, upto: bytes) -> Iterator[Entry]:
        """Yield the next entries up to an ID."""
        end = parse_id(upto)
        while True:
            if not self._held:
                self._held.extend(next(self._pages, ()))
            if not self._held or parse_id(self._held[0][0]) > end:
                return
            yield self._held.popleft()


def _joined(
    archived: Callable[[bytes, bytes], Iterator[list[Entry]]],
    store: Store,
    stream: str,
    archive: Archive,
    state: FeedState,
) -> Iterator[list[Entry]]:
    """Yield the archived pages of a stream, then those in Redis after the archive's end.

    Meanwhile the archive may grow, and Redis may trim what is archived. So a page of Redis is read
    first, and used only if nothing after its start is archived by then.
    """
    cursor, after = state.position.cursor, b"0-0"
    while after != cursor:
        page = next(store.pages(stream, after, cursor), None)
        end = min(archive.end, cursor, key=parse_id)
        if parse_id(end) > parse_id(after):
            yield from archived(after, end)
            after = end
        elif page is None:
            return
        else:
            yield page
            after = page[-1][0]
