"""The requests of a feed, which scorers share, and the answers to them.

A scorer reads requests through one consumer group. What it has read is pending under its name until
it is answered. If it dies, the others take its requests over after a while. The script that writes
an answer looks whether the request is still pending, so each is answered once.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from workers.broker import feed_reader
from workers.broker.batch_size import BatchSize, Entry
from workers.broker.client import TIMEOUT
from workers.broker.connection import Connection
from workers.broker.feed_reader import pairs_of
from workers.broker.pipeline import Sent
from workers.broker.redis_errors import UnknownGroup
from workers.broker.script import Script
from workers.errors import ReadTooLarge, WorkerError
from workers.feed.keys import SCORERS, FeedKeys
from workers.feed.position import parse_id, previous_id
from workers.feed.publication import Publication
from workers.stop import Stop
from workers.trouble import Trouble

_ANSWER = Script.load("answer")
_LEAVE = Script.load("leave_group", name="leave")
_SIZE = Script.load("entry_size", name="size")

FORGOTTEN_MS = 3_600_000
"""Milliseconds after which a scorer that does nothing is taken out of the group."""

BATCH_BYTES = 1 << 24
"""Bytes of requests taken at once, about."""

MOST_BYTES = 1 << 20
"""Bytes of a request, until the settings of the feed are known."""


class Request(NamedTuple):
    """A request that this scorer is to answer.

    Attributes
    ----------
    entry : Entry
        ID and fields.
    deliveries : int
        How often it was given to a scorer, this time included.
    size : int or None
        Bytes, where it is too large to be read; it then has no fields.
    """

    entry: Entry
    deliveries: int = 1
    size: int | None = None


class AnsweredRequest(NamedTuple):
    """The answer to one request.

    Attributes
    ----------
    entry : bytes
        ID of the request's entry.
    request : str
        The request's own id, by which its key is named.
    payload : bytes
        The answer, as the worker itself would give it.
    """

    entry: bytes
    request: str
    payload: bytes


@dataclass(frozen=True, slots=True)
class QueueStatus:
    """The feed and its newest published state, at one moment.

    Attributes
    ----------
    n : int or None
        Examples learned, as committed; None if the feed does not exist.
    config_hash : str
    newest : dict of bytes to bytes
        Fields of the published state; empty without one.
    now : int
        Milliseconds by the clock of Redis.
    """

    n: int | None
    config_hash: str
    newest: Mapping[bytes, bytes]
    now: int

    def behind(self, used: Publication) -> int:
        """Return how many examples the feed has learned since the state that is used."""
        return (self.n or 0) - used.n

    def age(self, used: Publication) -> int:
        """Return milliseconds since the state that is used was published."""
        return max(0, self.now - used.at)


class Claim(NamedTuple):
    """The requests that one read gave this scorer.

    Attributes
    ----------
    requests : list of Request
        Empty if there was none.
    standing : QueueStatus
        Of the feed, after they were given.
    is_full : bool
        Whether more requests may be waiting.
    """

    requests: list[Request]
    standing: QueueStatus
    is_full: bool


@dataclass(frozen=True, slots=True)
class PendingRead:
    """A read that was sent; `RequestQueue.receive` returns what it gives."""

    entries: Sent
    standing: Sequence[Sent]
    count: int


class RequestQueue:
    """The requests of one feed, for one scorer.

    Parameters
    ----------
    url, feed : str
    consumer : str
        Name of this scorer, which no other one has.
    stop : Stop
    patience : float or None
        Seconds of retries; see `Connection`.
    batch : int
        Requests taken at once, at most.

    Attributes
    ----------
    most_bytes : int
        Of a request; a larger one is not read.
    """

    def __init__(
        self,
        url: str,
        feed: str,
        consumer: str,
        stop: Stop,
        patience: float | None = 0.0,
        batch: int = 256,
    ) -> None:
        self.keys, self._consumer = FeedKeys(feed), consumer
        self._block_ms = feed_reader.BLOCK_MS  # that `read` waits
        self._connection = Connection(url, stop, patience, TIMEOUT + self._block_ms / 1000)
        self._batch, self.most_bytes = BatchSize(batch, BATCH_BYTES), MOST_BYTES

    @property
    def trouble(self) -> Trouble | None:
        """Why Redis does not answer; None where the last attempt succeeded."""
        return self._connection.trouble

    def be_patient(self) -> None:
        """From now on, retry until a stop is requested."""
        self._connection.patience = None

    def begin(self) -> None:
        """Create the group where there is none: at the start, so that no request is left out."""
        key = self.keys.requests
        try:
            self._connection.call("XGROUP", "CREATE", key, SCORERS, "0", "MKSTREAM")
        except WorkerError as error:
            if "BUSYGROUP" not in str(error):
                raise
        for consumer in self._connection.call("XINFO", "CONSUMERS", key, SCORERS):
            fields = pairs_of(consumer)
            if int(fields[b"idle"]) > FORGOTTEN_MS:
                self.leave(fields[b"name"])

    def read(self) -> Claim:
        """Take new requests; wait for the first one."""
        return self.receive(self.send_read(self._block_ms))

    def send_read(self, block_ms: int | None = None) -> PendingRead:
        """Ask for new requests, and behind them where the feed stands; see `receive`.

        Without `block_ms` it does not wait for the first one.
        """
        waiting = () if block_ms is None else ("BLOCK", block_ms)
        count = self._batch.count
        sent = self._connection.send(
            "XREADGROUP", "GROUP", SCORERS, self._consumer, "COUNT", count, *waiting,
            "STREAMS", self.keys.requests, ">", limit=max(2 * BATCH_BYTES, 2 * self.most_bytes),
        )  # fmt: skip
        return PendingRead(sent, self._send_standing(), count)

    def receive(self, asked: PendingRead) -> Claim:
        """Return what a read gave this scorer. From then on it is pending here."""
        try:
            entries = self._received(asked)
        except ReadTooLarge as error:
            # The connection is closed, and what was sent behind the read is lost with it.
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
        """Take over requests that were given to a scorer so long ago and are not answered.

        One that was taken over before is taken alone: if it is what ends scorers, the others are
        not counted with it.
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
        return int(self._connection.call("XLEN", self.keys.requests))

    def standing(self) -> QueueStatus:
        """Return where the feed and its newest published state stand."""
        return self._standing(self._send_standing())

    def _send_standing(self) -> list[Sent]:
        st, pub = self.keys.state, self.keys.published
        commands = [("HMGET", st, "n", "config_hash"), ("HGETALL", pub), ("TIME",)]
        return [self._connection.send(*command, key=st) for command in commands]

    def _standing(self, sent: Sequence[Sent]) -> QueueStatus:
        (n, config), newest, (seconds, micros) = map(self._connection.receive, sent)
        now = int(seconds) * 1000 + int(micros) // 1000
        config_hash = (config or b"").decode(errors="replace")
        return QueueStatus(_count(n), config_hash, pairs_of(newest), now)

    def send_answers(
        self, answers: Sequence[tuple[AnsweredRequest, bytes]], since: int, most: int, keep: int
    ) -> Sent:
        """Write answers, each once; `written` returns how many.

        Parameters
        ----------
        answers : sequence of (AnsweredRequest, bytes)
            And what is written for each.
        since : int
            Milliseconds by the clock of Redis, when what is said of the state was true.
        most : int
            Milliseconds that this may be ago, or nothing is written.
        keep : int
            Seconds that an answer is kept.
        """
        keys = [self.keys.requests, *(self.keys.reply(reply.request) for reply, _ in answers)]
        pairs = [part for reply, text in answers for part in (reply.entry, text)]
        return self._connection.send_script(_ANSWER, keys, [SCORERS, since, most, keep, *pairs])

    def written(self, sent: Sent) -> int | None:
        """Return how many answers were written; None if what they say of the state is too old."""
        result = self._connection.receive_script(_ANSWER, sent)
        if result[0] == b"GONE":
            self.begin()  # who reads next gets the requests that are left
            return 0
        return None if result[0] == b"LATE" else int(result[1])

    def leave(self, name: bytes | None = None) -> bool:
        """Take this scorer, or another one, out of the group, unless it has requests."""
        arguments = [SCORERS, name or self._consumer]
        return bool(self._connection.evaluate(_LEAVE, [self.keys.requests], arguments))

    def close(self) -> None:
        """Give up the connection."""
        self._connection.close()

    def _held(self) -> list[Request]:
        """Return the requests that are pending here: read one by one, if they are not too large."""
        pending = self._connection.call(
            "XPENDING", self.keys.requests, SCORERS, "-", "+", self._batch.count, self._consumer
        )
        return _first_of_size(self._fetched(found[0], int(found[3])) for found in pending)

    def _fetched(self, entry: bytes, deliveries: int) -> Request:
        """Return one request by its ID; without its fields where it is too large, or trimmed."""
        key = self.keys.requests
        found = self._connection.evaluate(_SIZE, [key], [previous_id(entry)])
        if not found or parse_id(found[0]) != parse_id(entry):
            return Request((entry, []), deliveries)
        if int(found[1]) > self.most_bytes:
            return Request((entry, []), deliveries, int(found[1]))
        rows = self._connection.call("XRANGE", key, entry, entry)
        return Request((entry, rows[0][1]) if rows else (entry, []), deliveries)

    def _measured(self, entry: Entry) -> Request:
        """Return a new request, without its fields where these are too large."""
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


def _count(value: bytes | None) -> int | None:
    return int(value) if value is not None and value.isdigit() else None
