"""A feed in Redis, read only: its state, its snapshots, and its streams in pages."""

from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any, Self

from workers.broker.batch_size import BatchSize, Entry
from workers.broker.client import TIMEOUT
from workers.broker.connection import Connection
from workers.broker.large_replies import check_entry_is_given, most_cuts, value_of
from workers.broker.pipeline import Argument, Sent
from workers.broker.script import Script
from workers.errors import InvalidPublication, ReadCut, ReadTooLarge
from workers.feed.keys import FeedKeys
from workers.feed.position import LAST_ID
from workers.feed.publication import Publication
from workers.feed.state import FeedState, Pointer
from workers.stop import Stop
from workers.trouble import Trouble

PAGE = 1000
"""Largest number of entries in a page, when a whole stream is read."""

BLOCK_MS = 1000
"""Milliseconds that a read waits for input."""

PAGE_BYTES = 1 << 24
"""Approximate bytes in a page, when a whole stream is read."""

_PART_MARGIN = 1 << 16  # bytes of the protocol around a part


class FeedReader:
    """The keys of a feed, over two connections, so that a blocking read never delays a commit.

    Parameters
    ----------
    url, feed : str
    stop : Stop
    patience : float or None
        Seconds of retries; see `Connection`.
    block_ms : int, optional
        Milliseconds that `read` waits; by default `BLOCK_MS`.
    connections : (Connection, Connection), optional
        For commands and for reads, which other feeds use too; they stay open.
    """

    def __init__(
        self,
        url: str,
        feed: str,
        stop: Stop | None = None,
        patience: float | None = 0.0,
        block_ms: int | None = None,
        connections: tuple[Connection, Connection] | None = None,
    ) -> None:
        self.keys = FeedKeys(feed)
        self.url, self.block_ms = url, BLOCK_MS if block_ms is None else block_ms
        self._is_shared = connections is not None
        if connections is None:
            stop = stop or Stop()
            connections = (
                Connection(url, stop, patience),
                Connection(url, stop, patience, TIMEOUT + self.block_ms / 1000),
            )
        self._connection, self._reader = connections

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give up the connections, unless they are shared."""
        if not self._is_shared:
            self._connection.close()
            self._reader.close()

    @property
    def failures(self) -> int:
        """Failures of the connections so far: after one, Redis may have been restarted."""
        return self._connection.failures + self._reader.failures

    @property
    def unbroken(self) -> tuple[object, ...]:
        """What stays equal as long as the feed is on one server whose connections do not fail."""
        key = self.keys.state
        return self._connection.failures_about(key), self._reader.failures_about(key)

    @property
    def retries(self) -> Counter[str]:
        """The same failures by kind."""
        # Copied first: another thread may ask while this one counts.
        both = (self._connection.retries, self._reader.retries)
        return sum((Counter(dict(kinds)) for kinds in both), Counter())

    @property
    def trouble(self) -> Trouble | None:
        """Why Redis does not answer, or refuses; None where the last attempts succeeded."""
        return self._connection.trouble or self._reader.trouble

    def be_patient(self) -> None:
        """From now on, retry until a stop is requested."""
        self._connection.patience = self._reader.patience = None

    def state(self) -> FeedState | None:
        """Return the feed's state, or None if the feed does not exist.

        Raises
        ------
        StateLost
            If it is damaged, or the key holds another type.
        """
        fields = pairs_of(self.call("HGETALL", self.keys.state))
        return FeedState.parse(fields, self.keys.state) if fields else None

    def types(self) -> dict[str, str]:
        """Return the type of each key of the feed that exists."""
        expected = self.expected_types()
        sent = self._connection.send_all([("TYPE", key) for key in expected])
        kinds = (self._connection.receive(each).decode() for each in sent)
        found = dict(zip(expected, kinds, strict=True))
        return {key: kind for key, kind in found.items() if kind != "none"}

    def expected_types(self) -> dict[str, str]:
        """Return the type that each key of the feed must have."""
        keys = self.keys
        streams = dict.fromkeys((keys.input, *keys.outputs), "stream")
        return streams | {keys.state: "hash", keys.lease: "string"}

    def has_snapshots(self) -> bool:
        """Return whether any snapshot of the feed is left, referenced or not."""
        return any(True for _ in self.snapshot_keys())

    def snapshot_keys(self) -> Iterator[str]:
        """Yield the keys of all snapshots of the feed, referenced or not (a scan)."""
        return self._scan(self.keys.snapshots)

    def published_keys(self) -> Iterator[str]:
        """Yield the keys of the parts of all published states (a scan)."""
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
        """Return the fields of INFO for server, memory, persistence and cluster."""
        lines = (
            line
            for section in ("server", "memory", "persistence", "cluster")
            for line in self._info(section).decode().splitlines()
        )
        return dict(line.split(":", 1) for line in lines if ":" in line)

    def _info(self, section: str) -> bytes:
        text: bytes = self._connection.call("INFO", section, key=self.keys.state)
        return text

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

    def request(self, *command: Argument) -> Sent:
        """Send a command; `reply` returns its reply later, or raises its error."""
        return self._connection.send(*command)

    def reply(self, sent: Sent) -> Any:
        """Return the unparsed reply to a command that `request` sent."""
        return self._connection.receive(sent)

    def call_server(self, *command: Argument) -> Any:
        """Return the unparsed reply of the server that has the feed to a command without a key."""
        return self._connection.call(*command, key=self.keys.state)

    def run(self, script: Script, keys: Sequence[str], args: Sequence[Argument]) -> Any:
        """Run a script that workers do not use; return its reply."""
        return self._connection.evaluate(script, keys, args)

    def publication(self) -> Publication | None:
        """Return which published state is the newest; None without one.

        Raises
        ------
        InvalidPublication
            If what says so is damaged.
        """
        fields = pairs_of(self.call("HGETALL", self.keys.published))
        return Publication.parse(fields, self.keys.published) if fields else None

    def published(self, found: Publication) -> bytes:
        """Return the bytes of a published state, checked.

        Raises
        ------
        InvalidPublication
            If a part is gone, as it is once two newer states were published, or they are damaged.
        """
        held, limit = bytearray(), found.size + _PART_MARGIN
        for key in found.keys(self.keys):
            part = self._connection.call("GET", key, limit=limit)
            held += b"" if part is None else part
        if len(held) != found.size or sha256(held).hexdigest() != found.sha256:
            raise InvalidPublication(
                f"the state {found.name} of feed {self.keys.feed!r} is gone or damaged: "
                f"{len(held)} of {found.size} bytes, and not its SHA-256"
            )
        return bytes(held)

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


def pairs_of(flat: Sequence[Any]) -> dict[bytes, Any]:
    """Return the fields of a reply, which Redis gives as name, value, name, value, ...

    Examples
    --------
    >>> pairs_of([b"seq", b"3"])
    {b'seq': b'3'}
    """
    return dict(zip(flat[::2], flat[1::2], strict=True))
