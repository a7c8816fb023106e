"""A feed in Redis, read-only: its state, its snapshots, and its streams page by page."""

from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any, Self, TypedDict

from workers.broker import commands
from workers.broker.client import TIMEOUT
from workers.broker.commands import Script
from workers.broker.connection import Connection
from workers.broker.large_replies import BatchSize, check_entry_is_deliverable, max_cuts, read_value
from workers.broker.pipeline import Argument, PendingReply
from workers.broker.streams import Entry, Group, Keys, pairs_of
from workers.errors import InvalidPublication, ReadCut, ReadTooLarge, Trouble
from workers.feed.keys import FeedKeys
from workers.feed.position import LAST_ID
from workers.feed.state import FeedState, Pointer, Publication
from workers.stop import Stop

PAGE = 1000  # largest number of entries in a page of a stream
BLOCK_MS = 1000  # milliseconds that a read waits for input
PAGE_BYTES = 1 << 24  # approximate bytes of a page of a stream
_PROTOCOL_BYTES = 1 << 16  # upper bound for what a reply has besides the value


class ReadOptions(TypedDict, total=False):
    """Parameters of `FeedReader` that a `Store` passes on."""

    retry_timeout: float | None
    block_ms: int | None
    connections: tuple[Connection, Connection] | None


class FeedReader(Keys):
    """Reads a feed over two connections, so that a blocking read never delays a commit.

    `stop` and `retry_timeout` are as for `Connection`; `block_ms` defaults to `BLOCK_MS`.
    `connections`, for commands and for reads, are shared by feeds; `close` leaves them open.
    """

    def __init__(
        self,
        url: str,
        feed: str,
        stop: Stop | None = None,
        retry_timeout: float | None = 0.0,
        block_ms: int | None = None,
        connections: tuple[Connection, Connection] | None = None,
    ) -> None:
        self.keys = FeedKeys(feed)
        self.url, self.block_ms = url, BLOCK_MS if block_ms is None else block_ms
        self._is_shared = connections is not None
        if connections is None:
            stop = stop or Stop()
            connections = (
                Connection(url, stop, retry_timeout),
                Connection(url, stop, retry_timeout, TIMEOUT + self.block_ms / 1000),
            )
        self._connection, self._reader = connections

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections, unless they are shared."""
        if not self._is_shared:
            self._connection.close()
            self._reader.close()

    @property
    def failures(self) -> int:
        """Failures of the connections so far; after one, Redis may have been restarted."""
        return self._connection.failures + self._reader.failures

    @property
    def unbroken(self) -> tuple[object, ...]:
        """A value that changes when the feed moves to another node, or a connection to it fails."""
        key = self.keys.state
        return self._connection.failures_about(key), self._reader.failures_about(key)

    @property
    def retries(self) -> Counter[str]:
        """The `failures` by kind."""
        # Copied first: the thread of the connection may add to them meanwhile.
        both = (self._connection.retries, self._reader.retries)
        return sum((Counter(dict(kinds)) for kinds in both), Counter())

    @property
    def trouble(self) -> Trouble | None:
        """Why the last attempt failed; None if both connections work."""
        return self._connection.trouble or self._reader.trouble

    def retry_forever(self) -> None:
        """Retry, from now on, until a stop is requested."""
        self._connection.retry_timeout = self._reader.retry_timeout = None

    def state(self) -> FeedState | None:
        """Return the feed's state, if any. Raises StateLost if it is damaged."""
        fields = self.hash_fields(self.keys.state)
        return FeedState.parse(fields, self.keys.state) if fields else None

    def state_fields(self, *names: str) -> list[bytes | None]:
        """Return some fields of the state as stored; None for a missing field."""
        return list(self.call(*commands.fields(self.keys.state, *names)))

    def state_field(self, name: str) -> bytes | None:
        """Return one field of the state as stored."""
        found: bytes | None = self.call(*commands.field(self.keys.state, name))
        return found

    def hash_fields(self, key: str) -> dict[bytes, Any]:
        """Return all fields of a hash; {} if it does not exist."""
        return pairs_of(self.call(commands.ALL_FIELDS, key))

    def lease_value(self) -> bytes | None:
        """Return the stored lease; see `leases.Holder`."""
        return self.value(self.keys.lease)

    def snapshot_request(self) -> bytes | None:
        """Return the ID up to which a backup requests a snapshot from the worker, if any."""
        return self.value(self.keys.wanted)

    def group(self, stream: str, name: str) -> Group:
        """Return a consumer group of a stream, which need not exist."""
        return Group(self._connection, stream, name)

    def types(self) -> dict[str, str]:
        """Return the type of each existing key of the feed."""
        expected = self.expected_types()
        sent = self._connection.send_all([commands.key_type(key) for key in expected])
        kinds = (self._connection.receive(each).decode() for each in sent)
        found = dict(zip(expected, kinds, strict=True))
        return {key: kind for key, kind in found.items() if kind != "none"}

    def expected_types(self) -> dict[str, str]:
        """Return the type that each key of the feed must have."""
        keys = self.keys
        streams = dict.fromkeys((keys.input, *keys.outputs), "stream")
        return streams | {keys.state: "hash", keys.lease: "string"}

    def has_snapshots(self) -> bool:
        """Return whether the feed has any snapshot, referenced by its state or not."""
        return any(True for _ in self.snapshot_keys())

    def snapshot_keys(self) -> Iterator[str]:
        """Scan for the keys of all snapshots of the feed, referenced by its state or not."""
        return self._scan(self.keys.snapshots)

    def published_keys(self) -> Iterator[str]:
        """Scan for the keys of the parts of all published states."""
        return self._scan(self.keys.publications)

    def _scan(self, pattern: str) -> Iterator[str]:
        cursor = b"0"
        while True:
            cursor, found = self._connection.call(
                "SCAN", cursor, "MATCH", pattern, "COUNT", 10 * PAGE,
                key=self.keys.state,
            )  # fmt: skip
            yield from (key.decode() for key in found)
            if cursor == b"0":
                return

    def server(self) -> dict[str, str]:
        """Return the fields of INFO's sections server, memory, persistence and cluster."""
        sections = (
            self._connection.call("INFO", section, key=self.keys.state).decode()
            for section in ("server", "memory", "persistence", "cluster")
        )
        lines = (line for text in sections for line in text.splitlines())
        return dict(line.split(":", 1) for line in lines if ":" in line)

    def server_time(self) -> int:
        """Return the Unix time in seconds, by the clock of the feed's server."""
        return int(self.call_server("TIME")[0])

    def may_run(self, user: str, command: Sequence[str]) -> bool:
        """Return whether a user's ACL permits a command, which is not run."""
        return bool(self.call_server("ACL", "DRYRUN", user, *command) == b"OK")

    def send_read(self, cursor: bytes, count: int, limit: int | None = None) -> PendingReply:
        """Request up to `count` entries after the cursor; `receive_read` returns them."""
        return self._reader.send(
            *commands.read_after([(self.keys.input, cursor)], count),
            limit=limit, max_cuts=max_cuts(count),
        )  # fmt: skip

    def receive_read(self, sent: PendingReply) -> list[Entry]:
        """Return the entries of a sent read. Raises ReadTooLarge if they exceed its limit."""
        reply = self._reader.receive(sent)
        return reply[0][1] if reply else []

    def pages(
        self, stream: str, after: bytes, upto: bytes = b"+", count: int = PAGE
    ) -> Iterator[list[Entry]]:
        """Yield the entries in (after, upto], by pages of `count` and about `PAGE_BYTES`."""
        size = BatchSize(count, PAGE_BYTES)
        while after not in (upto, LAST_ID) and (page := self.page(stream, after, upto, size)):
            is_full = len(page) >= size.count
            size.first_of(page)
            yield page
            after = page[-1][0]
            if not is_full:
                return

    def each(
        self, stream: str, after: bytes = b"0-0", upto: bytes = b"+", count: int = PAGE
    ) -> Iterator[Entry]:
        """Yield the entries in (after, upto] one by one; see `pages`."""
        for page in self.pages(stream, after, upto, count):
            yield from page

    def page(self, stream: str, after: bytes, upto: bytes, size: BatchSize) -> list[Entry]:
        """Return the first entries in (after, upto], as many as `size` allows.

        Raises ReplyNotGiven if Redis never sends the first entry.
        """
        while True:
            count = size.count
            try:
                page: list[Entry] = self._connection.call(
                    *commands.entries(stream, commands.after(after), upto, count),
                    limit=size.reply_limit, max_cuts=max_cuts(count),
                )  # fmt: skip
            except ReadTooLarge as error:
                self.check_entry_is_deliverable(error, stream, after, count)
                size.halve(error)
            else:
                return page

    def check_entry_is_deliverable(
        self, error: ReadTooLarge, stream: str, after: bytes, count: int
    ) -> None:
        """Raise ReplyNotGiven if the read failed because Redis never sends its one entry."""
        if isinstance(error, ReadCut) and count == 1:
            check_entry_is_deliverable(self._connection, stream, after)

    def call(self, *command: Argument) -> Any:
        """Return the unparsed reply to a command with a key of this feed."""
        return self._connection.call(*command)

    def request(self, *command: Argument) -> PendingReply:
        """Send a command; `reply` returns its reply later, or raises its error."""
        return self._connection.send(*command)

    def reply(self, sent: PendingReply) -> Any:
        """Return the unparsed reply to a requested command."""
        return self._connection.receive(sent)

    def call_server(self, *command: Argument) -> Any:
        """Return the unparsed reply of the feed's server to a command without a key."""
        return self._connection.call(*command, key=self.keys.state)

    def run(self, script: Script, keys: Sequence[str], args: Sequence[Argument]) -> Any:
        """Run a script that workers do not use; return its reply."""
        return self._connection.evaluate(script, keys, args)

    def fits(self, kind: str) -> list[Entry]:
        """Return the entries of the kept fits of a kind. Raises WrongKeyType, ReadCut."""
        found: list[Entry] = self._connection.call(
            *commands.entries(self.keys.fits(kind)), max_cuts=2
        )
        return found

    def publication(self) -> Publication | None:
        """Return the newest publication, if any. Raises InvalidPublication if it is damaged."""
        fields = self.hash_fields(self.keys.published)
        return Publication.parse(fields, self.keys.published) if fields else None

    def published(self, found: Publication) -> bytes:
        """Return the published state. Raises InvalidPublication if it is missing or damaged."""
        held, limit = bytearray(), found.size + _PROTOCOL_BYTES
        for key in found.keys(self.keys):
            part = self._connection.call("GET", key, limit=limit)
            held += b"" if part is None else part
        if len(held) != found.size or sha256(held).hexdigest() != found.sha256:
            raise InvalidPublication(
                f"the state {found.name} of feed {self.keys.feed!r} is gone or damaged: "
                f"{len(held)} of {found.size} bytes, and not its SHA-256"
            )
        return bytes(held)

    def get_snapshot(self, pointer: Pointer) -> tuple[bytes, tuple[bytes, ...]] | None:
        """Return the bytes of a snapshot, and its chunks; None if a part or chunk is missing.

        Raises ReplyNotGiven.
        """
        parts: list[bytes] = []
        for key in pointer.keys(self.keys):
            part = read_value(self._connection, key)
            if part is None:
                return None
            parts.append(part)
        return b"".join(parts[: pointer.parts]), tuple(parts[pointer.parts :])
