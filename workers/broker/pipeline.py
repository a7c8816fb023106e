"""Pipelining: send commands on one connection, and read their replies later.

Replies arrive in the order of the commands. Reading one reply first reads those before it, and
keeps them for their callers. If the connection fails, all commands without a reply fail.

ASKING precedes a command that a cluster node redirected with ASK; WAIT follows one that replicas
must acknowledge.
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

# With `is_large`, longer arguments are sent without a copy into the packed command.
_LARGE_ARGUMENT_BYTES = 1 << 16

_CLOSED_MESSAGE = "the connection was given up before the reply"

# Errors of the connection; any other error is a reply.
_BROKEN = (redis.ConnectionError, redis.TimeoutError)

_WAIT_MS = 1000  # milliseconds for replicas to acknowledge a command, before it is sent again


class Unacknowledged(redis.ResponseError):
    """Too few replicas acknowledged a command in time; the server may have run it."""


@dataclass(slots=True, eq=False)
class PendingReply:
    """A command that was sent, and its reply."""

    command: tuple[Argument, ...]
    name: str  # of its failpoints
    reply: Any = None  # once it was read
    error: redis.RedisError | None = None  # why there is no reply; the command may still have run
    limit: int | None = None  # of the reply, in bytes; beyond it the connection is closed
    cuts: int = 0  # connections closed before the reply was complete
    max_cuts: int | None = None  # cuts after which the command is not sent again; None: no limit
    key: str | None = None  # a key of the command's slot, if the command has no key
    is_large: bool = False  # whether arguments are sent without a copy; they may be memory views
    replicas: int = 0  # that must acknowledge this write, and all earlier ones, before the reply
    url: str = ""  # of the server that it was last sent to
    is_ask: bool = False  # whether it was sent there after an ASK redirect
    redirects: int = 0  # since the last retry
    has_failed: bool = False  # whether `Unavailable` was raised to the caller
    pipeline: "Pipeline | None" = None  # on which it was last sent


class Pipeline:
    """A client's connection, and the sent commands whose replies are unread."""

    def __init__(self, client: redis.Redis) -> None:
        # Any: redis-py has no types for some attributes that are used here.
        self.client: Any = client
        self._unread: deque[PendingReply] = deque()
        self._callbacks: dict[Argument, Any] = {}  # redis-py's response callbacks, by command
        self._buffered: list[bytes] | None = None  # packed commands, within `batched`
        self._is_closed = False

    def send(self, sent: PendingReply) -> None:
        """Send a command; store an error in `sent`."""
        sent.pipeline = self
        sent.error = redis.ConnectionError(_CLOSED_MESSAGE) if self._is_closed else None
        _reach("before", sent)
        if self._is_closed:
            return
        try:
            if sent.is_ask:
                self._write(("ASKING",))
            self._write(sent.command, sent.is_large)
            if sent.replicas:
                self._write(("WAIT", sent.replicas, _WAIT_MS))
        except redis.RedisError as error:
            # If redis-py reconnected, replies would be matched to the wrong commands.
            self.close()
            sent.error = error
            return
        self._unread.append(sent)
        _reach("sent", sent)

    @property
    def is_awaiting(self) -> bool:
        """Whether a reply is unread."""
        return bool(self._unread)

    def awaits(self, sent: PendingReply) -> bool:
        """Return whether the reply to this command is unread."""
        return sent in self._unread

    @contextmanager
    def batched(self) -> Iterator[None]:
        """Buffer the small commands sent within the block; write all at its end."""
        self._buffered = []
        try:
            yield
        finally:
            buffered, self._buffered = self._buffered, None
            if buffered and not self._is_closed:
                try:
                    self.client.connection.send_packed_command((b"".join(buffered),))
                except redis.RedisError:
                    self.close()

    def read_until(self, last: PendingReply) -> None:
        """Read replies up to the reply to `last`, and store each with its command."""
        while last in self._unread:
            self._read_next()

    def read_arrived(self) -> None:
        """Read the replies that have arrived; `descriptor` must be readable."""
        self._read_next()
        while self._unread and self.client.connection._parser._reader.has_data():
            self._read_next()

    def _read_next(self) -> None:
        sent = self._unread[0]
        try:
            sent.reply = self._read_reply(sent)
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

    def _read_reply(self, sent: PendingReply) -> Any:
        self.client.connection._parser.limit = sent.limit
        if sent.is_ask or sent.replicas:
            return self._reply_within_companions(sent)
        return self._reply(sent.command[0])

    def _reply(self, name: Argument) -> Any:
        """Return the next reply, parsed as by redis-py's client but in a third of its time."""
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

    def _reply_within_companions(self, sent: PendingReply) -> Any:
        """Read the replies to ASKING, the command and WAIT; return that to the command."""
        asking = self._reply_or_error("ASKING") if sent.is_ask else None
        reply = self._reply_or_error(sent.command[0])
        acknowledged = self._reply_or_error("WAIT") if sent.replicas else 0
        for error in (asking, reply, acknowledged):
            if isinstance(error, redis.RedisError):
                raise error
        if acknowledged < sent.replicas:
            raise Unacknowledged(
                f"NOREPLICAS {acknowledged} of {sent.replicas} replicas have acknowledged the write"
            )
        return reply

    def _reply_or_error(self, name: Argument) -> Any:
        """Return the next reply, even if it is an error; raise only if the connection broke."""
        try:
            return self._reply(name)
        except _BROKEN:
            raise
        except redis.RedisError as error:
            return error

    @property
    def descriptor(self) -> int | None:
        """The descriptor that becomes readable with a reply; None once closed."""
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
        packed = pack_command(command)  # type: ignore[arg-type]  # its type hint is a tuple of one
        if self._buffered is None:
            connection.send_packed_command((packed,))
        else:
            self._buffered.append(packed)


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
