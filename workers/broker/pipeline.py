"""Commands on one client, whose replies may be read later: Redis works on them meanwhile.

Replies come in the order of the commands. So whoever asks for one has those before it read and kept
for whoever asks for them. A connection that fails takes all that was under way with it.
"""

import os
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import redis
from redis.connection import PythonRespSerializer

from workers import failpoints

Argument = bytes | memoryview | str | int | float

# Seconds to look for a reply before sleeping until it comes. Most commands take less, and waking
# up takes longer than that; with one processor only, Redis needs it meanwhile.
_SPIN_SECONDS = 200e-6 if (os.cpu_count() or 1) > 1 else 0.0


# Bytes of an argument that is sent as it stands: packing would copy it several times.
_LARGE = 1 << 16

_GIVEN_UP = "the connection was given up before the reply"

# The connection was there, and is not any more; any other error is a reply.
_BROKEN = (redis.ConnectionError, redis.TimeoutError)


@dataclass(slots=True, eq=False)
class Sent:
    """A command, and what became of it.

    Attributes
    ----------
    command : tuple of arguments
    name : str
        Of its failpoints.
    reply : object
        Once it was read.
    error : RedisError or None
        Why there is no reply; the command may have run all the same.
    limit : int or None
        Bytes of the reply from which on it is given up, and the connection with it.
    cuts : int
        Times Redis closed the connection instead of giving the whole reply.
    """

    command: tuple[Argument, ...]
    name: str
    reply: Any = None
    error: redis.RedisError | None = None
    limit: int | None = None
    cuts: int = 0


class Pipeline:
    """The one connection of a client, and the commands whose replies are still to be read.

    Parameters
    ----------
    client : redis.Redis
        With a single connection.
    """

    def __init__(self, client: redis.Redis) -> None:
        # Any: redis-py leaves some of what is used here untyped.
        self.client: Any = client
        self._unread: deque[Sent] = deque()
        self._is_closed = False

    def send(self, sent: Sent) -> None:
        """Send a command; an error is kept as its outcome."""
        sent.error = redis.ConnectionError(_GIVEN_UP) if self._is_closed else None
        _reach("before", sent)
        if self._is_closed:
            return
        try:
            self._write(sent.command)
        except redis.RedisError as error:
            # redis-py would connect anew, and take the next reply for the oldest that is missing.
            self.close()
            sent.error = error
            return
        self._unread.append(sent)
        _reach("sent", sent)

    def read_until(self, upto: Sent) -> None:
        """Read and keep the replies up to that to a command, unless it was read."""
        while upto in self._unread:
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

    def _parsed(self, sent: Sent) -> Any:
        connection = self.client.connection
        connection._parser.limit = sent.limit
        return self.client.parse_response(connection, sent.command[0])

    def spin(self) -> None:
        """Return when the next reply that is still to come begins to, or should be slept for.

        Its error, if it has one, is left to `read_until`.
        """
        until = time.monotonic() + _SPIN_SECONDS
        with suppress(redis.RedisError):
            while self._unread and time.monotonic() < until:
                if self.client.connection.can_read(0):
                    return
                os.sched_yield()  # Redis may be waiting for this very processor

    def close(self) -> None:
        """Give up the connection, and the replies that are still to come."""
        for sent in self._unread:
            sent.error = redis.ConnectionError(_GIVEN_UP)
        self._unread.clear()
        self._is_closed = True
        self.client.close()
        self.client.connection_pool.disconnect()

    def _write(self, command: tuple[Argument, ...]) -> None:
        connection = self.client.connection
        if any(
            isinstance(argument, bytes | memoryview) and len(argument) > _LARGE
            for argument in command
        ):
            packer: Any = PythonRespSerializer(_LARGE, connection.encoder.encode)
            connection.send_packed_command(packer.pack(*command))
        else:
            connection.send_command(*command)


def _reach(side: str, sent: Sent) -> None:
    if failpoints.chosen is not None:
        failpoints.chosen.reach(f"{side}-{sent.name}")
