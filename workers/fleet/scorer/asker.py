"""Ask scorers: a request, and the wait for its answer."""

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from workers.broker.client import TIMEOUT
from workers.broker.connection import Connection
from workers.feed.keys import FeedKeys
from workers.stop import Stop

MOST_WAITING = 100_000
"""Requests that wait, about: a new one then pushes the oldest out, where nobody answers."""

_ONCE = 1.0  # seconds that one read blocks, at most


@dataclass(frozen=True, slots=True)
class Answer:
    """What a scorer answered.

    Attributes
    ----------
    payload : bytes
        JSON; see docs/messages.md.
    state : str or None
        The published state it was computed with; None where there was none.
    behind, age : int or None
        Examples the feed had learned since, and milliseconds since it was published.
    """

    payload: bytes
    state: str | None
    behind: int | None
    age: int | None

    def line(self) -> bytes:
        """Return the answer as one JSON object, its payload as it is.

        Examples
        --------
        >>> Answer(b'{"v":2}', "7-01234567", 3, 20).line()
        b'{"state":"7-01234567","behind":3,"age":20,"answer":{"v":2}}'
        """
        head = orjson.dumps({"state": self.state, "behind": self.behind, "age": self.age})
        return head[:-1] + b',"answer":' + self.payload + b"}"


class Asker:
    """Sends requests to the scorers of one feed, and waits for their answers.

    Parameters
    ----------
    url, feed : str
    """

    def __init__(self, url: str, feed: str) -> None:
        self.keys = FeedKeys(feed)
        self._connection = Connection(url, Stop(), timeout=TIMEOUT + _ONCE)

    def close(self) -> None:
        """Give up the connection."""
        self._connection.close()

    def send(self, rows: Sequence[bytes], ids: Sequence[str] | None = None) -> list[str]:
        """Send requests, features as JSON; return their ids, which are made up if not given."""
        sent = [uuid.uuid4().hex for _ in rows] if ids is None else list(ids)
        self._connection.call_all(
            ("XADD", self.keys.requests, "MAXLEN", "~", MOST_WAITING, "*", "id", id, "x", x)
            for id, x in zip(sent, rows, strict=True)
        )
        return sent

    def receive(self, ids: Sequence[str], timeout: float) -> dict[str, Answer]:
        """Return the answers that come within so many seconds, by id; they stay where they are."""
        found: dict[str, Answer] = {}
        until = time.monotonic() + timeout
        while missing := [id for id in ids if id not in found]:
            left = until - time.monotonic()
            block = max(1, int(1000 * min(left, _ONCE)))
            keys = [self.keys.reply(id) for id in missing]
            reply = self._connection.call(
                "XREAD", "COUNT", 1, "BLOCK", block, "STREAMS", *keys, *["0-0"] * len(keys)
            )
            for key, entries in reply or ():
                found[missing[keys.index(key.decode())]] = _answer(entries[0][1])
            if left <= 0:
                break
        return found

    def ask(self, rows: Sequence[bytes], timeout: float = 5.0) -> list[Answer | None]:
        """Return the answer to each row in order; None where none came within so many seconds."""
        ids = self.send(rows)
        found = self.receive(ids, timeout)
        return [found.get(id) for id in ids]


def _answer(fields: Sequence[bytes]) -> Answer:
    given = dict(zip(fields[::2], fields[1::2], strict=True))
    state, behind, age = (given.get(name) for name in (b"state", b"behind", b"age"))
    return Answer(
        given[b"p"],
        None if state is None else state.decode(),
        None if behind is None else int(behind),
        None if age is None else int(age),
    )
