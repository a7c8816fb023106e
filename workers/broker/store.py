"""Write a feed: nothing else writes its state."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, Unpack

from workers.broker import commands
from workers.broker.commands import Script
from workers.broker.commit_script import (
    RetainedOutputs,
    arguments_of,
    check_refusal,
    input_lost,
    keys_of,
    lost,
)
from workers.broker.feed_reader import FeedReader, ReadOptions
from workers.broker.pipeline import Argument, PendingReply
from workers.broker.streams import Entry, pairs_of
from workers.config.retention_settings import RetentionSettings
from workers.errors import WrongKeyType
from workers.feed.codes import EVENTS_KEPT, EventCode, encode_event
from workers.feed.keys import ALARM, FIELD, REGISTRY
from workers.feed.retention import Retention
from workers.feed.state import (
    Commit,
    FeedState,
    PinnedConfig,
    Pointer,
    Publication,
    StoredFit,
    initial_fields,
)
from workers.log import Logger
from workers.stop import Stop

log = Logger("online_svm.worker")

_IDS_AT_ONCE = 10_000  # a script with so many takes about ten milliseconds

# Expiry of a snapshot, or published state, that nothing points to.
_UNREFERENCED_SECONDS = 3600

_REPLACED_SECONDS = 10
"""Expiry of a replaced published state: a gateway reads a state in milliseconds."""

_COMMIT = Script.load("streams", "input", "commit")
_FENCE = Script.load("streams", "input", "fence")
_CHECK_INPUT = Script.load("streams", "input", "check_input", name="check-input")
_PUBLISH = Script.load("publish")
_WRITE_IDS = Script.load("streams", "write_ids", name="write-ids")
_PUT = Script.load("put_snapshot", name="put")
_PUT_CHUNK = Script.load("put_chunk", name="put-chunk")
_PUT_FIT = Script.load("put_fit")

NO_CHUNKS: Mapping[str, bytes] = MappingProxyType({})
"""The chunks of a snapshot without any."""

_UNCOUNTED = (
    "no worker counted this input on this server before, as after a restore or a move: "
    "whether entries were deleted unread until now is not known; from now on it is"
)


class SentPart(NamedTuple):
    """A part of a snapshot that was sent."""

    script: Script
    reply: PendingReply


class Store(FeedReader):
    """Reads and writes a feed; takes the parameters of `FeedReader`, too.

    `wait_replicas` replicas must acknowledge a take-over and each commit. `retained` decides what
    commits trim.
    """

    def __init__(
        self,
        url: str,
        feed: str,
        stop: Stop | None = None,
        retention: Retention | None = None,
        wait_replicas: int = 0,
        **reading: Unpack[ReadOptions],
    ) -> None:
        super().__init__(url, feed, stop, **reading)
        self._wait_replicas = wait_replicas
        self.retained = RetainedOutputs(retention or Retention())
        self._writer, self._epoch = "", 0

    def append(self, stream: str, entries: Sequence[Entry]) -> None:
        """Append entries under their IDs, pipelined."""
        self._connection.call_all(
            [commands.append(stream, fields, entry_id) for entry_id, fields in entries]
        )

    def add_event(self, payload: str | bytes) -> None:
        """Add an operational event and wait for the reply; see `note`."""
        self.add_entry(self.keys.events, FIELD, payload, maxlen=EVENTS_KEPT)

    def request_snapshot(self, cursor: bytes, seconds: float) -> None:
        """Request a snapshot up to an ID from the worker, unless one is already requested."""
        self.call("SET", self.keys.wanted, cursor, "PX", int(1000 * seconds) + 1, "NX")

    def write_erased(self, fields: Sequence[Argument]) -> None:
        """Write fields of the hash `erased`: names and values alternate."""
        self.call("HSET", self.keys.erased, *fields)

    def finish_erased(self) -> None:
        """Record in the hash `erased` that the erasure is complete."""
        self.call("HDEL", self.keys.erased, "unfinished")

    def expire(self, key: str, seconds: int) -> None:
        """Set the expiry of a key."""
        self.call("EXPIRE", key, seconds)

    def unregister(self) -> None:
        """Remove the feed from the list of feeds."""
        self.call("SREM", REGISTRY, self.keys.feed)

    def begin_saving(self) -> None:
        """Make Redis rewrite its append-only file, and its dump if it keeps one."""
        has_log = self.server().get("aof_enabled") == "1"
        if has_log:
            self.call_server("BGREWRITEAOF")
        if not has_log or self.call_server("CONFIG", "GET", "save")[1]:
            self.call_server("BGSAVE", "SCHEDULE")

    def register(self) -> None:
        """Add the feed to the list of feeds that `status` shows; log if that fails."""
        try:
            self.call("SADD", REGISTRY, self.keys.feed)
        except WrongKeyType as error:
            log.warning(
                "this feed is not listed: the list of feeds is not a set; delete that key",
                key=REGISTRY,
                error=str(error),
            )

    def fence(
        self, writer: str, new: PinnedConfig | None, kept: RetentionSettings | None = None
    ) -> FeedState:
        """Become the feed's only writer: commits of earlier writers are refused from now on.

        `writer` is a name for people. `new` is the configuration of a feed to create; None if the
        feed must exist. `kept` is the retention to store for later workers. Raises StateLost if a
        feed that must exist does not; InputLost if its input was deleted, renamed or recreated
        since its last commit.
        """
        fields = [] if new is None else initial_fields(new)
        keys = [self.keys.state, self.keys.input, self.keys.restart_mark]
        stored = "" if kept is None else kept.model_dump_json()
        args = [writer, stored, *fields]
        reply = self._connection.evaluate(_FENCE, keys, args, self._wait_replicas)
        if reply[0] == b"LOST":
            raise lost(self.keys)
        self._check_accepted(reply)
        state = FeedState.parse(pairs_of(reply[2:]), self.keys.state)
        self._writer, self._epoch = writer, state.epoch
        self.retained.begin(state)
        self._warn_if_uncounted(reply)
        return state

    def check_input(self, epoch: int) -> None:
        """Raise InputLost if the input was deleted, renamed or recreated since the last commit."""
        keys = [self.keys.state, self.keys.input]
        reply = self._connection.evaluate(_CHECK_INPUT, keys, [epoch])
        self._check_accepted(reply)
        self._warn_if_uncounted(reply)

    def _check_accepted(self, reply: Sequence[Any]) -> None:
        if reply[0] != b"OK":
            raise input_lost(reply, self.keys, self.expected_types(), self._can_replay)

    def _can_replay(self) -> bool:
        """Return whether the input between the newest snapshot and the cursor is all there.

        Each answer has the ID of its entry, so the answers tell which entries there were.
        """
        state = self.state()
        if state is None:
            return False
        cursor = state.position.cursor
        after = b"0-0" if state.snapshot is None else state.snapshot.cursor
        if after == cursor:
            return True
        given = {entry[0] for entry in self.each(self.keys.input, after, cursor)}
        answered = (entry[0] for entry in self.each(self.keys.out, after, cursor))
        return cursor in given and all(entry_id in given for entry_id in answered)

    def _warn_if_uncounted(self, reply: Sequence[Any]) -> None:
        if reply[1]:
            log.warning(_UNCOUNTED, key=self.keys.input)
            self.note("input_uncounted", _UNCOUNTED)

    def note(self, code: EventCode, detail: str, writer: str = "") -> None:
        """Add an operational event to `events`, best effort: the reply is not awaited.

        Before `fence` nothing is added, unless `writer` is given. Only the event "began" creates
        the stream, so a deleted feed stays deleted.
        """
        if not (self._epoch or writer):
            return
        payload = encode_event(code, self._writer or writer, self._epoch, detail)
        new = () if code == "began" else ("NOMKSTREAM",)
        self._connection.send(
            "XADD", self.keys.events, *new, "MAXLEN", "~", EVENTS_KEPT, "*", FIELD, payload
        )

    def note_raised(self, alarms: Sequence[bytes]) -> None:
        """Add the IDs of just committed `alarms` to `raised`, whose entry IDs are their times."""
        for entry_id in alarms:
            self._connection.send(
                *commands.append(self.keys.raised, [ALARM, entry_id], maxlen=EVENTS_KEPT)
            )

    def write_answered_ids(self, epoch: int, fields: Mapping[str, bytes]) -> None:
        """Write all fields of the hash `ids` at a take-over; each commit then changes it."""
        keys = [self.keys.state, self.keys.answered_ids]
        pairs = list(fields.items())
        for begin in range(0, max(1, len(pairs)), _IDS_AT_ONCE):
            part = [text for pair in pairs[begin : begin + _IDS_AT_ONCE] for text in pair]
            self._connection.evaluate(_WRITE_IDS, keys, [epoch, int(begin == 0), *part])

    def put_snapshot(
        self, pointer: Pointer, data: bytes, chunks: Mapping[str, bytes] = NO_CHUNKS
    ) -> list[SentPart]:
        """Send a snapshot in parts, and chunks by name; they expire unless a commit points to them.

        `chunks`: those of the pointer that no kept snapshot has.
        """
        text = pointer.encode()
        keys = self.keys.snapshot_parts(pointer.n, pointer.sha256, pointer.parts)
        of_body = [
            self._connection.send_script(
                _PUT, [self.keys.state, key], [text, _UNREFERENCED_SECONDS, part], is_large=True
            )
            for key, part in zip(keys, _parts(data, len(keys)), strict=True)
        ]
        of_memory = [
            self._connection.send_script(
                _PUT_CHUNK, [key], [_UNREFERENCED_SECONDS, part], is_large=True
            )
            for key, part in zip(self.keys.memory_chunks(chunks), chunks.values(), strict=True)
        ]
        sent = [SentPart(_PUT, reply) for reply in of_body]
        return sent + [SentPart(_PUT_CHUNK, reply) for reply in of_memory]

    def finish_snapshot(self, sent: Sequence[SentPart]) -> None:
        """Wait until a snapshot is written. Raises as `Connection.call`."""
        for script, reply in sent:
            self._connection.receive_script(script, reply)

    def put_fit(self, fit: StoredFit) -> None:
        """Keep a finished fit for an hour, or until two of its kind follow; wait for no reply."""
        keys = [self.keys.state, self.keys.fits(fit.kind)]
        # EVAL, not EVALSHA: nobody waits for a reply of NOSCRIPT.
        self._connection.send(
            "EVAL", _PUT_FIT.text, len(keys), *keys, self._epoch, _UNREFERENCED_SECONDS,
            *fit.fields(), is_large=True,
        )  # fmt: skip

    def publish(
        self, new: Publication, data: bytes, epoch: int, before: Publication | None
    ) -> PendingReply:
        """Publish a state, after the commit at its position; wait for no reply.

        The reply is 1 once the state is the newest; the state `before` then expires after ten
        seconds. If the state is refused, its parts expire after an hour.
        """
        keys = new.keys(self.keys)
        for key, part in zip(keys, _parts(data, len(keys)), strict=True):
            self._connection.send("SET", key, part, "EX", _UNREFERENCED_SECONDS, is_large=True)
        replaced = [] if before is None else before.keys(self.keys)
        script_keys = [self.keys.state, self.keys.published, *keys]
        script_keys += [key for key in replaced if key not in keys]
        # EVAL, not EVALSHA: nobody waits for a reply of NOSCRIPT.
        return self._connection.send(
            "EVAL", _PUBLISH.text, len(script_keys), *script_keys, epoch, new.cursor, new.parts,
            _REPLACED_SECONDS, *new.fields(),
        )  # fmt: skip

    def commit(self, commit: Commit) -> None:
        """Write a batch, all or nothing; do nothing if it is already committed.

        Raises Fenced if a newer worker owns the feed; PositionMoved, BatchChanged or
        InvalidStoredSnapshot if the session can continue after it reads its position again;
        StateLost, InputLost, OutputAhead or WrongKeyType if the feed cannot continue. After any of
        these nothing was written.
        """
        self.confirm(commit, self.send(commit))

    def send(self, commit: Commit) -> PendingReply:
        """Send a commit; `confirm` it before sending another."""
        arguments = arguments_of(commit, self.retained.send(commit), self.keys)
        return self._connection.send_script(
            _COMMIT, keys_of(commit, self.keys), arguments, self._wait_replicas
        )

    def has_reply(self, sent: PendingReply) -> bool:
        """Return whether `confirm` returns at once: the reply was read, or there will be none."""
        return self._connection.has_reply(sent)

    def confirm(self, commit: Commit, sent: PendingReply) -> None:
        """Wait for a commit; send it again if its reply was lost. Raises as `commit`."""
        reply = self._connection.receive_script(_COMMIT, sent)
        if reply[0] != b"OK":
            check_refusal(commit, reply, self.keys, self.expected_types(), self._can_replay)
        self.retained.confirm(commit)


def _parts(data: bytes, count: int) -> Iterator[bytes | memoryview]:
    """Yield `count` parts of nearly equal size, without copying."""
    if count == 1:
        yield data
        return
    size = -(-len(data) // count)
    for begin in range(0, count * size, size):
        yield memoryview(data)[begin : begin + size]
