"""Erase entries from an archive: its parts are rewritten without their rows."""

from collections.abc import Iterable, Sequence
from itertools import chain

from typing_extensions import override

from workers.admin.erased_streams import ChainSource, answers_person, has_person
from workers.admin.erasure import Copies
from workers.broker.store import Store
from workers.broker.streams import Entry
from workers.feed.position import START, parse_id
from workers.feed.state import FeedState
from workers.offline.archive import layout
from workers.offline.archive.parquet import without
from workers.offline.archive.reader import Archive, FeedWasReset, last_archived
from workers.offline.archive.writer import ArchiveWriter


class ErasableArchive(Copies):
    """An archive that this process has locked; see `layout.locked` and `admin.erasure.Copies`."""

    def __init__(self, archive: Archive) -> None:
        self._archive, self._writer = archive, ArchiveWriter(archive.directory)

    @override
    def are_of(self, store: Store) -> bool:
        state, identity = store.state(), self._archive.identity
        if state is None or identity.config_hash != state.pinned.config_hash:
            return False
        try:
            last_archived(store, state, self._archive.directory)
        except FeedWasReset:
            return False
        return True

    @override
    def ids_of_person(self, sent: bytes) -> dict[bytes, int | None]:
        found: dict[bytes, int | None] = {
            at: None
            for page in self._archive.inputs()
            for at, fields in page
            if has_person(fields, sent)
        }
        answers = self._archive.payloads("answers")
        found |= dict.fromkeys(e[0] for page in answers for e in page if answers_person(e, sent))
        for page in self._archive.pages("answers", ("seq",)) if found else ():
            found |= {at: seq for at, (seq,) in page if at in found}
        return found

    @override
    def chain_from(self, store: Store, state: FeedState) -> ChainSource:
        return ChainSource(START.digest, START.cursor, lambda _: self._all(store, state))

    @override
    def erase(self, ids: frozenset[bytes]) -> int:
        removed = 0
        for kind in layout.ENTRY_KINDS:
            for part in layout.parts(self._archive.directory, kind):
                table = self._writer.read(part)
                left = without(table, ids)
                if left.num_rows < table.num_rows:
                    removed += table.num_rows - left.num_rows
                    self._writer.replace(part, left)
        return removed

    def _all(self, store: Store, state: FeedState) -> Sequence[Iterable[Entry]]:
        """Return answers, reports and alarms: those in the archive, then later ones in Redis."""
        end, cursor = self._archive.end, state.position.cursor
        kinds = zip(store.keys.outputs, ("answers", "reports", "alarms"), strict=False)
        is_behind = parse_id(end) < parse_id(cursor)
        return [
            chain(
                chain.from_iterable(self._archive.payloads(kind)),
                store.each(stream, end, cursor) if is_behind else (),
            )
            for stream, kind in kinds
        ]
