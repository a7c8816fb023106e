"""The requests of a feed, which its scorers share, and their answers.

Scorers read requests through one consumer group. A request is pending under the name of its scorer
until it is answered. If the scorer dies, the others take its requests over after a while. The
script that writes an answer checks that the request is still pending, so each is answered once.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from workers.broker import feed_reader
from workers.broker.client import TIMEOUT, UnknownGroup
from workers.broker.commands import Script
from workers.broker.connection import Connection
from workers.broker.large_replies import ENTRY_SIZE, BatchSize
from workers.broker.pipeline import PendingReply
from workers.broker.streams import Entry, Group, pairs_of
from workers.errors import ReadTooLarge, Trouble
from workers.feed.keys import SCORERS, FeedKeys
from workers.feed.position import parse_id, previous_id
from workers.feed.state import Publication
from workers.stop import Stop

_ANSWER = Script.load("answer")
_LEAVE = Script.load("leave_group", name="leave")

FORGET_SCORER_AFTER_MS = 3_600_000
"""Milliseconds after which an idle scorer is removed from the group."""

BATCH_BYTES = 1 << 24
"""Bytes of requests that one read takes, approximately."""

MAX_REQUEST_BYTES = 1 << 20
"""Largest request in bytes, until the settings of the feed give the bound."""


class Request(NamedTuple):
    """A request that this scorer is to answer."""

    entry: Entry  # ID and fields
    deliveries: int = 1  # how often it was given to a scorer, this time included
    size: int | None = None  # bytes, if the request is too large; its fields are then left out


class AnsweredRequest(NamedTuple):
    """The answer to one request."""

    entry: bytes  # ID of the request's entry
    request: str  # the request's own id, which names the key of the answer
    payload: bytes  # the answer, as the worker itself would give it


@dataclass(frozen=True, slots=True)
class QueueStatus:
    """The feed and its newest published state, at one moment."""

    n: int | None  # examples learned, as committed; None if the feed does not exist
    config_hash: str
    newest: Mapping[bytes, bytes]  # fields of the published state; empty without one
    now: int  # milliseconds by the clock of Redis

    def behind(self, used: Publication) -> int:
        """Return how many examples the feed has learned since the state `used`."""
        return (self.n or 0) - used.n

    def age(self, used: Publication) -> int:
        """Return milliseconds since the state `used` was published."""
        return max(0, self.now - used.at)


class Claim(NamedTuple):
    """The requests that one read gave this scorer."""

    requests: list[Request]  # empty if there was none
    standing: QueueStatus  # of the feed, read after the requests
    is_full: bool  # whether more requests may be waiting


@dataclass(frozen=True, slots=True)
class PendingRead:
    """A read that was sent; `RequestQueue.receive` returns its requests."""

    entries: PendingReply
    standing: Sequence[PendingReply]
    count: int


class RequestQueue:
    """The requests of one feed, for one scorer; `consumer` is its unique name.

    A read returns at most `batch` requests, those beyond `most_bytes` without their fields.
    """

    def __init__(
        self,
        url: str,
        feed: str,
        consumer: str,
        stop: Stop,
        retry_timeout: float | None = 0.0,
        batch: int = 256,
    ) -> None:
        self.keys, self._consumer = FeedKeys(feed), consumer
        self._block_ms = feed_reader.BLOCK_MS  # the longest wait of `read`
        self._connection = Connection(url, stop, retry_timeout, TIMEOUT + self._block_ms / 1000)
        self._batch, self.most_bytes = BatchSize(batch, BATCH_BYTES), MAX_REQUEST_BYTES

    @property
    def trouble(self) -> Trouble | None:
        """Why Redis does not answer; None if the last attempt succeeded."""
        return self._connection.trouble

    def retry_forever(self) -> None:
        """From now on, retry until a stop is requested."""
        self._connection.retry_timeout = None

    def begin(self) -> None:
        """Create the group if there is none, from the oldest request on; remove idle scorers."""
        group = Group(self._connection, self.keys.requests, SCORERS)
        group.create(b"0", makes_stream=True)
        for consumer, idle_ms in group.idle_ms().items():
            if idle_ms > FORGET_SCORER_AFTER_MS:
                self.leave(consumer)

    def read(self) -> Claim:
        """Take new requests; wait for the first one."""
        return self.receive(self.send_read(self._block_ms))

    def send_read(self, block_ms: int | None = None) -> PendingRead:
        """Send a read of new requests, which waits up to `block_ms`, and one of the status."""
        waiting = () if block_ms is None else ("BLOCK", block_ms)
        count = self._batch.count
        sent = self._connection.send(
            "XREADGROUP", "GROUP", SCORERS, self._consumer, "COUNT", count, *waiting,
            "STREAMS", self.keys.requests, ">", limit=max(2 * BATCH_BYTES, 2 * self.most_bytes),
        )  # fmt: skip
        return PendingRead(sent, self._send_standing(), count)

    def receive(self, asked: PendingRead) -> Claim:
        """Return the requests of a read; they are now pending for this scorer."""
        try:
            entries = self._received(asked)
        except ReadTooLarge as error:
            # The connection is closed, and the commands that were sent after the read are lost.
            self._batch.halve(error)
            return Claim(self._held(), self.standing(), False)
        requests = [self._measured(entry) for entry in entries]
        return Claim(requests, self._standing(asked.standing), len(entries) >= asked.count)

    def _received(self, asked: PendingRead) -> list[Entry]:
        try:
            reply = self._connection.receive(asked.entries)
        except UnknownGroup:
            self.begin()
            return []
        entries: list[Entry] = reply[0][1] if reply else []
        if entries:
            self._batch.first_of(entries)
        return entries

    def claim(self, idle_ms: int) -> list[Request]:
        """Take over requests that another scorer has not answered for some time.

        A request that was taken over before is taken alone: if it kills this scorer too, the
        deliveries of other requests do not grow.
        """
        key = self.keys.requests
        try:
            pending = self._connection.call(
                "XPENDING", key, SCORERS, "IDLE", idle_ms, "-", "+", self._batch.count
            )
        except UnknownGroup:
            self.begin()
            return []
        given = {found[0]: int(found[3]) for found in pending}
        chosen = [entry for entry, times in given.items() if times == 1] or list(given)[:1]
        return _first_of_size(
            self._fetched(entry, given[entry] + 1)
            for entry in chosen
            if self._connection.call(
                "XCLAIM", key, SCORERS, self._consumer, idle_ms, entry,
                "RETRYCOUNT", given[entry] + 1, "JUSTID",
            )
        )  # fmt: skip

    def length(self) -> int:
        """Return how many requests have no answer yet."""
        return self._connection.length(self.keys.requests)

    def standing(self) -> QueueStatus:
        """Return the status of the feed, with its newest published state."""
        return self._standing(self._send_standing())

    def _send_standing(self) -> list[PendingReply]:
        st, pub = self.keys.state, self.keys.published
        commands = [("HMGET", st, "n", "config_hash"), ("HGETALL", pub), ("TIME",)]
        return [self._connection.send(*command, key=st) for command in commands]

    def _standing(self, sent: Sequence[PendingReply]) -> QueueStatus:
        (n, config), newest, (seconds, micros) = map(self._connection.receive, sent)
        now = int(seconds) * 1000 + int(micros) // 1000
        config_hash = (config or b"").decode(errors="replace")
        learned = int(n) if n is not None and n.isdigit() else None
        return QueueStatus(learned, config_hash, pairs_of(newest), now)

    def send_answers(
        self, answers: Sequence[tuple[AnsweredRequest, bytes]], since: int, most: int, keep: int
    ) -> PendingReply:
        """Send answers, each with its bytes; each is written once. `written` returns the number.

        The staleness of the state was measured at `since`, by the clock of Redis; more than `most`
        milliseconds later nothing is written. An answer is kept for `keep` seconds.
        """
        keys = [self.keys.requests, *(self.keys.reply(reply.request) for reply, _ in answers)]
        pairs = [part for reply, text in answers for part in (reply.entry, text)]
        return self._connection.send_script(_ANSWER, keys, [SCORERS, since, most, keep, *pairs])

    def written(self, sent: PendingReply) -> int | None:
        """Return how many answers were written; None if the staleness was measured too long ago."""
        result = self._connection.receive_script(_ANSWER, sent)
        if result[0] == b"GONE":
            self.begin()  # the next read gets the remaining requests
            return 0
        return None if result[0] == b"LATE" else int(result[1])

    def leave(self, name: bytes | None = None) -> bool:
        """Remove this scorer, or scorer `name`, from the group, unless it has requests."""
        arguments = [SCORERS, name or self._consumer]
        return bool(self._connection.evaluate(_LEAVE, [self.keys.requests], arguments))

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _held(self) -> list[Request]:
        """Return the requests pending for this scorer, read one by one; see `_fetched`."""
        pending = self._connection.call(
            "XPENDING", self.keys.requests, SCORERS, "-", "+", self._batch.count, self._consumer
        )
        return _first_of_size(self._fetched(found[0], int(found[3])) for found in pending)

    def _fetched(self, entry: bytes, deliveries: int) -> Request:
        """Return one request by its ID; without its fields if it is too large, or trimmed."""
        key = self.keys.requests
        found = self._connection.evaluate(ENTRY_SIZE, [key], [previous_id(entry)])
        if not found or parse_id(found[0]) != parse_id(entry):
            return Request((entry, []), deliveries)
        if int(found[1]) > self.most_bytes:
            return Request((entry, []), deliveries, int(found[1]))
        return Request(self._connection.entry(key, entry) or (entry, []), deliveries)

    def _measured(self, entry: Entry) -> Request:
        """Return a new request, without its fields if these are too large."""
        size = sum(map(len, entry[1]))
        if size <= self.most_bytes:
            return Request(entry)
        return Request((entry[0], []), 1, size)


def _first_of_size(requests: Iterable[Request]) -> list[Request]:
    """Return the first requests, up to the one that fills a batch; the others stay pending."""
    found, size = [], 0
    for request in requests:
        found.append(request)
        size += sum(map(len, request.entry[1]))
        if size > BATCH_BYTES:
            break
    return found
