"""Pipelining: send commands on one connection, and read their replies later.

Replies arrive in the order of the commands. Reading one reply first reads those before it, and
keeps them for their callers. If the connection fails, all commands without a reply fail.

A command may have companions on its connection: ASKING before it, if a node of a cluster redirected
it, and WAIT after it, if replicas must acknowledge it.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import redis
from hiredis import pack_command
from redis.connection import PythonRespSerializer

from workers.broker import failpoints

Argument = bytes | memoryview | str | int | float

# Bytes beyond which an argument of a large command is sent as it is; packing would copy it.
_LARGE_ARGUMENT_BYTES = 1 << 16

_CLOSED_MESSAGE = "the connection was given up before the reply"

# The connection broke. Any other error is a reply.
_BROKEN = (redis.ConnectionError, redis.TimeoutError)

_WAIT_MS = 1000
"""Milliseconds that replicas have to acknowledge a command, before it is sent again."""


class Unacknowledged(redis.ResponseError):
    """Too few replicas have acknowledged a write in time; the server may have done it."""


@dataclass(slots=True, eq=False)
class PendingReply:
    """A command that was sent, and its reply."""

    command: tuple[Argument, ...]
    name: str  # of its failpoints
    reply: Any = None  # none until it was read
    # Why there is no reply; the command may have run nevertheless
    error: redis.RedisError | None = None
    limit: int | None = None  # bytes beyond which the reply is dropped and the connection closed
    cuts: int = 0  # how often Redis closed the connection before the reply was complete
    # Cuts after which the command is not sent again; None for any number
    most_cuts: int | None = None
    key: str | None = None  # a key of the slot that the command is about, if it names none itself
    # Whether its arguments may be large, or views of memory: they are sent without a copy
    is_large: bool = False
    # Replicas that must have acknowledged what the server wrote so far, by this command too, before
    # there is a reply
    replicas: int = 0
    url: str = ""  # of the server that it was sent to last
    is_asking: bool = False  # whether that server was named for this command alone
    redirects: int = 0  # redirects by nodes of a cluster since the last retry
    is_raised: bool = False  # whether its error was raised to the caller
    link: "Pipeline | None" = None  # on which it was sent last


class Pipeline:
    """The connection of a client, and the commands whose replies are not read yet."""

    def __init__(self, client: redis.Redis) -> None:
        # Any: redis-py has no types for some attributes that are used here.
        self.client: Any = client
        self._unread: deque[PendingReply] = deque()
        self._callbacks: dict[Argument, Any] = {}  # redis-py's parsers of replies, by command
        self._held: list[bytes] | None = None  # commands to write at once
        self._is_closed = False

    def send(self, sent: PendingReply) -> None:
        """Send a command; an error is kept in `sent`."""
        sent.link = self
        sent.error = redis.ConnectionError(_CLOSED_MESSAGE) if self._is_closed else None
        _reach("before", sent)
        if self._is_closed:
            return
        try:
            if sent.is_asking:
                self._write(("ASKING",))
            self._write(sent.command, sent.is_large)
            if sent.replicas:
                self._write(("WAIT", sent.replicas, _WAIT_MS))
        except redis.RedisError as error:
            # redis-py would reconnect, and take the next reply for the reply to an older command.
            self.close()
            sent.error = error
            return
        self._unread.append(sent)
        _reach("sent", sent)

    @property
    def is_awaiting(self) -> bool:
        """Whether a command has no reply yet."""
        return bool(self._unread)

    def awaits(self, sent: PendingReply) -> bool:
        """Return whether a command that was sent here has no reply yet."""
        return sent in self._unread

    @contextmanager
    def together(self) -> Iterator[None]:
        """Write small commands that are sent within the block at its end, at once."""
        self._held = []
        try:
            yield
        finally:
            held, self._held = self._held, None
            if held and not self._is_closed:
                try:
                    self.client.connection.send_packed_command((b"".join(held),))
                except redis.RedisError:
                    self.close()

    def read_until(self, upto: PendingReply) -> None:
        """Read replies until `upto` has one, and keep each with its command."""
        while upto in self._unread:
            self._read_next()

    def read_arrived(self) -> None:
        """Read the replies that have arrived, once `descriptor` can be read."""
        self._read_next()
        while self._unread and self.client.connection._parser._reader.has_data():
            self._read_next()

    def _read_next(self) -> None:
        """Read the next reply, and keep it with its command."""
        sent = self._unread[0]
        try:
            sent.reply = self._parsed(sent)
        except _BROKEN as error:
            self.close()
            sent.error = error
            sent.cuts += isinstance(error, redis.ConnectionError)
            return
        except redis.RedisError as error:
            sent.error = error
        else:
            _reach("after", sent)
        self._unread.popleft()

    def _parsed(self, sent: PendingReply) -> Any:
        self.client.connection._parser.limit = sent.limit
        if sent.is_asking or sent.replicas:
            return self._parsed_of_all(sent)
        return self._reply(sent.command[0])

    def _reply(self, name: Argument) -> Any:
        """Return the next reply as redis-py's client does, in a third of its time."""
        try:
            reply = self.client.connection._parser.read_response()
        except OSError as error:
            kind = redis.TimeoutError if isinstance(error, TimeoutError) else redis.ConnectionError
            raise kind(f"while a reply was read: {error}") from None
        if isinstance(reply, redis.ResponseError):
            raise reply
        found = self._callbacks.get(name, self)
        if found is self:
            found = self._callbacks[name] = self.client.response_callbacks.get(name)
        return reply if found is None else found(reply)

    def _parsed_of_all(self, sent: PendingReply) -> Any:
        """Read the replies to a command and its companions; return its own."""
        asked = self._reply_or_error("ASKING") if sent.is_asking else None
        reply = self._reply_or_error(sent.command[0])
        acknowledged = self._reply_or_error("WAIT") if sent.replicas else 0
        for error in (asked, reply, acknowledged):
            if isinstance(error, redis.RedisError):
                raise error
        if acknowledged < sent.replicas:
            raise Unacknowledged(
                f"NOREPLICAS {acknowledged} of {sent.replicas} replicas have acknowledged the write"
            )
        return reply

    def _reply_or_error(self, name: Argument) -> Any:
        """Return a reply or an error; raise only if the connection broke."""
        try:
            return self._reply(name)
        except _BROKEN:
            raise
        except redis.RedisError as error:
            return error

    @property
    def descriptor(self) -> int | None:
        """The descriptor of the connection, to wait for a reply with others; None once closed."""
        sock = None if self._is_closed else self.client.connection._sock
        return None if sock is None else sock.fileno()

    def close(self) -> None:
        """Close the connection; commands without a reply fail."""
        for sent in self._unread:
            sent.error = redis.ConnectionError(_CLOSED_MESSAGE)
        self._unread.clear()
        self._is_closed = True
        self.client.close()
        self.client.connection_pool.disconnect()

    def _write(self, command: tuple[Argument, ...], is_large: bool = False) -> None:
        connection = self.client.connection
        if is_large:
            packer: Any = PythonRespSerializer(_LARGE_ARGUMENT_BYTES, connection.encoder.encode)
            connection.send_packed_command(packer.pack(*command))
            return
        # Its type hint is a tuple of one.
        packed = pack_command(command)  # type: ignore[arg-type]
        if self._held is None:
            connection.send_packed_command((packed,))
        else:
            self._held.append(packed)


def _reach(side: str, sent: PendingReply) -> None:
    if failpoints.chosen is not None:
        failpoints.chosen.reach(f"{side}-{sent.name}")


_SCRIPTS = ("EVAL", "EVALSHA")
_STREAM_READS = ("XREAD", "XREADGROUP")
_SUBCOMMANDS = ("XINFO", "XGROUP", "MEMORY")
_WITHOUT_KEY = frozenset(["INFO", "SCAN", "CONFIG", "PING", "ECHO", "CLIENT", "ROLE", "TIME"])


def key_of(command: Sequence[Argument]) -> bytes | None:
    """Return the first key of a command; None if it has none.

    Examples
    --------
    >>> key_of(("EVALSHA", "0" * 40, 2, "osvm:{f}:st", "osvm:{f}:in", 7))
    b'osvm:{f}:st'
    >>> key_of(("XINFO", "STREAM", "osvm:{f}:out")), key_of(("INFO", "server"))
    (b'osvm:{f}:out', None)
    """
    name = command[0] if command else "PING"
    if name in _WITHOUT_KEY:
        return None
    if name in _SCRIPTS:
        place = 3
    elif name in _STREAM_READS:
        place = list(command).index("STREAMS") + 1
    else:
        place = 2 if name in _SUBCOMMANDS else 1
    key = command[place]
    return key.encode() if isinstance(key, str) else bytes(key)  # type: ignore[arg-type]  # no number
