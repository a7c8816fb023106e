"""Commands on one client, whose replies may be read later: Redis works on them meanwhile.

Replies come in the order of the commands. So before another command is sent, a reply that is still
to come is read and kept for whoever asks for it.
"""

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import redis

from workers import failpoints

Argument = bytes | str | int | float

# Seconds to look for a reply before sleeping until it comes. Most commands take less, and waking
# up takes longer than that; with one processor only, Redis needs it meanwhile.
_LOOK = 200e-6 if (os.cpu_count() or 1) > 1 else 0.0


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
    """

    command: tuple[Argument, ...]
    name: str
    reply: Any = None
    error: redis.RedisError | None = None


class Wire:
    """The one connection of a client; at most one reply is still to be read.

    Parameters
    ----------
    client : redis.Redis
        With a single connection.
    """

    def __init__(self, client: redis.Redis) -> None:
        # Any: redis-py leaves some of what is used here untyped.
        self.client: Any = client
        self._unread: Sent | None = None

    def send(self, sent: Sent) -> None:
        """Send a command; an error is kept as its outcome."""
        self.settle()
        sent.error = None
        _reach("before", sent)
        try:
            self.client.connection.send_command(*sent.command)
        except redis.RedisError as error:
            sent.error = error
            return
        self._unread = sent
        _reach("sent", sent)

    def settle(self) -> None:
        """Read and keep the reply that is still to come, if any."""
        sent, self._unread = self._unread, None
        if sent is None:
            return
        try:
            sent.reply = self.client.parse_response(self.client.connection, sent.command[0])
        except redis.RedisError as error:
            sent.error = error
        else:
            _reach("after", sent)

    def look(self) -> None:
        """Return when the reply that is still to come begins to, or should be slept for.

        Its error, if it has one, is left to `settle`.
        """
        until = time.monotonic() + _LOOK
        with suppress(redis.RedisError):
            while self._unread is not None and time.monotonic() < until:
                if self.client.connection.can_read(0):
                    return
                os.sched_yield()  # Redis may be waiting for this very processor

    def close(self) -> None:
        """Give up the connection, and the reply that is still to come."""
        sent, self._unread = self._unread, None
        if sent is not None:
            sent.error = redis.ConnectionError("the connection was given up before the reply")
        self.client.close()
        self.client.connection_pool.disconnect()


def _reach(side: str, sent: Sent) -> None:
    if failpoints.chosen is not None:
        failpoints.chosen.reach(f"{side}-{sent.name}")
