"""Record a feed: add what is new to its file, in one transaction, and acknowledge it.

A round copies everything up to the committed position: answers with their input, reports and
alarms. It is on disk before the consumer group of `out` moves behind it. After a kill the file has
the last round whole; Redis still has what came after it.
"""

import secrets
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from online_svm.storage.recording import put_snapshot, transaction
from workers.admin.erased_streams import Erased, erased_of
from workers.broker import failpoints
from workers.broker.client import UnknownGroup
from workers.broker.store import Store
from workers.broker.streams import Entry, payload
from workers.errors import BadConfiguration, InputLost, InvalidStoredSnapshot, ReplayMismatch
from workers.feed.position import START, Digest, Position, last_id_at, parse_id, previous_id
from workers.feed.recent_ids import RecentIds
from workers.feed.retention import DOWNSTREAM
from workers.feed.state import FORMAT, FeedState
from workers.feed.stored_settings import stored_settings
from workers.log import Logger
from workers.push.convention import readable_convention
from workers.reading.answers import answer
from workers.recording.answers import (
    INSERT_ANSWER,
    INSERT_INPUT,
    SELECT_ANSWER,
    Forms,
    framed,
    id_columns,
    input_row,
    text,
)
from workers.recording.reader import is_whole, pinned_of
from workers.session import snapshots
from workers.session.replay import links
from workers.session.snapshots import LoadedSnapshot

_ATTEMPTS = 5  # reads of a snapshot, which a worker may replace meanwhile
_SNAPSHOTS_PER_SPAN = 8  # snapshots in the time that --keep names

log = Logger("online_svm.recording")


class FeedWasReset(BadConfiguration):
    """The feed is not the recorded one: it was reset, or restored to an earlier position."""

    def __init__(self, feed: str, path: Path) -> None:
        super().__init__(
            f"feed {feed!r} was begun anew after {path} was written, or is behind it: back it up "
            "to another file"
        )


@dataclass(frozen=True, slots=True)
class BackupOptions:
    """How a feed is recorded."""

    # Consumer group of the answers that is moved behind what is on disk; None moves the group
    # `downstream` if it exists and has no other consumer.
    group: str | None = None
    takes_group: bool = False  # remove its other consumers, which are an error otherwise
    accept_gap: bool = False  # go on although answers or input were trimmed before they came here
    keep_ms: int | None = None  # drop what is so much older than the last answer
    by_month: bool = False  # a file for each month of UTC, by the times in the entry IDs


@dataclass(slots=True)
class Recorded:
    """Counts of the rows that were added."""

    answers: int = 0
    inputs: int = 0
    missing: int = 0  # answers whose input was no longer kept

    def add(self, more: "Recorded") -> None:
        """Add the counts of another file or round."""
        self.answers += more.answers
        self.inputs += more.inputs
        self.missing += more.missing


class _ErasedMeanwhile(Exception):
    pass


@dataclass(slots=True)
class _Round:
    """The end of the file within a round."""

    after: bytes  # ID of the last recorded answer
    seq: int | None  # `seq` that the next answer must have; None in a new file
    digest: Digest | None  # after that answer; None if unknown
    facts: dict[str, str]


class Recorder:
    """Adds a feed to its file, which `online_svm.storage.recording.opened` has opened for writing.

    `until_ms` is the time from which answers go to the next file, and `before` are the facts of the
    file before this one. `is_full` says after a round that there are such answers.
    """

    def __init__(
        self,
        store: Store,
        path: Path,
        file: sqlite3.Connection,
        options: BackupOptions,
        until_ms: int | None = None,
        before: dict[str, str] | None = None,
    ) -> None:
        self._store, self._path, self._file, self._options = store, path, file, options
        self._until_ms, self._before = until_ms, before or {}
        self.done, self.is_full, self._forms = Recorded(), False, Forms(file)
        facts = self.facts()
        of_feed = facts or self._before
        self._consumer = of_feed.get("consumer") or secrets.token_hex(8)
        self._cursor = facts.get("cursor")  # of the last round; another writer would move it
        self._group_moves = self._acknowledgement()

    @property
    def file(self) -> sqlite3.Connection:
        """The open file."""
        return self._file

    def _acknowledgement(self) -> "Acknowledgement | None":
        name, out = self._options.group, self._store.keys.out
        if name is None:
            has_group = self._store.has_stream(out) and any(
                group.name == DOWNSTREAM.encode() for group in self._store.groups(out)
            )
            if not has_group:
                return None
        takes = self._options.takes_group
        moves = Acknowledgement(self._store, name or DOWNSTREAM, self._consumer, takes)
        # A group that was not named stays with its consumer: a file that follows, or a program.
        return None if name is None and not takes and moves.has_others() else moves

    def acknowledge(self) -> None:
        """Move the consumer group behind the last recorded answer.

        Raises BadConfiguration if another file has the group.
        """
        if self._group_moves is None:
            return
        if self._cursor is None:  # nothing is recorded: the file does not say its consumer yet
            self._group_moves.check()
        else:
            self._group_moves.move(self._cursor.encode())

    def is_due(self, age: float, every: float) -> bool:
        """Return whether to record, `age` seconds after the last round.

        At the latest when half of the answers that Redis keeps are not recorded yet.
        """
        if age >= every:
            return self._store.newest_id(self._store.keys.out) != (self._cursor or "").encode()
        state = self._store.state_fields("seq")
        waiting = int(state[0] or 0) - int(self.facts().get("seq", 0))
        return 2 * waiting >= self._store.length(self._store.keys.out) > 0

    def record(self) -> Position:
        """Add all answers so far; return the position of the file.

        Raises InputLost if answers or input were trimmed before they were recorded; FeedWasReset;
        BadConfiguration if the file is of another feed, has erased entries, or has another writer.
        """
        while True:
            state, record = self._store.state(), erased_of(self._store)
            if state is None:
                raise FeedWasReset(self._store.keys.feed, self._path)
            self._forms.forget()
            try:
                with transaction(self._file):
                    target, added = self._add(state, record)
                    if erased_of(self._store).entries.keys() != record.entries.keys():
                        raise _ErasedMeanwhile
                    failpoints.reach("recording-written")
            except _ErasedMeanwhile:
                continue
            failpoints.reach("recording-committed")
            self._cursor = target.cursor.decode()
            self.is_full = target.cursor != state.position.cursor
            self.done.add(added)
            return target

    def _target(self, state: FeedState, end: _Round) -> Position:
        """Return the committed position, or the last one before the next file.

        The digest of that one is known only if the digest at the end of the file is.
        """
        at, out = state.position, self._store.keys.out
        if self._until_ms is None or _ms(at.cursor) < self._until_ms or end.digest is None:
            return at
        bound = last_id_at(self._until_ms - 1)
        last, following = self._store.last_entry(out, bound), self._store.first_entry(out, bound)
        if following is None:
            return at
        message = answer(following)
        cursor = end.after if last is None else max(last[0], end.after, key=parse_id)
        return Position(cursor, self._seq(following, message), int(message["n"]), b"")

    def _add(self, state: FeedState, record: Erased) -> tuple[Position, Recorded]:
        end, added = self._begin(state, record), Recorded()
        target = self._target(state, end)
        for page in self._store.pages(self._store.keys.out, end.after, target.cursor):
            self._add_page(page, end, record, added)
        self._check_gap([target.seq], end, record)  # the last answers may be gone
        erased = _after(record, end.after, target.cursor)
        if erased and end.digest is not None:
            end.digest = record.entries[erased[-1]].digest
        if target.digest == b"":
            target = replace(target, digest=end.digest or bytes(32))
        elif end.digest is not None and end.digest != target.digest:
            raise ReplayMismatch(
                f"feed {self._store.keys.feed!r}: the digest of its answers is not the committed "
                f"one: online-svm verify {self._store.keys.feed} shows what differs"
            )
        self._add_events()
        self._write_facts(state, target, record, end.facts)
        return target, added

    def _begin(self, state: FeedState, record: Erased) -> _Round:
        """Return the end of the file; check that it is of this feed, and of no other writer."""
        facts = self.facts()
        if facts.get("cursor") != self._cursor:
            raise BadConfiguration(
                f"{self._path}: another process writes this file; one at a time does"
            )
        if not facts:
            return self._begin_file(state, record)
        feed = self._store.keys.feed
        if (facts.get("kind"), facts.get("feed")) != ("feed", feed):
            raise BadConfiguration(f"{self._path}: is not of feed {feed!r}: choose another file")
        if pinned_of(facts) != state.pinned:
            raise BadConfiguration(
                f"{self._path}: is of a feed {feed!r} that was begun with another configuration: "
                "back up to another file"
            )
        self._check_same_feed(state, facts)
        self._check_erased(record)
        seq, digest = int(facts["seq"]), bytes.fromhex(facts["digest"])
        return _Round(facts["cursor"].encode(), seq, digest, facts)

    def _begin_file(self, state: FeedState, record: Erased) -> _Round:
        """Begin with the oldest kept answer; add the input that is kept of earlier ones."""
        facts = {"kind": "feed", "feed": self._store.keys.feed, "consumer": self._consumer}
        if self._before:
            cursor, begin, digest = (self._before[name] for name in ("cursor", "seq", "digest"))
            facts |= {"input_from": begin, "answers_from": begin}
            facts["begun"] = _begun(cursor, digest)
            return _Round(cursor.encode(), int(begin), bytes.fromhex(digest), facts)
        first = self._store.first_entry(self._store.keys.out)
        if first is None:
            at = state.position
            facts |= {"input_from": str(at.seq), "answers_from": str(at.seq)}
            facts["begun"] = _begun(at.cursor.decode(), at.digest.hex())
            return _Round(at.cursor, at.seq, at.digest, facts)
        seq = self._seq(first, answer(first))
        after = previous_id(first[0])
        earlier = record.between(b"0-0", after)
        if seq == len(earlier):
            facts |= {
                "input_from": "0",
                "answers_from": "0",
                "begun": _begun("0-0", START.digest.hex()),
            }
            return _Round(b"0-0", 0, START.digest, facts)
        facts |= {"answers_from": str(seq), "begun": ""}
        facts["input_from"] = str(self._add_earlier(after, seq, earlier))
        return _Round(after, seq, None, facts)

    def _add_earlier(self, upto: bytes, seq: int, erased: Sequence[bytes]) -> int:
        """Add kept input of answers that are gone; return the `seq` of the first entry."""
        key = self._store.keys.input
        oldest = self._store.first_entry(key)
        if oldest is None or parse_id(oldest[0]) > parse_id(upto):
            return seq
        holes = [at for at in erased if parse_id(at) > parse_id(oldest[0])]
        first = seq - len(holes) - sum(map(len, self._store.pages(key, b"0-0", upto)))
        at = first
        for entry in self._store.each(key, b"0-0", upto):
            while holes and parse_id(holes[0]) < parse_id(entry[0]):
                del holes[0]
                at += 1
            self._file.execute(INSERT_INPUT, input_row(at, entry))
            at += 1
        return first

    def _add_page(
        self, page: Sequence[Entry], end: _Round, record: Erased, added: Recorded
    ) -> None:
        keys, last = self._store.keys, page[-1][0]
        seqs = {entry[0]: self._seq(entry, answer(entry)) for entry in page}
        self._check_gap(list(seqs.values()), end, record)
        rows = [self._forms.row(seqs[entry[0]], entry) for entry in page]
        self._file.executemany(INSERT_ANSWER, rows)
        found = 0
        for entries in self._store.pages(keys.input, end.after, last):
            rows = [input_row(seqs[entry[0]], entry) for entry in entries if entry[0] in seqs]
            self._file.executemany(INSERT_INPUT, rows)
            found += len(rows)
        self._check_input(seqs, found, end, added)
        others = [list(self._store.each(stream, end.after, last)) for stream in keys.outputs[1:3]]
        for table, entries in zip(("reports", "alarms"), others, strict=True):
            self._insert(table, [_of_payload(self._seq(e, answer(e)), e) for e in entries])
        if end.digest is not None:
            gaps = {at: record.entries[at].digest for at in _after(record, end.after, last)}
            for link in links(end.digest, [page, *others], gaps):
                end.digest = link.digest
        end.after, end.seq = last, seqs[last] + 1
        added.answers += len(page)
        added.inputs += found

    def _check_gap(self, seqs: Sequence[int], end: _Round, record: Erased) -> None:
        """Raise InputLost if a `seq` is missing, FeedWasReset if one is lower than expected."""
        erased = {entry.seq for entry in record.entries.values()}
        expected = end.seq
        for seq in seqs:
            if expected is not None and seq < expected:
                raise FeedWasReset(self._store.keys.feed, self._path)
            if expected is not None and not erased.issuperset(range(expected, seq)):
                self._lost(f"answers {expected:,} to {seq - 1:,}")
                self._begin_at(seq, end)
            expected = seq + 1

    def _begin_at(self, seq: int, end: _Round) -> None:
        """Let the file be complete from an answer on only: verification cannot cross a gap."""
        end.facts |= {"input_from": str(seq), "answers_from": str(seq), "begun": ""}
        end.digest = None
        delete_snapshots(self._file)

    def _check_input(
        self, seqs: dict[bytes, int], found: int, end: _Round, added: Recorded
    ) -> None:
        """Count answers without input; raise InputLost if earlier input was recorded."""
        missing = len(seqs) - found
        if not missing:
            return
        last = max(
            seq for seq in seqs.values()
            if not self._file.execute("SELECT 1 FROM input WHERE seq = ?", (seq,)).fetchone()
        )  # fmt: skip
        has_earlier = self._file.execute("SELECT 1 FROM input WHERE seq < ?", (last,)).fetchone()
        if has_earlier:
            self._lost(f"the input of {missing:,} answers up to number {last:,}")
            delete_snapshots(self._file)
        end.facts["input_from"] = str(last + 1)
        added.missing += missing

    def _lost(self, lost: str) -> None:
        """Raise InputLost, or with `accept_gap` log a warning."""
        text = (
            f"feed {self._store.keys.feed!r} gave up {lost} before they were recorded. A worker "
            f"with --downstream block waits for a backup that moves the group {DOWNSTREAM!r}"
        )
        if not self._options.accept_gap:
            raise InputLost(f"{text}; to go on without them: --accept-gap")
        log.warning(f"{text}; going on without them")

    def _check_same_feed(self, state: FeedState, facts: dict[str, str]) -> None:
        """Raise FeedWasReset unless the feed continues the file.

        A feed that was reset and has answered the same input again has the same answers, so its
        file can be continued.
        """
        at, out = facts["cursor"].encode(), self._store.keys.out
        row = self._file.execute(
            f"{SELECT_ANSWER} WHERE seq = ?", (int(facts["seq"]) - 1,)
        ).fetchone()
        stored = self._store.entry(out, at)
        is_other = (
            row is not None
            and stored is not None
            and (self._forms.entry(row)[1] != list(stored[1]))
        )
        is_behind = parse_id(state.position.cursor) < parse_id(at)
        if is_other or is_behind or state.position.seq < int(facts["seq"]):
            raise FeedWasReset(self._store.keys.feed, self._path)

    def _check_erased(self, record: Erased) -> None:
        """Raise BadConfiguration unless the same entries were erased from feed and file.

        Entries that were erased before they were recorded are new to the file. Its snapshots go,
        because a replay from them lacks these entries.
        """
        feed = self._store.keys.feed
        known = {name for (name,) in self._file.execute("SELECT name FROM erased")}
        ours = {name.decode(): value.decode() for name, value in record.fields()}
        left = sum(
            1 for at, entry in record.entries.items()
            if self._file.execute("SELECT 1 FROM input WHERE seq = ? UNION SELECT 1 FROM answers "
                                  "WHERE seq = ?", (entry.seq, entry.seq)).fetchone()
            and at.decode() not in known
        )  # fmt: skip
        if left or record.is_unfinished or known - ours.keys():
            raise BadConfiguration(
                f"{self._path}: other entries were erased from feed {feed!r} than from this file: "
                f"online-svm erase {feed} --id ID --file {self._path} erases them in both"
            )
        if ours.keys() - known:
            delete_snapshots(self._file)

    def _add_events(self) -> None:
        for stream, key in (
            ("events", self._store.keys.events), ("raised", self._store.keys.raised),
        ):  # fmt: skip
            last = self._file.execute(
                "SELECT ms, number FROM events WHERE stream = ? ORDER BY event DESC LIMIT 1",
                (stream,),
            ).fetchone()
            after = b"0-0" if last is None else b"%d-%d" % tuple(map(int, last))
            self._file.executemany(
                "INSERT INTO events (stream, ms, number, other) VALUES (?, ?, ?, ?)",
                (
                    (stream, *id_columns(at), framed(fields))
                    for at, fields in self._store.each(key, after)
                ),
            )

    def _write_facts(
        self, state: FeedState, at: Position, record: Erased, facts: dict[str, str]
    ) -> None:
        pinned = state.pinned
        facts |= {
            "format": str(FORMAT), "epoch": str(state.epoch), "writer": state.writer,
            "cursor": at.cursor.decode(), "seq": str(at.seq), "n": str(at.n),
            "digest": at.digest.hex(), "config": pinned.config, "config_hash": pinned.config_hash,
        }  # fmt: skip
        if state.retention is not None:
            facts["retention"] = state.retention.model_dump_json()
        table = readable_convention(self._store)
        if table is not None:
            facts["table"] = table.model_dump_json(exclude_defaults=True)
        self._file.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", facts.items())
        write_erased(self._file, record)

    def put_snapshot(self) -> Position | None:
        """Add the newest snapshot of the feed; return its position, None if it has none.

        Of earlier ones the oldest stays, from which `verify` begins, and with `keep_ms` some
        between, from which the file can begin later. What is older than `keep_ms` is dropped.
        Raises InvalidStoredSnapshot if it is damaged.
        """
        keep_ms = self._options.keep_ms
        loaded = self._newest_snapshot()
        if loaded is None:
            return None
        with transaction(self._file):
            facts = self.facts()
            if parse_id(loaded.position.cursor) <= parse_id(facts["cursor"].encode()):
                store_snapshot(self._file, facts, loaded)
                self._drop_snapshots(facts, keep_ms)
                if keep_ms is not None:
                    drop_before(self._file, facts, keep_ms)
            failpoints.reach("recording-snapshot")
        return loaded.position

    def _newest_snapshot(self) -> LoadedSnapshot | None:
        feed = self._store.keys.feed
        for _ in range(_ATTEMPTS):
            state = self._store.state()
            if state is None or state.snapshot is None:
                return None
            found = self._store.get_snapshot(state.snapshot)
            if found is not None:
                return snapshots.decode(
                    found[0], state.snapshot, feed, state.pinned.config_hash, found[1]
                )
        raise InvalidStoredSnapshot(f"the snapshot of feed {feed!r} is gone: try again")

    def _drop_snapshots(self, facts: dict[str, str], keep_ms: int | None) -> None:
        rows = self._file.execute("SELECT seq, entry FROM snapshots ORDER BY seq").fetchall()
        begins_whole = is_whole(facts) and keep_ms is None
        kept = [] if begins_whole and not self._has_erased() else rows[:1]
        if keep_ms is not None:
            step = keep_ms // _SNAPSHOTS_PER_SPAN
            for row in rows[1:-1]:
                if _ms(row[1].encode()) - _ms(kept[-1][1].encode()) >= step:
                    kept.append(row)
        dropped = {seq for seq, _ in rows[:-1]} - {seq for seq, _ in kept}
        delete_snapshots(self._file, sorted(dropped))

    def _has_erased(self) -> bool:
        return self._file.execute("SELECT 1 FROM erased").fetchone() is not None

    def facts(self) -> dict[str, str]:
        """Return all facts of the file."""
        return dict(self._file.execute("SELECT name, value FROM facts"))

    def _insert(self, table: str, rows: Sequence[Sequence[Any]]) -> None:
        if rows:
            marks = ", ".join("?" * len(rows[0]))
            self._file.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)

    def _seq(self, entry: Entry, message: dict[str, Any]) -> int:
        seq = message.get("seq")
        if type(seq) is not int or not 0 <= seq < 1 << 62:
            raise BadConfiguration(
                f"entry {entry[0].decode()} of feed {self._store.keys.feed!r} has no number: "
                f"another program wrote it; online-svm verify {self._store.keys.feed} tells more"
            )
        return seq


def _of_payload(seq: int, entry: Entry) -> tuple[Any, ...]:
    return seq, *id_columns(entry[0]), text(payload(entry))


def _after(record: Erased, after: bytes, upto: bytes) -> list[bytes]:
    """Return the IDs of the erased entries in (after, upto], in order."""
    return [at for at in record.between(after, upto) if at != after]


def _begun(entry: str, digest: str) -> str:
    """Return the fact `begun`: after which entry the file begins, and the digest there."""
    return f"{entry} {digest}"


def _ms(entry: bytes) -> int:
    return parse_id(entry)[0]


def write_erased(file: sqlite3.Connection, record: Erased) -> None:
    """Replace the list of erased entries, in a transaction of the caller."""
    file.execute("DELETE FROM erased")
    file.executemany(
        "INSERT INTO erased VALUES (?, ?)",
        ((name.decode(), value.decode()) for name, value in record.fields()),
    )


def store_snapshot(file: sqlite3.Connection, facts: dict[str, str], loaded: LoadedSnapshot) -> None:
    """Add a snapshot of the feed with these facts, in a transaction of the caller.

    The recent ids stand apart from the predictor, which the library reads too.
    """
    feed, at, body = facts["feed"], loaded.position, loaded.whole
    _, limits = stored_settings(feed, pinned_of(facts))
    predictor = bytes(RecentIds(limits.dedupe_window).restore_from(body))
    recent = body[: len(body) - len(predictor)]
    sha256 = snapshots.encode(feed, facts["config_hash"], at, body)[0].sha256
    row = (at.seq, at.n, at.cursor.decode(), at.digest.hex(), sha256, recent)
    put_snapshot(file, row, predictor)


def delete_snapshots(file: sqlite3.Connection, seqs: Sequence[int] | None = None) -> None:
    """Delete some snapshots, or all, in a transaction of the caller."""
    for table in ("snapshots", "snapshot_parts"):
        if seqs is None:
            file.execute(f"DELETE FROM {table}")
        else:
            file.executemany(f"DELETE FROM {table} WHERE seq = ?", ((seq,) for seq in seqs))


def drop_before(file: sqlite3.Connection, facts: dict[str, str], keep_ms: int) -> None:
    """Let the file begin with the newest snapshot that is at least `keep_ms` before its end."""
    end = _ms(facts["cursor"].encode()) - keep_ms
    rows = file.execute("SELECT seq, entry, digest FROM snapshots ORDER BY seq DESC").fetchall()
    first = next((row for row in rows if _ms(row[1].encode()) <= end), None)
    if first is None or first[0] <= int(facts["answers_from"]):
        return
    seq = first[0]
    for table in ("input", "answers", "reports", "alarms"):
        file.execute(f"DELETE FROM {table} WHERE seq < ?", (seq,))
    delete_snapshots(file, [row[0] for row in rows if row[0] < seq])
    file.execute("DELETE FROM events WHERE ms < ?", (_ms(first[1].encode()),))
    changed = {"input_from": str(seq), "answers_from": str(seq), "begun": _begun(*first[1:])}
    file.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", changed.items())


class Acknowledgement:
    """Moves a consumer group of the answers behind the last recorded answer.

    `consumer` is the name of its only consumer. `takes_group` removes other consumers; without it
    they are an error.
    """

    def __init__(self, store: Store, group: str, consumer: str, takes_group: bool = False) -> None:
        self._store, self._name, self._own = store, group, consumer.encode()
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
        failpoints.reach("recording-acknowledged")

    def check(self) -> None:
        """Raise BadConfiguration if the group exists and has another consumer."""
        key = self._store.keys.out
        if self._store.has_stream(key) and self._group.info() is not None:
            self._others()

    def has_others(self) -> bool:
        """Return whether the group, which exists, has another consumer."""
        return any(name != self._own for name in self._group.idle_ms())

    def _join(self, last: bytes) -> None:
        """Create the group unless it exists, with this file as its only consumer."""
        self._group.create(last)
        for name in self._others():
            self._group.remove_consumer(name)
        self._group.add_consumer(self._own)
        self._has_group = True

    def _others(self) -> list[bytes]:
        """Return the other consumers; raise BadConfiguration if they may not be removed."""
        others = [name for name in self._group.idle_ms() if name != self._own]
        if others and not self._takes_group:
            raise BadConfiguration(
                f"the consumer group {self._name!r} of {self._store.keys.out} has another "
                "consumer: a file needs one of its own, --group NAME, and --downstream block "
                f"waits for {DOWNSTREAM!r} alone. If that consumer was given up for good: "
                "--take-group"
            )
        return others
