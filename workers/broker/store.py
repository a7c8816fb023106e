"""A feed in Redis: typed reads, and the scripts, which alone write its state."""

from collections.abc import Iterator, Sequence
from typing import Any, Self

import structlog

from workers.broker.batch_size import BatchSize, Entry
from workers.broker.commit_replies import input_lost, lost, refused
from workers.broker.connection import TIMEOUT, Connection
from workers.broker.large_replies import check_entry_is_given, most_cuts, value_of
from workers.broker.pipeline import Argument, Sent
from workers.broker.script import Script
from workers.errors import Fenced, ReadCut, ReadTooLarge, WrongKeyType
from workers.feed.commit import Commit, Retention, SnapshotMove
from workers.feed.keys import REGISTRY, FeedKeys
from workers.feed.position import LAST_ID
from workers.feed.state import Agreement, FeedState, Pointer, encode_marks, initial_fields
from workers.stop import Stop

log = structlog.get_logger("online_svm.worker")

PAGE = 1000
"""Largest number of entries in a page, when a whole stream is read."""

PAGE_BYTES = 1 << 24
"""Approximate bytes in a page, when a whole stream is read."""

# If the worker dies before a commit points at its snapshot, the snapshot expires.
_UNREFERENCED_SECONDS = 3600


_COMMIT = Script.load("streams", "input", "commit")
_FENCE = Script.load("streams", "input", "fence")
_CHECK_INPUT = Script.load("streams", "input", "check_input", name="check-input")
_ADOPT = Script.load("adopt_environment", name="adopt")
_PUT = Script.load("put_snapshot", name="put")

_UNCOUNTED = (
    "this input was not counted so far, or by another server: entries that were taken from it "
    "unread before are not missed"
)


class Store:
    """The keys of a feed, over two connections, so that a blocking read never delays a commit.

    Parameters
    ----------
    url, feed : str
    stop : Stop
    patience : float or None
        Seconds of retries; see `Connection`.
    retention : Retention
    block_ms : int
        Milliseconds that `read` waits.

    Attributes
    ----------
    reads_input : bool
        Whether the feed answers what is in `in`; what a combination answers is in other feeds.
    """

    reads_input = True

    def __init__(
        self,
        url: str,
        feed: str,
        stop: Stop | None = None,
        patience: float | None = 0.0,
        retention: Retention | None = None,
        block_ms: int = 1000,
    ) -> None:
        self.keys = FeedKeys(feed)
        self.retention = retention or Retention()
        self.url, self.block_ms = url, block_ms
        stop = stop or Stop()
        self._connection = Connection(url, stop, patience)
        self._reader = Connection(url, stop, patience, TIMEOUT + block_ms / 1000)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give up the connections."""
        self._connection.close()
        self._reader.close()

    @property
    def failures(self) -> int:
        """Failures of the connections so far: after one, Redis may have been restarted."""
        return self._connection.failures + self._reader.failures

    def be_patient(self) -> None:
        """From now on, retry until a stop is requested."""
        self._connection.patience = self._reader.patience = None

    # Reads

    def state(self) -> FeedState | None:
        """Return the feed's state, or None if the feed does not exist.

        Raises
        ------
        StateLost
            If it is damaged, or the key holds another type.
        """
        fields = _pairs(self.call("HGETALL", self.keys.state))
        return FeedState.parse(fields, self.keys.state) if fields else None

    def types(self) -> dict[str, str]:
        """Return the type of each key of the feed that exists."""
        expected = self.expected_types()
        found = {key: self.call("TYPE", key).decode() for key in expected}
        return {key: kind for key, kind in found.items() if kind != "none"}

    def expected_types(self) -> dict[str, str]:
        """Return the type that each key of the feed must have."""
        keys = self.keys
        streams = dict.fromkeys((keys.input, keys.out, keys.met, keys.dlq), "stream")
        return streams | {keys.state: "hash", keys.lease: "string"}

    def has_snapshots(self) -> bool:
        """Return whether any snapshot of the feed is left, referenced or not."""
        return any(True for _ in self.snapshot_keys())

    def snapshot_keys(self) -> Iterator[str]:
        """Yield the keys of all snapshots of the feed, referenced or not (a scan)."""
        cursor = b"0"
        while True:
            cursor, found = self.call(
                "SCAN", cursor, "MATCH", self.keys.snapshots, "COUNT", 10 * PAGE
            )
            yield from (key.decode() for key in found)
            if cursor == b"0":
                return

    def server(self) -> dict[str, str]:
        """Return the fields of INFO for server, memory, persistence and cluster."""
        lines = (
            line
            for section in ("server", "memory", "persistence", "cluster")
            for line in self.call("INFO", section).decode().splitlines()
        )
        return dict(line.split(":", 1) for line in lines if ":" in line)

    def read(
        self, cursor: bytes, count: int, is_eager: bool = False, limit: int | None = None
    ) -> list[Entry]:
        """Return up to `count` entries after the cursor; wait up to `block_ms` for the first.

        With `is_eager`, poll briefly before blocking: see `spin`.

        Raises
        ------
        ReadTooLarge
            If the reply has more than `limit` bytes.
        """
        sent = self._reader.send(
            "XREAD", "COUNT", count, "BLOCK", self.block_ms, "STREAMS", self.keys.input, cursor,
            limit=limit, most_cuts=most_cuts(count),
        )  # fmt: skip
        if is_eager:
            self._reader.spin()
        reply = self._reader.receive(sent)
        return reply[0][1] if reply else []

    def send_read(self, cursor: bytes, count: int, limit: int | None = None) -> Sent:
        """Request up to `count` entries after the cursor; `receive_read` returns them."""
        return self._reader.send(
            "XREAD", "COUNT", count, "STREAMS", self.keys.input, cursor,
            limit=limit, most_cuts=most_cuts(count),
        )  # fmt: skip

    def receive_read(self, asked: Sent) -> list[Entry]:
        """Return the entries that `send_read` requested; empty if there were none.

        Raises
        ------
        ReadTooLarge
            If the reply exceeds the `limit` of the request.
        """
        reply = self._reader.receive(asked)
        return reply[0][1] if reply else []

    def pages(
        self, stream: str, after: bytes, upto: bytes = b"+", count: int = PAGE
    ) -> Iterator[list[Entry]]:
        """Yield the entries of a stream in (after, upto], a page at a time.

        A page has at most `count` entries, and fewer where they are large: about `PAGE_BYTES`.
        """
        size = BatchSize(count, PAGE_BYTES)
        while after not in (upto, LAST_ID) and (page := self.page(stream, after, upto, size)):
            is_full = len(page) >= size.count
            size.first_of(page)
            yield page
            after = page[-1][0]
            if not is_full:
                return

    def page(self, stream: str, after: bytes, upto: bytes, size: BatchSize) -> list[Entry]:
        """Return the first entries of a stream in (after, upto], as many as the size allows.

        Raises
        ------
        ReplyNotGiven
            If Redis does not give the next entry.
        """
        while True:
            count = size.count
            try:
                page: list[Entry] = self._connection.call(
                    "XRANGE", stream, b"(" + after, upto, "COUNT", count,
                    limit=size.reply_limit, most_cuts=most_cuts(count),
                )  # fmt: skip
            except ReadTooLarge as error:
                self.check_entry_is_given(error, stream, after, count)
                size.halve(error)
            else:
                return page

    def check_entry_is_given(
        self, error: ReadTooLarge, stream: str, after: bytes, count: int
    ) -> None:
        """Raise ReplyNotGiven if a read after an ID failed, and no later attempt can succeed.

        Parameters
        ----------
        error : ReadTooLarge
            Of the read.
        stream : str
        after : bytes
        count : int
            Entries that were requested.
        """
        if isinstance(error, ReadCut) and count == 1:
            check_entry_is_given(self._connection, stream, after)

    def length(self, stream: str) -> int:
        """Return the number of entries of a stream; 0 if it does not exist."""
        return int(self.call("XLEN", stream))

    def call(self, *command: Argument) -> Any:
        """Return the unparsed reply to a command."""
        return self._connection.call(*command)

    def run(self, script: Script, keys: Sequence[str], args: Sequence[Argument]) -> Any:
        """Run a script that workers do not use; return its reply."""
        return self._connection.evaluate(script, keys, args)

    # Writes

    def append(self, stream: str, entries: Sequence[Entry]) -> None:
        """Append entries under their IDs; all are sent before the first reply is read."""
        self._connection.call_all([("XADD", stream, entry[0], *entry[1]) for entry in entries])

    def register(self) -> None:
        """Add the feed to the list of feeds, which `status` shows. A feed works without it."""
        try:
            self.call("SADD", REGISTRY, self.keys.feed)
        except WrongKeyType as error:
            log.warning(
                "this feed is not listed: the list of feeds is not a set; delete that key",
                key=REGISTRY,
                error=str(error),
            )

    def fence(self, writer: str, new: Agreement | None) -> FeedState:
        """Become the feed's only writer: commits of earlier writers are refused from now on.

        Parameters
        ----------
        writer : str
            Name of this worker, shown to people.
        new : Agreement or None
            If the feed does not exist, create it with this. None if it must exist.

        Raises
        ------
        StateLost
            If the feed must exist and does not.
        InputLost
            If its input was deleted, renamed or made anew since its last commit.
        """
        fields = [] if new is None else initial_fields(new)
        reply = self._connection.evaluate(
            _FENCE, [self.keys.state, self.keys.input], [writer, int(self.reads_input), *fields]
        )
        if reply[0] == b"LOST":
            raise lost(self.keys)
        self._tell_of_input(reply)
        return FeedState.parse(_pairs(reply[2:]), self.keys.state)

    def check_input(self, epoch: int) -> None:
        """See whether the input is still the stream that the feed answers.

        Raises
        ------
        InputLost
            If it was deleted, renamed or made anew since the last commit.
        """
        keys = [self.keys.state, self.keys.input]
        self._tell_of_input(self._connection.evaluate(_CHECK_INPUT, keys, [epoch]))

    def _tell_of_input(self, reply: Sequence[Any]) -> None:
        """Raise where the input is refused; warn where it is counted from here on only."""
        if reply[0] != b"OK":
            raise input_lost(reply, self.keys, self.expected_types())
        if reply[1]:
            log.warning(_UNCOUNTED, key=self.keys.input)

    def adopt_environment(self, epoch: int, environment: str) -> None:
        """Record that this environment computes the feed from now on.

        Raises
        ------
        Fenced
            If a newer worker owns the feed.
        """
        if not self._connection.evaluate(_ADOPT, [self.keys.state], [epoch, environment]):
            raise Fenced(f"feed {self.keys.feed!r}: a newer worker has taken over")

    def put_snapshot(self, pointer: Pointer, data: bytes) -> list[Sent]:
        """Begin to write a snapshot in parts; a commit that is sent afterwards may point at it.

        Until a commit points at it, it expires after an hour.
        """
        text, keys = pointer.encode(), pointer.keys(self.keys)
        return [
            self._connection.send_script(
                _PUT, [self.keys.state, key], [text, _UNREFERENCED_SECONDS, part]
            )
            for key, part in zip(keys, _parts(data, len(keys)), strict=True)
        ]

    def finish_snapshot(self, sent: Sequence[Sent]) -> None:
        """Wait until a snapshot is written.

        Raises
        ------
        Unavailable, Stopped, AccessDenied, WrongKeyType, WorkerError
            If it cannot be written; see `Connection.call`.
        """
        for part in sent:
            self._connection.receive_script(_PUT, part)

    def get_snapshot(self, pointer: Pointer) -> bytes | None:
        """Return the bytes of a snapshot, or None if any part is gone.

        Raises
        ------
        ReplyNotGiven
            If Redis does not give even small pieces of a part.
        """
        parts: list[bytes] = []
        for key in pointer.keys(self.keys):
            part = value_of(self._connection, key)
            if part is None:
                return None
            parts.append(part)
        return b"".join(parts)

    def commit(self, commit: Commit) -> None:
        """Write a batch, all or nothing. A batch that was committed before is no error.

        Raises
        ------
        Fenced
            If a newer worker owns the feed.
        PositionMoved, BatchChanged, InvalidStoredSnapshot
            If nothing was written, and the engine can continue after reading its position.
        StateLost, InputLost, OutputAhead, WrongKeyType
            If nothing was written, and the feed cannot be continued.
        """
        self.confirm(commit, self.send(commit))

    def send(self, commit: Commit) -> Sent:
        """Send a commit; `confirm` waits for it."""
        return self._connection.send_script(_COMMIT, self._commit_keys(commit), self._args(commit))

    def spin(self) -> None:
        """Poll for the reply to a commit briefly, before `confirm` blocks."""
        self._connection.spin()

    def confirm(self, commit: Commit, sent: Sent) -> None:
        """Wait until a commit is done; send it again if its reply was lost.

        Raises
        ------
        Fenced, PositionMoved, BatchChanged, InvalidStoredSnapshot
            As `commit`.
        StateLost, OutputAhead, WrongKeyType
            As `commit`.
        """
        reply = self._connection.receive_script(_COMMIT, sent)
        if reply[0] != b"OK":
            refused(commit, reply, self.keys, self.expected_types())

    def _commit_keys(self, commit: Commit) -> list[str]:
        keys = self.keys
        named = [keys.state, keys.input, keys.out, keys.met, keys.dlq]
        if commit.move is None:
            return named
        return [*named, *commit.move.newest.keys(keys), *commit.move.dropped]

    def _args(self, commit: Commit) -> list[Argument]:
        after, keep, move = commit.after, self.retention, commit.move
        args: list[Argument] = [commit.epoch, commit.before.cursor]
        args += [after.seq, after.n, after.digest.hex(), keep.out, keep.met, keep.dlq]
        args += [int(self.reads_input)]
        args += [b"", 0] if move is None else [move.trim, move.newest.parts]
        fields = {**commit.fields, **({} if move is None else _pointers(move))}
        args += [len(fields), len(commit.ids), len(commit.met), len(commit.dlq)]
        for field in fields.items():
            args += field
        answers: list[Argument] = [b""] * (2 * len(commit.ids))
        answers[::2], answers[1::2] = commit.ids, commit.out
        args += answers
        for pair in commit.met:
            args += pair
        for dead_letter in commit.dlq:
            args += (dead_letter.id, dead_letter.code, dead_letter.reason)
            args += (dead_letter.size, dead_letter.head)
        return args


def _pointers(move: SnapshotMove) -> dict[str, bytes]:
    """Return the fields of the state that name the snapshots after a move."""
    previous = b"" if move.previous is None else move.previous.encode()
    return {
        "snapshot": move.newest.encode(),
        "previous": previous,
        "marks": encode_marks(move.marks),
    }


def _parts(data: bytes, count: int) -> Iterator[bytes | memoryview]:
    """Yield `count` parts of about equal size, without copying the bytes."""
    if count == 1:
        yield data
        return
    size = -(-len(data) // count)
    for begin in range(0, count * size, size):
        yield memoryview(data)[begin : begin + size]


def _pairs(flat: Sequence[bytes]) -> dict[bytes, bytes]:
    return dict(zip(flat[::2], flat[1::2], strict=True))
