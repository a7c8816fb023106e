"""A client of scorers: send requests, and wait for their answers."""

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

_MAX_BLOCK_SECONDS = 1.0  # of one read
_MIN_BLOCK_SECONDS = 0.01  # Redis 6.2 blocks forever if it is given a millisecond


@dataclass(frozen=True, slots=True)
class ScorerAnswer:
    """The answer of a scorer."""

    text: bytes  # JSON as stored; see `ReplyMessage`
    payload: bytes  # the answer in it, as the feed's worker would give it
    state: str | None  # name of the published state that it was computed with, if any
    behind: int | None  # examples that the feed had learned since that state
    age: int | None  # milliseconds since that state was published

    @classmethod
    def parse(cls, text: bytes) -> Self:
        """Parse the answer that a scorer wrote.

        Examples
        --------
        >>> text = b'{"v":2,"state":"7-01","behind":3,"age":20,"answer":{"v":2}}'
        >>> ScorerAnswer.parse(text).payload
        b'{"v":2}'
        """
        head, _, payload = text.partition(b',"answer":')
        fields = orjson.loads(head + b"}")
        return cls(text, payload[:-1], fields["state"], fields["behind"], fields["age"])


class Asker:
    """Sends requests to the scorers of one feed, and waits for their answers."""

    def __init__(self, url: str, feed: str) -> None:
        self.keys = FeedKeys(feed)
        self._connection = Connection(url, Stop(), timeout=TIMEOUT + _MAX_BLOCK_SECONDS)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def send(self, rows: Sequence[bytes], ids: Sequence[str] | None = None) -> list[str]:
        """Send rows of features as JSON; return the ids of the requests, by default new ones."""
        sent = [uuid.uuid4().hex for _ in rows] if ids is None else list(ids)
        self._connection.call_all(
            commands.append(self.keys.requests, ("id", id, "x", x), maxlen=MAX_WAITING_REQUESTS)
            for id, x in zip(sent, rows, strict=True)
        )
        return sent

    def receive(self, ids: Sequence[str], timeout: float) -> dict[str, ScorerAnswer]:
        """Return the answers that arrive within `timeout` seconds, by id; they stay in Redis."""
        found: dict[str, ScorerAnswer] = {}
        deadline = time.monotonic() + timeout
        for id in ids:
            key = self.keys.reply(id)
            while id not in found:
                left = deadline - time.monotonic()
                seconds = round(max(_MIN_BLOCK_SECONDS, min(left, _MAX_BLOCK_SECONDS)), 3)
                text = self._connection.wait_for_element(key, seconds)
                if text is not None:
                    found[id] = ScorerAnswer.parse(text)
                elif left <= 0:
                    break
        return found

    def ask(self, rows: Sequence[bytes], timeout: float = 5.0) -> list[ScorerAnswer | None]:
        """Return the answer to each row, in order; None if it did not arrive in time."""
        ids = self.send(rows)
        found = self.receive(ids, timeout)
        return [found.get(id) for id in ids]
