"""Write what a feed answers to an archive, and let Redis trim it only then.

Answers are the cursor. A batch of them goes to disk together with its input, labels, reports and
alarms, which one commit made visible with it; then the consumer group of `out` moves behind it.
After a kill the disk says where to go on, not Redis: what was written is left out, and what was not
is still there.
"""

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import structlog

from workers import failpoints
from workers.admin.answers import answer, payload
from workers.admin.erase.record import erased_of
from workers.broker.batch_size import Entry
from workers.broker.redis_errors import UnknownGroup
from workers.broker.store import Store
from workers.errors import BadConfiguration, InputLost, WorkerError
from workers.feed.position import parse_id, previous_id
from workers.history.archive import rows
from workers.history.archive.continuity import BegunAnew, last_archived
from workers.history.archive.identity import claim
from workers.history.archive.layout import KINDS, OF_ENTRIES
from workers.history.archive.rows import Row
from workers.history.archive.writer import ArchiveWriter
from workers.history.true_labels import TrueLabels
from workers.stop import Stop

GROUP = "archive"
"""Consumer group of `out` where none is named: the `downstream_group` of the worker."""

EVERY = 30.0
"""Seconds that rows of a feed that is followed wait for more, at most."""

HELD_ROWS = 20_000
"""Answers that are held in memory, about, before they are written."""

HELD_BYTES = 1 << 24
"""Bytes of all rows, likewise; as objects they take several times as much."""

_IDLE = 0.5  # seconds between two looks at a feed that has nothing new

log = structlog.get_logger("online_svm.archive")


@dataclass(slots=True)
class Archived:
    """What one run added.

    Attributes
    ----------
    answers, inputs : int
    missing : int
        Answers among them whose input was no longer kept.
    """

    answers: int = 0
    inputs: int = 0
    missing: int = 0


class Archiver:
    """Archives one feed.

    Parameters
    ----------
    store : Store
    directory : Path
        Of the feed's archive; held by this process, see `identity.locked`.
    group : str
    accept_gap : bool
        Go on where answers or input were trimmed before they were archived.

    Raises
    ------
    BadConfiguration
        If the feed has no state, or is not the one that was archived so far.
    """

    def __init__(
        self, store: Store, directory: Path, group: str = GROUP, accept_gap: bool = False
    ) -> None:
        self._store, self._directory, self._group = store, directory, group
        self._accept_gap = accept_gap
        self.done = Archived()
        state = store.state()
        if state is None:
            feed = store.keys.feed
            raise BadConfiguration(f"feed {feed!r} has no answers yet: online-svm worker {feed}")
        self.identity = claim(directory, store.keys.feed, state.agreement)
        self._reads_input = "join" not in json.loads(state.agreement.config)
        self._writer = ArchiveWriter(directory)
        self._truths = TrueLabels(store)
        self._seq = last_archived(store, state, directory)
        self._has_group = False
        self._begin()

    def run(self, stop: Stop, follow: bool = False, every: float = EVERY) -> None:
        """Archive what is answered: to the present end, or until a stop is requested.

        Raises
        ------
        BadConfiguration
            If the archive cannot be written, or another one has the consumer group.
        InputLost
            If answers or input are gone that were not archived.
        """
        self._acknowledge()  # first: the group may be another archive's
        upto = b"+" if follow else self._end("XREVRANGE", "+", "-")
        since = time.monotonic()
        while not stop.requested:
            is_full = self._read(stop, upto)
            if is_full or (follow and self._is_due(since, every)):
                self._flush()
                since = time.monotonic()
            elif not follow:
                break
            else:
                if not self._held["answers"]:
                    since = time.monotonic()
                stop.wait(_IDLE)
        self._flush()

    def _begin(self) -> None:
        """Hold no rows, and stand behind the last answer that is on disk."""
        self._after = self._writer.last["answers"]
        if self._seq is None:  # what is older than all kept answers is no part of the archive
            self._after = previous_id(self._end("XRANGE", "-", "+"))
        self._held: dict[str, list[Row]] = {kind: [] for kind in KINDS}
        self._bytes = 0

    def _end(self, command: str, begin: str, end: str) -> bytes:
        """Return the first entry of `out` in an order; b"0-0" without any."""
        found = self._store.call(command, self._store.keys.out, begin, end, "COUNT", 1)
        return bytes(found[0][0]) if found else b"0-0"

    def _read(self, stop: Stop, upto: bytes) -> bool:
        """Read what is new up to an entry; return whether as much is held as may be."""
        if upto != b"+" and parse_id(upto) <= parse_id(self._after):
            return False
        for page in self._store.pages(self._store.keys.out, self._after, upto):
            self._take(page)
            if len(self._held["answers"]) >= HELD_ROWS or self._bytes >= HELD_BYTES:
                return True
            if stop.requested:
                break
        return False

    def _is_due(self, since: float, every: float) -> bool:
        """Return whether to write what is held: it is old, or Redis may soon have no room."""
        held = len(self._held["answers"])
        if not held:
            return False
        is_much = 2 * held >= self._store.length(self._store.keys.out)
        return is_much or time.monotonic() - since >= every

    def _take(self, page: Sequence[Entry]) -> None:
        """Hold the rows of a page of answers, with all that belongs to them."""
        keys, upto = self._store.keys, page[-1][0]
        messages = [answer(entry) for entry in page]
        self._check_gap(messages)
        given = self._between(keys.input, page) if self._reads_input else []
        if self._reads_input:
            self._check_input(page, given)
        truths = self._truths.of(page, messages)
        found: dict[str, list[Row | None]] = {
            "input": [rows.of_input(entry) for entry in given],
            "labels": [
                rows.of_label(entry[0], message, truth)
                for entry, message, truth in zip(page, messages, truths, strict=True)
            ],
            "reports": [
                rows.of_report(entry[0], payload(entry), answer(entry))
                for entry in self._between(keys.met, page)
            ],
            "alarms": [
                rows.of_alarm(entry[0], payload(entry))
                for entry in self._between(keys.alarms, page)
            ],
            "answers": [
                rows.of_answer(entry[0], payload(entry), message)
                for entry, message in zip(page, messages, strict=True)
            ],
        }
        for kind, of_kind in found.items():
            known = [row for row in of_kind if row is not None]
            self._held[kind] += known
            self._bytes += sum(map(rows.size_of, known))
        self._after = upto

    def _between(self, stream: str, page: Sequence[Entry]) -> list[Entry]:
        """Return the entries of a stream after the last page and up to the end of this one."""
        pages: Iterator[list[Entry]] = self._store.pages(stream, self._after, page[-1][0])
        return [entry for each in pages for entry in each]

    def _check_gap(self, messages: Sequence[dict[str, object]]) -> None:
        """Raise InputLost if answers are missing before or between these, and BegunAnew if fewer.

        An answer counts the entries before it, from 0.
        """
        for message in messages:
            seq = message.get("seq")
            if not isinstance(seq, int):
                continue
            expected = seq if self._seq is None else self._seq + 1
            if seq < expected:
                raise BegunAnew(self._store.keys.feed, self._directory)
            if seq != expected and not self._were_erased(range(expected, seq)):
                self._lost(f"answers {expected:,} to {seq - 1:,}")
            self._seq = seq

    def _were_erased(self, seqs: range) -> bool:
        """Return whether answers are missing because they were erased; see `admin.erase`."""
        erased = {entry.seq for entry in erased_of(self._store).entries.values()}
        return erased.issuperset(seqs)

    def _check_input(self, page: Sequence[Entry], given: Sequence[Entry]) -> None:
        """Count the answers whose input is gone. Only before all archived input may any be.

        Raises
        ------
        InputLost
            If it was archived up to some entry, and is gone after that.
        """
        held = {entry[0] for entry in given}
        gone = [entry[0] for entry in page if entry[0] not in held]
        if not gone:
            return
        has_begun = self._held["input"] or self._writer.last["input"] != b"0-0"
        if has_begun or (given and parse_id(given[0][0]) < parse_id(gone[-1])):
            self._lost(f"the input of {len(gone):,} answers up to {gone[-1].decode()}")
        self.done.missing += len(gone)

    def _lost(self, what: str) -> None:
        text = (
            f"feed {self._store.keys.feed!r} gave up {what} before they were archived. A worker "
            f"with --downstream block --downstream-group {self._group} waits for the archive"
        )
        if not self._accept_gap:
            raise InputLost(f"{text}; to go on without them: --accept-gap")
        log.warning(f"{text}; going on without them")

    def _flush(self) -> None:
        """Write what is held, then acknowledge it; what was erased meanwhile is not written."""
        erased = {at.decode() for at in erased_of(self._store).entries}
        held = dict(self._held)
        for kind in OF_ENTRIES:
            held[kind] = [row for row in held[kind] if row["entry"] not in erased]
        answers, inputs = len(held["answers"]), len(held["input"])
        if answers:
            self._writer.add(held)
        self._begin()
        self._acknowledge()
        self.done.answers += answers
        self.done.inputs += inputs

    def _acknowledge(self) -> None:
        """Move the consumer group behind the last answer that is on disk."""
        out = self._store.keys.out
        if not self._store.length(out):
            return
        last = self._writer.last["answers"]
        if not self._has_group:
            self._join_group(last)
        try:
            self._store.call("XGROUP", "SETID", out, self._group, last)
        except UnknownGroup:  # it was dropped meanwhile
            self._join_group(last)
        if failpoints.chosen is not None:
            failpoints.chosen.reach("archive-acknowledged")

    def _join_group(self, last: bytes) -> None:
        """Make the group, and this archive its only consumer.

        Raises
        ------
        BadConfiguration
            If it is another's.
        """
        out, own = self._store.keys.out, self.identity.archive.encode()
        try:
            self._store.call("XGROUP", "CREATE", out, self._group, last)
        except WorkerError as error:
            if "BUSYGROUP" not in str(error):
                raise
        consumers = self._store.call("XINFO", "CONSUMERS", out, self._group)
        names = [dict(zip(flat[::2], flat[1::2], strict=True))[b"name"] for flat in consumers]
        if any(name != own for name in names):
            raise BadConfiguration(
                f"the consumer group {self._group!r} of {out} has another consumer: an archive "
                "needs one of its own, --group NAME (and the worker --downstream-group NAME)"
            )
        self._store.call("XGROUP", "CREATECONSUMER", out, self._group, own)
        self._has_group = True
