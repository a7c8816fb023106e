"""A connection to Redis whose replies are awaited in an event loop.

Commands and replies go through a `Connection`; the event loop watches its descriptors. Connecting,
which may block, runs in a thread; meanwhile each call fails at once.
"""

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from itertools import repeat
from typing import Any, NamedTuple

from workers.broker.client import delays
from workers.broker.connection import Connection
from workers.broker.pipeline import Argument, PendingReply
from workers.errors import Unavailable, WorkerError

_CHECK_SECONDS = 0.5  # between two checks for overdue replies


class _Call(NamedTuple):
    sent: PendingReply
    reply: "asyncio.Future[Any]"
    deadline: float  # by `time.monotonic`


class AwaitedConnection:
    """Sends the commands of many requests on one connection; each awaits its own reply.

    After a lost reply a command is not sent again, since it may have run. The connection must have
    `retry_timeout` 0 and no other user; `key` determines the server.
    """

    def __init__(self, connection: Connection, key: str) -> None:
        self._connection, self._key = connection, key
        self._loop = asyncio.get_running_loop()
        self._calls: deque[_Call] = deque()
        self._watched: set[int] = set()
        self._trouble: str | None = "Redis is not connected yet"
        self._connecting = self._loop.create_task(self._connect())
        self._checking = self._loop.create_task(self._check_overdue())

    async def close(self) -> None:
        """Close the connection."""
        tasks = self._checking, self._connecting
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._unwatch()
        self._connection.close()

    async def connected(self, timeout: float) -> None:
        """Wait until Redis answers, for at most `timeout` seconds."""
        await asyncio.wait([self._connecting], timeout=timeout)

    def check(self) -> None:
        """Raise Unavailable while Redis does not answer."""
        if self._trouble is not None:
            raise Unavailable(self._trouble)

    async def call(self, *command: Argument) -> Any:
        """Return the reply to a command.

        Raises Unavailable if Redis does not answer, or refuses for now; the command may have run.
        Raises another WorkerError if Redis refuses permanently.
        """
        return await self._send([command])[0]

    async def call_all(self, commands: Sequence[Sequence[Argument]]) -> list[Any]:
        """Return the reply to each command, as `call`; pipelined."""
        return [await reply for reply in self._send(commands)]

    async def try_all(self, commands: Sequence[Sequence[Argument]]) -> list[Any]:
        """Return the reply to each command, or its error, as `call_all`."""
        return await asyncio.gather(*self._send(commands), return_exceptions=True)

    def _send(self, commands: Sequence[Sequence[Argument]]) -> "list[asyncio.Future[Any]]":
        """Send commands in one system call; return the futures of their replies."""
        replies: list[asyncio.Future[Any]] = [self._loop.create_future() for _ in commands]
        if self._trouble is not None:
            for reply in replies:
                _fail(reply, Unavailable(self._trouble))
            return replies
        sent = self._connection.send_all(commands)
        deadline = time.monotonic() + self._connection.timeout
        self._calls.extend(map(_Call, sent, replies, repeat(deadline)))
        for descriptor in self._connection.descriptors:
            if descriptor not in self._watched:
                self._watched.add(descriptor)
                self._loop.add_reader(descriptor, self._arrived, descriptor)
        if any(one.error is not None for one in sent):
            self._resolve()
        return replies

    def _arrived(self, descriptor: int) -> None:
        if descriptor in self._connection.descriptors:
            self._connection.read_arrived({descriptor})
            self._resolve()
        else:  # without a pending reply, a readable descriptor means that Redis closed it
            self._reconnect("Redis closed the connection")

    def _resolve(self) -> None:
        """Resolve the futures whose replies have been read, in order."""
        while self._calls and self._connection.has_reply(self._calls[0].sent):
            sent, reply, _ = self._calls.popleft()
            try:
                found = self._connection.receive(sent)
            except WorkerError as error:
                _fail(reply, error)
                if isinstance(error, Unavailable):
                    self._reconnect(str(error))
                    return
            else:
                if not reply.done():
                    reply.set_result(found)

    def _reconnect(self, reason: str) -> None:
        """Fail all pending calls, and connect again."""
        self._trouble = reason
        self._unwatch()
        self._connection.close()
        calls, self._calls = self._calls, deque()
        for call in calls:
            _fail(call.reply, Unavailable(reason))
        self._connecting = self._loop.create_task(self._connect())

    async def _connect(self) -> None:
        for delay in delays():
            try:
                await asyncio.to_thread(self._connection.ping, self._key)
            except WorkerError as error:
                self._trouble = str(error)
                await asyncio.sleep(delay)
            else:
                self._trouble = None
                return

    async def _check_overdue(self) -> None:
        while True:
            await asyncio.sleep(_CHECK_SECONDS)
            if self._calls and self._calls[0].deadline < time.monotonic():
                self._reconnect("Redis does not answer in time")

    def _unwatch(self) -> None:
        for descriptor in self._watched:
            self._loop.remove_reader(descriptor)
        self._watched.clear()


def _fail(reply: "asyncio.Future[Any]", error: WorkerError) -> None:
    if not reply.done():
        reply.set_exception(error)
        reply.exception()  # marks it as retrieved: its caller may be gone
