"""The requests of a feed, which its scorers share, and their answers.

Scorers are consumers of one group. A request is pending for its scorer until it is answered; if the
scorer dies, another one claims it after a while. The script that writes an answer checks that the
request is still pending, so each is answered once.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from workers.broker import feed_reader
from workers.broker.client import TIMEOUT, UnknownGroup
from workers.broker.commands import Script
from workers.broker.connection import Connection
from workers.broker.large_replies import ENTRY_SIZE, BatchSize
from workers.broker.pipeline import Argument, PendingReply
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

BATCH_BYTES = 1 << 24  # approximate bytes of the requests that one read returns

MAX_REQUEST_BYTES = 1 << 20
"""Largest request in bytes, before the bound in the feed's settings is known."""


class Request(NamedTuple):
    """A request that is pending for this scorer."""

    entry: Entry  # without fields if the request is too large, or was trimmed
    deliveries: int = 1  # to any scorer, with this one
    size: int | None = None  # in bytes, if the request is too large


class AnsweredRequest(NamedTuple):
    """The answer to one request."""

    entry: bytes  # ID of the request's entry
    request: str  # id of the request, part of the answer's key
    payload: bytes  # the answer, as the feed's worker would give it


@dataclass(frozen=True, slots=True)
class QueueStatus:
    """The feed and its newest published state, at one moment."""

    n: int | None  # examples learned, as committed; None if the feed does not exist
    config_hash: str
    newest: Mapping[bytes, bytes]  # fields of the published state; empty without one
    now: int  # milliseconds by the clock of Redis

    def behind(self, used: Publication) -> int:
        """Return how many examples the feed has learned since a published state."""
        return (self.n or 0) - used.n

    def age(self, used: Publication) -> int:
        """Return the age of a published state in milliseconds."""
        return max(0, self.now - used.at)


class RequestBatch(NamedTuple):
    """The requests that one read returned."""

    requests: list[Request]
    status: QueueStatus  # read after the requests
    is_full: bool  # whether more requests may be waiting


@dataclass(frozen=True, slots=True)
class PendingRead:
    """A sent read; `RequestQueue.receive` returns its requests."""

    entries: PendingReply
    status: Sequence[PendingReply]
    count: int


class RequestQueue:
    """The requests of one feed, for the scorer with the unique name `consumer`.

    A read returns at most `batch` requests, those larger than `max_request_bytes` without fields.
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
        self._batch, self.max_request_bytes = BatchSize(batch, BATCH_BYTES), MAX_REQUEST_BYTES

    @property
    def trouble(self) -> Trouble | None:
        """Why Redis does not answer; None if the last attempt succeeded."""
        return self._connection.trouble

    def retry_forever(self) -> None:
        """Retry, from now on, until a stop is requested."""
        self._connection.retry_timeout = None

    def ensure_group(self) -> None:
        """Create the group, at the oldest request, if there is none; remove idle scorers."""
        group = Group(self._connection, self.keys.requests, SCORERS)
        group.create(b"0", makes_stream=True)
        for consumer, idle_ms in group.idle_ms().items():
            if idle_ms > FORGET_SCORER_AFTER_MS:
                self.leave(consumer)

    def read(self) -> RequestBatch:
        """Wait for new requests and return them."""
        return self.receive(self.send_read(self._block_ms))

    def send_read(self, block_ms: int | None = None) -> PendingRead:
        """Send a read of new requests, which blocks up to `block_ms`, and of the status."""
        waiting = () if block_ms is None else ("BLOCK", block_ms)
        count, limit = self._batch.count, 2 * max(BATCH_BYTES, self.max_request_bytes)
        sent = self._connection.send(
            "XREADGROUP", "GROUP", SCORERS, self._consumer, "COUNT", count, *waiting,
            "STREAMS", self.keys.requests, ">", limit=limit,
        )  # fmt: skip
        return PendingRead(sent, self._send_status(), count)

    def receive(self, sent: PendingRead) -> RequestBatch:
        """Return the requests of a sent read; they are now pending for this scorer."""
        try:
            entries = self._receive_entries(sent)
        except ReadTooLarge as error:
            # The connection is closed: replies to the commands sent after the read are lost.
            self._batch.halve(error)
            return RequestBatch(self._pending_requests(), self.status(), False)
        requests = [self._checked_size(entry) for entry in entries]
        return RequestBatch(requests, self._receive_status(sent.status), len(entries) >= sent.count)

    def _receive_entries(self, sent: PendingRead) -> list[Entry]:
        try:
            reply = self._connection.receive(sent.entries)
        except UnknownGroup:
            self.ensure_group()
            return []
        entries: list[Entry] = reply[0][1] if reply else []
        if entries:
            self._batch.first_of(entries)
        return entries

    def claim(self, idle_ms: int) -> list[Request]:
        """Claim requests that another scorer has not answered within `idle_ms`.

        A request that was claimed before is claimed alone: if it kills this scorer, too, the
        deliveries of other requests do not grow.
        """
        key = self.keys.requests
        try:
            pending = self._connection.call(
                "XPENDING", key, SCORERS, "IDLE", idle_ms, "-", "+", self._batch.count
            )
        except UnknownGroup:
            self.ensure_group()
            return []
        deliveries = {row[0]: int(row[3]) for row in pending}
        chosen = [entry for entry, n in deliveries.items() if n == 1] or list(deliveries)[:1]
        return _first_batch(
            self._fetch(entry, deliveries[entry] + 1)
            for entry in chosen
            if self._connection.call(
                "XCLAIM", key, SCORERS, self._consumer, idle_ms, entry,
                "RETRYCOUNT", deliveries[entry] + 1, "JUSTID",
            )
        )  # fmt: skip

    def length(self) -> int:
        """Return the number of unanswered requests."""
        return self._connection.length(self.keys.requests)

    def status(self) -> QueueStatus:
        """Return the status of the feed now."""
        return self._receive_status(self._send_status())

    def _send_status(self) -> list[PendingReply]:
        st, pub = self.keys.state, self.keys.published
        commands = [("HMGET", st, "n", "config_hash"), ("HGETALL", pub), ("TIME",)]
        return [self._connection.send(*command, key=st) for command in commands]

    def _receive_status(self, sent: Sequence[PendingReply]) -> QueueStatus:
        (n, config), newest, (seconds, micros) = map(self._connection.receive, sent)
        now = int(seconds) * 1000 + int(micros) // 1000
        config_hash = (config or b"").decode(errors="replace")
        learned = int(n) if n is not None and n.isdigit() else None
        return QueueStatus(learned, config_hash, pairs_of(newest), now)

    def send_answers(
        self,
        answers: Sequence[tuple[AnsweredRequest, bytes]],
        measured_at: int,
        max_age_ms: int,
        keep_seconds: int,
    ) -> PendingReply:
        """Send answers with their texts; each is written once, and kept for `keep_seconds`.

        The texts state how stale the published state was at `measured_at`, by the clock of Redis.
        More than `max_age_ms` later nothing is written.
        """
        keys = [self.keys.requests, *(self.keys.reply(reply.request) for reply, _ in answers)]
        pairs = [part for reply, text in answers for part in (reply.entry, text)]
        args: list[Argument] = [SCORERS, measured_at, max_age_ms, keep_seconds, *pairs]
        return self._connection.send_script(_ANSWER, keys, args)

    def written(self, sent: PendingReply) -> int | None:
        """Return how many sent answers were written; None if their staleness was outdated."""
        result = self._connection.receive_script(_ANSWER, sent)
        if result[0] == b"GONE":
            self.ensure_group()  # the next read gets the remaining requests
            return 0
        return None if result[0] == b"LATE" else int(result[1])

    def leave(self, name: bytes | None = None) -> bool:
        """Remove this scorer, or `name`, from the group, unless it has pending requests."""
        arguments = [SCORERS, name or self._consumer]
        return bool(self._connection.evaluate(_LEAVE, [self.keys.requests], arguments))

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _pending_requests(self) -> list[Request]:
        """Return the requests pending for this scorer, read one by one."""
        pending = self._connection.call(
            "XPENDING", self.keys.requests, SCORERS, "-", "+", self._batch.count, self._consumer
        )
        return _first_batch(self._fetch(found[0], int(found[3])) for found in pending)

    def _fetch(self, entry: bytes, deliveries: int) -> Request:
        """Read one request by its ID."""
        key = self.keys.requests
        found = self._connection.evaluate(ENTRY_SIZE, [key], [previous_id(entry)])
        if not found or parse_id(found[0]) != parse_id(entry):
            return Request((entry, []), deliveries)
        if int(found[1]) > self.max_request_bytes:
            return Request((entry, []), deliveries, int(found[1]))
        return Request(self._connection.entry(key, entry) or (entry, []), deliveries)

    def _checked_size(self, entry: Entry) -> Request:
        """Return a new request, without fields if it is too large."""
        size = sum(map(len, entry[1]))
        if size <= self.max_request_bytes:
            return Request(entry)
        return Request((entry[0], []), 1, size)


def _first_batch(requests: Iterable[Request]) -> list[Request]:
    """Return requests up to the one that exceeds `BATCH_BYTES`; the others stay pending."""
    found, size = [], 0
    for request in requests:
        found.append(request)
        size += sum(map(len, request.entry[1]))
        if size > BATCH_BYTES:
            break
    return found
