"""Typed access to streams, consumer groups and other keys.

A range of IDs includes both bounds; `commands.after` makes an exclusive one.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Self

from workers.broker import commands
from workers.broker.pipeline import Argument
from workers.errors import StateLost, WorkerError
from workers.feed.keys import FIELD

Entry = tuple[bytes, list[bytes]]
"""ID and flat fields: [name, value, ...]. In replies it is a list instead of a tuple."""


class StreamInfo(NamedTuple):
    """XINFO STREAM."""

    length: int
    added: int | None  # entries ever added; None on Redis before 7, which does not count them
    first: Entry | None
    last: Entry | None
    last_id: bytes  # last generated ID; its entry may be deleted

    @property
    def gone(self) -> int:
        """Entries that were trimmed or deleted; 0 on Redis before 7."""
        return 0 if self.added is None else self.added - self.length

    @classmethod
    def parse(cls, reply: Sequence[Any]) -> Self:
        """Parse a reply."""
        fields = pairs_of(reply)
        added = fields.get(b"entries-added")
        return cls(
            int(fields[b"length"]), None if added is None else int(added), fields[b"first-entry"],
            fields[b"last-entry"], fields[b"last-generated-id"],
        )  # fmt: skip


class GroupInfo(NamedTuple):
    """A row of XINFO GROUPS."""

    name: bytes
    consumers: int
    pending: int  # entries delivered but not acknowledged
    last_delivered: bytes  # ID
    entries_read: int | None  # None on Redis before 7, or if Redis lost count
    lag: int | None  # undelivered entries; None in the same cases

    @classmethod
    def parse(cls, reply: Sequence[Any]) -> Self:
        """Parse one row of a reply."""
        row = pairs_of(reply)
        return cls(
            row[b"name"], row[b"consumers"], int(row[b"pending"]), row[b"last-delivered-id"],
            row.get(b"entries-read"), row.get(b"lag"),
        )  # fmt: skip


class Keys(ABC):
    """Reads and writes streams and other values, each named by its key."""

    @abstractmethod
    def call(self, *command: Argument) -> Any:
        """Return the unparsed reply to a command."""

    def call_all(self, sent: Iterable[commands.Command]) -> list[Any]:
        """Return the unparsed replies to commands; a `Connection` pipelines them."""
        return [self.call(*command) for command in sent]

    def ping(self, key: str) -> None:
        """Raise WorkerError unless the server of a key answers and lets this user read."""
        self.call(*commands.key_type(key))

    def exists(self, key: str) -> bool:
        """Return whether a key exists."""
        return bool(self.call("EXISTS", key))

    def key_type(self, key: str) -> str:
        """Return the type of a key; `none` if it does not exist."""
        return str(self.call(*commands.key_type(key)).decode())

    def has_stream(self, stream: str) -> bool:
        """Return whether a stream exists; unlike EXISTS, readers are permitted TYPE."""
        return self.key_type(stream) != "none"

    def length(self, stream: str) -> int:
        """Return the number of entries; 0 if the stream does not exist."""
        return int(self.call(commands.LENGTH, stream))

    def stream_info(self, stream: str) -> StreamInfo:
        """Return the XINFO of an existing stream."""
        return StreamInfo.parse(self.call(*commands.stream_info(stream)))

    def entries(
        self, stream: str, first: bytes = b"-", last: bytes = b"+", count: int | None = None
    ) -> list[Entry]:
        """Return the oldest `count` entries of a range."""
        return list(self.call(*commands.entries(stream, first, last, count)))

    def entry(self, stream: str, entry_id: bytes) -> Entry | None:
        """Return the entry with an ID; None if it was trimmed or deleted."""
        return next(iter(self.entries(stream, entry_id, entry_id)), None)

    def first_entry(self, stream: str, after: bytes | None = None) -> Entry | None:
        """Return the oldest entry, or the oldest one after an ID."""
        begin = b"-" if after is None else commands.after(after)
        return next(iter(self.entries(stream, begin, count=1)), None)

    def last_entries(
        self, stream: str, count: int, first: bytes = b"-", last: bytes = b"+"
    ) -> list[Entry]:
        """Return the newest `count` entries of a range, oldest first."""
        found: list[Entry] = self.call(*commands.last_entries(stream, count, first, last))
        return found[::-1]

    def last_entry(self, stream: str, last: bytes = b"+") -> Entry | None:
        """Return the newest entry up to a bound."""
        return next(iter(self.last_entries(stream, 1, last=last)), None)

    def newest_id(self, stream: str) -> bytes:
        """Return the ID of the newest entry; b"0-0" for an empty stream."""
        found = self.last_entry(stream)
        return b"0-0" if found is None else found[0]

    def wait_for_entries(self, stream: str, after: bytes, block_ms: int) -> list[Entry]:
        """Return the entries after an ID; wait for the first up to `block_ms`."""
        reply = self.call(*commands.read_after([(stream, after)], block_ms=block_ms))
        return reply[0][1] if reply else []

    def trim_before(self, stream: str, entry_id: bytes) -> int:
        """Trim all entries before an ID; return their number."""
        return int(self.call("XTRIM", stream, "MINID", "=", entry_id))

    def add_entry(self, stream: str, *fields: Argument, maxlen: int | None = None) -> None:
        """Append an entry; Redis assigns its ID. Trim the stream to about `maxlen` entries."""
        self.call(*commands.append(stream, fields, maxlen=maxlen))

    def put_only_entry(self, stream: str, *fields: Argument) -> None:
        """Append an entry, which becomes the only one of the stream."""
        self.call("XADD", stream, "MAXLEN", "=", 1, "*", *fields)

    def groups(self, stream: str) -> list[GroupInfo]:
        """Return the consumer groups of an existing stream."""
        return [GroupInfo.parse(row) for row in self.call("XINFO", "GROUPS", stream)]

    def value(self, key: str) -> bytes | None:
        """Return a string; None if it does not exist."""
        found: bytes | None = self.call("GET", key)
        return found

    def put_value(self, key: str, value: Argument, expires: int | None = None) -> None:
        """Write a string, which expires after `expires` seconds."""
        self.call("SET", key, value, *(() if expires is None else ("EX", expires)))

    def members(self, key: str) -> set[bytes]:
        """Return the members of a set."""
        return set(self.call("SMEMBERS", key))

    def memory(self, key: str, samples: int) -> int | None:
        """Return the approximate memory of a key in bytes; None if it does not exist."""
        found: int | None = self.call("MEMORY", "USAGE", key, "SAMPLES", samples)
        return found

    def delete(self, *keys: str) -> int:
        """Delete keys; return how many of them existed."""
        return int(self.call("DEL", *keys))


def pairs_of(flat: Sequence[Any]) -> dict[bytes, Any]:
    """Return the fields of a flat reply: [name, value, name, value, ...]."""
    return dict(zip(flat[::2], flat[1::2], strict=True))


class Group:
    """A consumer group, which need not exist."""

    def __init__(self, connection: Keys, stream: str, name: str) -> None:
        self._connection, self._stream, self._name = connection, stream, name

    def create(self, position: bytes, makes_stream: bool = False) -> bool:
        """Create the group if there is none; return whether this call did."""
        options = ("MKSTREAM",) if makes_stream else ()
        try:
            self._call("CREATE", position, *options)
        except WorkerError as error:
            if "BUSYGROUP" not in str(error):
                raise
            return False
        return True

    def destroy(self) -> None:
        """Delete the group, if there is one."""
        self._call("DESTROY")

    def move(self, position: bytes, entries_read: int | None = None) -> None:
        """Set the position, and the number of entries read up to it. Raises UnknownGroup."""
        counted = () if entries_read is None else ("ENTRIESREAD", entries_read)
        self._call("SETID", position, *counted)

    def info(self) -> GroupInfo | None:
        """Return the XINFO of the group; None if it does not exist."""
        return self._among(self._connection.groups(self._stream))

    def oldest_pending(self) -> bytes | None:
        """Return the ID of the oldest pending entry."""
        found: bytes | None = self._connection.call("XPENDING", self._stream, self._name)[1]
        return found

    def acknowledge(self, entry_id: bytes) -> None:
        """Acknowledge a pending entry."""
        self._connection.call("XACK", self._stream, self._name, entry_id)

    def delivered_before(self, consumer: str) -> list[Entry]:
        """Return the oldest pending entry of a consumer, if any."""
        reply = self._connection.call(*self._read(consumer, "0"))
        return list(reply[0][1]) if reply else []

    def next_entry(self, consumer: str) -> tuple[list[Entry], StreamInfo, GroupInfo]:
        """Read the state of stream and group, then deliver the next entry, if any; pipelined."""
        stream, groups, reply = self._connection.call_all(
            [
                commands.stream_info(self._stream),
                ("XINFO", "GROUPS", self._stream),
                self._read(consumer, ">"),
            ]
        )
        group = self._among([GroupInfo.parse(row) for row in groups])
        assert group is not None  # else the read would have failed
        return list(reply[0][1]) if reply else [], StreamInfo.parse(stream), group

    def idle_ms(self) -> dict[bytes, int]:
        """Return for how many milliseconds each consumer has been idle."""
        rows = self._connection.call("XINFO", "CONSUMERS", self._stream, self._name)
        return {row[b"name"]: int(row[b"idle"]) for row in map(pairs_of, rows)}

    def add_consumer(self, consumer: bytes) -> None:
        """Create a consumer unless it exists."""
        self._call("CREATECONSUMER", consumer)

    def remove_consumer(self, consumer: bytes) -> None:
        """Delete a consumer together with its pending entries."""
        self._call("DELCONSUMER", consumer)

    def _call(self, command: str, *arguments: Argument) -> None:
        self._connection.call("XGROUP", command, self._stream, self._name, *arguments)

    def _read(self, consumer: str, after: str) -> tuple[Argument, ...]:
        of = ("GROUP", self._name, consumer, "COUNT", 1, "STREAMS", self._stream, after)
        return ("XREADGROUP", *of)

    def _among(self, groups: list[GroupInfo]) -> GroupInfo | None:
        return next((one for one in groups if one.name == self._name.encode()), None)


def payload(entry: Sequence[Any]) -> bytes:
    """Return the payload of an entry of `out` or `met`; StateLost: it has none."""
    fields = entry[1]
    if FIELD.encode() not in fields[::2]:
        raise no_answer(entry)
    return bytes(fields[2 * fields[::2].index(FIELD.encode()) + 1])


def no_answer(entry: Sequence[Any]) -> StateLost:
    """Return the error for an entry of an output stream that this program did not write."""
    return StateLost(
        f"entry {entry[0].decode()} of an output stream is no answer: another program wrote it; "
        "online-svm verify tells what else differs"
    )
