"""Ask scorers: a request, and the wait for its answer."""

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import orjson

from workers.broker import commands
from workers.broker.client import TIMEOUT
from workers.broker.connection import Connection
from workers.feed.keys import FeedKeys
from workers.stop import Stop

MAX_WAITING_REQUESTS = 100_000
"""Approximate limit of waiting requests: beyond it, a new request removes the oldest one."""

_MAX_BLOCK_SECONDS = 1.0  # seconds that one read blocks, at most
_MIN_BLOCK_SECONDS = 0.01  # Redis 6.2 takes a millisecond for ever


@dataclass(frozen=True, slots=True)
class ScorerAnswer:
    """The answer of a scorer."""

    text: bytes  # JSON, as it was written; see `ReplyMessage`
    payload: bytes  # the answer in it, as the worker itself would give it
    state: str | None  # the published state it was computed with; None where there was none
    behind: int | None  # examples that the feed had learned since
    age: int | None  # milliseconds since it was published

    @classmethod
    def parse(cls, text: bytes) -> Self:
        """Return the answer that a scorer wrote.

        Examples
        --------
        >>> text = b'{"v":2,"state":"7-01","behind":3,"age":20,"answer":{"v":2}}'
        >>> ScorerAnswer.parse(text).payload
        b'{"v":2}'
        """
        head, _, payload = text.partition(b',"answer":')
        said = orjson.loads(head + b"}")
        return cls(text, payload[:-1], said["state"], said["behind"], said["age"])


class Asker:
    """Sends requests to the scorers of one feed, and waits for their answers."""

    def __init__(self, url: str, feed: str) -> None:
        self.keys = FeedKeys(feed)
        self._connection = Connection(url, Stop(), timeout=TIMEOUT + _MAX_BLOCK_SECONDS)

    def close(self) -> None:
        """Give up the connection."""
        self._connection.close()

    def send(self, rows: Sequence[bytes], ids: Sequence[str] | None = None) -> list[str]:
        """Send requests, features as JSON; return their ids, which are made up if not given."""
        sent = [uuid.uuid4().hex for _ in rows] if ids is None else list(ids)
        self._connection.call_all(
            commands.append(self.keys.requests, ("id", id, "x", x), maxlen=MAX_WAITING_REQUESTS)
            for id, x in zip(sent, rows, strict=True)
        )
        return sent

    def receive(self, ids: Sequence[str], timeout: float) -> dict[str, ScorerAnswer]:
        """Return the answers that come within so many seconds, by id; they stay where they are."""
        found: dict[str, ScorerAnswer] = {}
        until = time.monotonic() + timeout
        for id in ids:
            key = self.keys.reply(id)
            while id not in found:
                left = until - time.monotonic()
                seconds = round(max(_MIN_BLOCK_SECONDS, min(left, _MAX_BLOCK_SECONDS)), 3)
                text = self._connection.wait_for_element(key, seconds)
                if text is not None:
                    found[id] = ScorerAnswer.parse(text)
                elif left <= 0:
                    break
        return found

    def ask(self, rows: Sequence[bytes], timeout: float = 5.0) -> list[ScorerAnswer | None]:
        """Return the answer to each row in order; None where none came within so many seconds."""
        ids = self.send(rows)
        found = self.receive(ids, timeout)
        return [found.get(id) for id in ids]
