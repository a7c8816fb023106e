"""Write the answers of a feed to an archive, and acknowledge them, so that Redis may trim them.

A batch of answers is written to disk together with its input, labels, reports and alarms, which are
committed with the answers. Then the consumer group of `out` moves behind the batch. After a kill
the archive resumes after the last answer on disk; Redis still has the later ones.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from workers.admin.erased_streams import erased_of
from workers.admin.verify import no_answers
from workers.broker import failpoints
from workers.broker.client import UnknownGroup
from workers.broker.store import Store
from workers.broker.streams import Entry
from workers.errors import BadConfiguration, InputLost
from workers.feed.position import parse_id, previous_id
from workers.feed.retention import DOWNSTREAM
from workers.log import Logger
from workers.offline.archive.layout import claim
from workers.offline.archive.parquet import HeldRows
from workers.offline.archive.reader import FeedWasReset, last_archived
from workers.offline.archive.rows import Gathered, Gatherer
from workers.offline.archive.writer import ArchiveWriter
from workers.stop import Stop

DEFAULT_SECONDS = 30.0  # longest time that rows wait in memory while a feed is followed
HELD_ROWS = 20_000  # answers in memory, about, from which they are written
HELD_BYTES = 1 << 23  # bytes of all rows, likewise
_POLL_SECONDS = 0.5  # time between two reads of a feed that has nothing new

log = Logger("online_svm.archive")


@dataclass(slots=True)
class Archived:
    """Counts of the rows that a run added."""

    answers: int = 0
    inputs: int = 0
    missing: int = 0  # answers whose input was no longer kept


class Archiver:
    """Archives a feed to its directory, which this process has locked; see `layout.locked`.

    `accept_gap` continues although answers or input were trimmed before they were archived. For
    `takes_group` see `Acknowledgement`. `was_archived` is the `seq` of the last answer on disk at
    the start; None without any.

    Raises BadConfiguration if the feed has no state, or is not the archived one.
    """

    def __init__(
        self,
        store: Store,
        directory: Path,
        group: str = DOWNSTREAM,
        accept_gap: bool = False,
        takes_group: bool = False,
    ) -> None:
        self._store, self._directory, self._group = store, directory, group
        self._accept_gap = accept_gap
        self.done = Archived()
        state = store.state()
        if state is None:
            raise no_answers(store.keys.feed)
        self.identity = claim(directory, store.keys.feed, state.pinned)
        self._gatherer = Gatherer(store, state)
        self._writer = ArchiveWriter(directory)
        self._seq = last_archived(store, state, directory)
        self._group_moves = Acknowledgement(store, group, self.identity.archive, takes_group)
        self.was_archived = self._seq
        self._begin()

    def run(self, stop: Stop, follow: bool = False, every: float = DEFAULT_SECONDS) -> None:
        """Archive the answers up to the present end, or with `follow` until a stop is requested.

        Raises BadConfiguration if the archive cannot be written, or another one has the consumer
        group; InputLost if answers or input were trimmed before they were archived.
        """
        self._acknowledge()  # first, because it raises if another archive has the group
        upto = b"+" if follow else self._store.newest_id(self._store.keys.out)
        since = time.monotonic()
        while not stop.requested:
            is_full = self._read(stop, upto)
            if is_full or (follow and self._is_due(since, every)):
                self._flush()
                since = time.monotonic()
            elif not follow:
                break
            else:
                if not self._held.count("answers"):
                    since = time.monotonic()
                stop.wait(_POLL_SECONDS)
        self._flush()

    def _begin(self) -> None:
        """Drop the held rows, and set the position after the last answer on disk."""
        self._after = self._writer.last["answers"]
        if self._seq is None:  # a new archive starts with the oldest kept answer
            first = self._store.first_entry(self._store.keys.out)
            self._after = b"0-0" if first is None else previous_id(first[0])
        self._held = HeldRows()

    def _read(self, stop: Stop, upto: bytes) -> bool:
        """Read the new answers up to an entry; return whether the held rows must be written."""
        if upto != b"+" and parse_id(upto) <= parse_id(self._after):
            return False
        for page in self._store.pages(self._store.keys.out, self._after, upto):
            if self._hold(page):
                return True
            if stop.requested:
                break
        return False

    def _hold(self, page: Sequence[Entry]) -> bool:
        """Hold the rows of a page of answers; return whether the held rows must be written.

        If their input is large, only the first answers of the page are held.
        """
        found = self._gatherer.gather(self._after, page)
        self._check_gap(found.messages)
        if self._gatherer.reads_input:
            self._check_input(found)
        self._held.add(found.rows)
        self._after = found.ids[-1]
        is_full = self._held.count("answers") >= HELD_ROWS or self._held.bytes >= HELD_BYTES
        return is_full or len(found.ids) < len(page)

    def _is_due(self, since: float, every: float) -> bool:
        """Return whether to write the held rows: they are old, or half of the stream `out`."""
        held = self._held.count("answers")
        if not held:
            return False
        is_half = 2 * held >= self._store.length(self._store.keys.out)
        return is_half or time.monotonic() - since >= every

    def _check_gap(self, messages: Sequence[dict[str, object]]) -> None:
        """Raise InputLost if a `seq` is missing before or between these answers.

        Raises FeedWasReset if a `seq` is lower than expected.
        """
        for message in messages:
            seq = message.get("seq")
            if not isinstance(seq, int):
                continue
            expected = seq if self._seq is None else self._seq + 1
            if seq < expected:
                raise FeedWasReset(self._store.keys.feed, self._directory)
            if seq != expected:
                erased = {entry.seq for entry in erased_of(self._store).entries.values()}
                if not erased.issuperset(range(expected, seq)):
                    self._lost(f"answers {expected:,} to {seq - 1:,}")
            self._seq = seq

    def _check_input(self, found: Gathered) -> None:
        """Count answers without input; raise InputLost if earlier input was archived."""
        kept = set(found.given)
        trimmed = [at for at in found.ids if at not in kept]
        if not trimmed:
            return
        has_input = self._held.count("input") or self._writer.last["input"] != b"0-0"
        if has_input or (found.given and parse_id(found.given[0]) < parse_id(trimmed[-1])):
            self._lost(f"the input of {len(trimmed):,} answers up to {trimmed[-1].decode()}")
        self.done.missing += len(trimmed)

    def _lost(self, lost: str) -> None:
        """Raise InputLost, or with `accept_gap` log a warning."""
        text = (
            f"feed {self._store.keys.feed!r} gave up {lost} before they were archived. A worker "
            f"with --downstream block waits for an archive of the group {DOWNSTREAM!r}"
        )
        if not self._accept_gap:
            raise InputLost(f"{text}; to go on without them: --accept-gap")
        log.warning(f"{text}; going on without them")

    def _flush(self) -> None:
        """Write the held rows, without entries that were erased since, and acknowledge them."""
        tables = self._held.tables(erased_of(self._store).entries)
        counts = {kind: table.num_rows for kind, table in tables.items()}
        answers = counts.get("answers", 0)
        if answers:
            self._writer.add(tables)
        self._begin()
        self._acknowledge()
        self.done.answers += answers
        self.done.inputs += counts.get("input", 0)

    def _acknowledge(self) -> None:
        self._group_moves.move(self._writer.last["answers"])


class Acknowledgement:
    """Moves a consumer group of the answers behind the last answer on disk.

    `archive` is the name of its only consumer. `takes_group` removes other consumers; without it
    they are an error.
    """

    def __init__(self, store: Store, group: str, archive: str, takes_group: bool = False) -> None:
        self._store, self._name, self._own = store, group, archive.encode()
        self._group = store.group(store.keys.out, group)
        self._takes_group, self._has_group = takes_group, False

    def move(self, last: bytes) -> None:
        """Move the group behind an answer; BadConfiguration: it has another consumer."""
        if not self._store.length(self._store.keys.out):
            return
        if not self._has_group:
            self._join(last)
        try:
            self._group.move(last)
        except UnknownGroup:  # the group was deleted meanwhile
            self._join(last)
        if failpoints.chosen is not None:
            failpoints.chosen.reach("archive-acknowledged")

    def _join(self, last: bytes) -> None:
        """Create the group unless it exists, with this archive as its only consumer."""
        self._group.create(last)
        for name in self._group.idle_ms():
            if name != self._own:
                self._remove(name)
        self._group.add_consumer(self._own)
        self._has_group = True

    def _remove(self, consumer: bytes) -> None:
        if not self._takes_group:
            raise BadConfiguration(
                f"the consumer group {self._name!r} of {self._store.keys.out} has another "
                "consumer: an archive needs one of its own, --group NAME, and --downstream block "
                f"waits for {DOWNSTREAM!r} alone. If that consumer was given up for good: "
                "--take-group"
            )
        self._group.remove_consumer(consumer)
