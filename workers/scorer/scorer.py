"""A scorer: read requests, answer them with the newest state, write each answer once.

It has no state of its own: if it dies at any instruction, another scorer, or the restarted one,
claims its requests.

If more requests wait than a batch has, Redis and the scorer work in parallel: the scorer sends the
next read before it answers a batch, and confirms the writes of a batch after answering the next.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from online_svm.errors import InvalidExample
from online_svm.predictor.frozen_predictor import FrozenPredictor
from workers.broker.pipeline import PendingReply
from workers.broker.request_queue import (
    AnsweredRequest,
    PendingRead,
    QueueStatus,
    Request,
    RequestQueue,
)
from workers.config.settings import Limits
from workers.feed.position import parse_id
from workers.feed.state import Publication
from workers.message import entry_decode
from workers.message.compact_encode import encode_answers
from workers.message.decode import Decoded, decode
from workers.message.encode import encode_rejected, encode_unavailable, reply_head
from workers.message.trace import FIELD, traced
from workers.scorer.newest_state import LoadedState, NewestState
from workers.scorer.settings import ScorerCounts, ScorerSettings
from workers.stop import Stop

_FIELDS = frozenset((b"x", b"xb", b"id", b"score", b"score_version", FIELD))

MAX_DELIVERIES = 5
"""Deliveries after which a request is not answered: it may be what crashes scorers."""


def answered(
    state: FrozenPredictor, seq: int, requests: Sequence[Request], limits: Limits
) -> list[AnsweredRequest]:
    """Return the answers to requests, as if each were the feed's entry number `seq`."""
    refused = _refused(requests)
    usable = [i for i in range(len(requests)) if i not in refused]
    decoded = decode([requests[i].entry for i in usable], state.schema, limits)
    traces = {usable[row]: trace for row, trace in decoded.traces.items()}
    replies: list[AnsweredRequest | None] = [None] * len(requests)
    for row, sent, payload in _accepted(state, seq, decoded, limits):
        i = usable[row]
        replies[i] = _reply(requests[i], sent, traced(payload, traces.get(i)))
    refused |= {usable[row]: error for row, error in decoded.rejected.items()}
    for i, error in refused.items():
        sent = _id(requests[i])
        payload = encode_rejected(error, seq, state.n, sent, state.config.semantics)
        replies[i] = _reply(requests[i], sent, traced(payload, traces.get(i)))
    return [reply for reply in replies if reply is not None]


def unavailable(requests: Iterable[Request], code: str, reason: str) -> list[AnsweredRequest]:
    """Return the answers to requests that cannot be answered now."""
    return [
        _reply(request, sent := _id(request), encode_unavailable(sent, code, reason))
        for request in requests
    ]


def _accepted(
    state: FrozenPredictor, seq: int, decoded: Decoded, limits: Limits
) -> Iterable[tuple[int, str | None, bytes]]:
    """Return index, id and payload of each accepted entry."""
    rows = decoded.accepted
    if not rows:
        return ()
    block = state.answer(decoded.X)
    ids = [decoded.ids[i] for i in rows]
    payloads = encode_answers(block, [seq] * len(rows), ids, limits.payload)
    return zip(rows, ids, payloads, strict=True)


def _refused(requests: Sequence[Request]) -> dict[int, InvalidExample]:
    """Return the requests that are rejected before they are decoded, by index, and why."""
    # Most requests have the same few field names: check these once, instead of each request.
    names = set(chain.from_iterable(request.entry[1][::2] for request in requests))
    if names <= _FIELDS and all(request.size is None for request in requests):
        return {}
    return {i: error for i, r in enumerate(requests) if (error := _refusal(r)) is not None}


def _refusal(request: Request) -> InvalidExample | None:
    """Return why a request is rejected before it is decoded, if so."""
    if request.size is not None:
        return InvalidExample("request_bytes", bytes=request.size)
    for name in request.entry[1][::2]:
        if name not in _FIELDS:
            return InvalidExample("request_field", field=entry_decode.shown(name))
    return None


def _id(request: Request) -> str | None:
    return entry_decode.readable_id(request.entry[1])


def _reply(request: Request, sent: str | None, payload: bytes) -> AnsweredRequest:
    entry = request.entry[0]
    return AnsweredRequest(entry, entry.decode() if sent is None else sent, payload)


FRESH_MS = 1000
"""Most milliseconds from measuring the staleness that an answer states to writing the answer;
doubled while Redis takes longer."""


@dataclass(frozen=True, slots=True)
class _SentBatch:
    """A batch whose answers were sent to Redis."""

    requests: Sequence[Request]
    sent: PendingReply
    unavailable: int  # number of answers without a prediction


class Scorer:
    """Answers the requests of one feed until a stop is requested."""

    def __init__(
        self,
        queue: RequestQueue,
        newest: NewestState,
        settings: ScorerSettings,
        stop: Stop,
        counts: ScorerCounts | None = None,
    ) -> None:
        self._queue, self._newest = queue, newest
        self._settings, self._stop = settings, stop
        self._next_claim = -float("inf")
        self._ahead: PendingRead | None = None
        self._unconfirmed: _SentBatch | None = None
        self.counts = counts or ScorerCounts()
        self.counts.trouble = lambda: queue.trouble or newest.trouble

    def run(self) -> None:
        """Answer requests until a stop is requested; then leave the group."""
        self._queue.ensure_group()
        self.refresh()
        self.counts.is_at_work = True
        while not self._stop.requested:
            self.turn()
        self.finish()
        self._queue.leave()

    def turn(self) -> int:
        """Answer a batch of requests; return how many answers were confirmed as written.

        If more requests wait, this batch is confirmed in the next turn.
        """
        self.counts.turned = time.monotonic()
        overdue = self._claim_overdue()
        return self._answer(overdue) if overdue else self._answer_next()

    def finish(self) -> int:
        """Answer the requests that were read ahead; return how many answers were confirmed."""
        done = 0
        while self._ahead is not None:
            done += self._answer_next(is_last=True)
        return done + self._confirm()

    def _answer_next(self, is_last: bool = False) -> int:
        """Answer the requests of the next read; read ahead if there may be more."""
        batch = self._queue.read() if self._ahead is None else self._queue.receive(self._ahead)
        self._ahead = None
        if batch.is_full and not is_last:
            self._ahead = self._queue.send_read()
        if not batch.requests:
            self._state(batch.status)  # load a new state before the next request
            return self._confirm()
        sent = self._send(batch.requests, batch.status, FRESH_MS)
        done = self._confirm()
        self._unconfirmed = sent
        return done if self._ahead is not None else done + self._confirm()

    def refresh(self) -> None:
        """Load the newest state, if it changed."""
        self._state(self._queue.status())

    def _state(self, status: QueueStatus) -> LoadedState | None:
        """Return the state to answer with, and update the counts about it."""
        loaded, counts = self._newest.current(status), self.counts
        counts.states = self._newest.loads
        if loaded is None:
            counts.n, counts.stale = None, None
            return None
        used = loaded.publication
        counts.n, counts.behind = used.n, status.behind(used)
        counts.age = status.age(used) / 1000
        counts.stale = self._staleness(loaded, status)
        return loaded

    def _claim_overdue(self) -> list[Request]:
        """Claim requests that other scorers do not answer, if it is time to look for them."""
        if time.monotonic() < self._next_claim:
            return []
        found = self._queue.claim(int(1000 * self._settings.claim_after))
        self.counts.waiting = self._queue.length()
        if not found:
            self._next_claim = time.monotonic() + self._settings.claim_after / 2
        self.counts.taken_over += len(found)
        return found

    def _answer(self, requests: Sequence[Request], max_age_ms: int = FRESH_MS) -> int:
        """Answer requests and confirm; return how many answers were written."""
        while True:
            batch = self._send(requests, self._queue.status(), max_age_ms)
            done = self._queue.written(batch.sent)
            if done is not None:
                self._count(batch, done)
                return done
            # Measure the staleness again: this process was paused, or Redis is slow, in which case
            # a larger limit helps.
            max_age_ms *= 2

    def _send(
        self, requests: Sequence[Request], status: QueueStatus, max_age_ms: int
    ) -> _SentBatch:
        """Send the answers to requests, to be written at most `max_age_ms` after `status`."""
        replies, used, missing = self._replies(requests, status)
        head = _head(used, status)
        answers = [(reply, head + reply.payload + b"}") for reply in replies]
        sent = self._queue.send_answers(answers, status.now, max_age_ms, self._settings.keep)
        return _SentBatch(requests, sent, missing)

    def _confirm(self) -> int:
        """Return how many answers of the unconfirmed batch were written."""
        batch, self._unconfirmed = self._unconfirmed, None
        if batch is None:
            return 0
        done = self._queue.written(batch.sent)
        if done is None:
            return self._answer(batch.requests, 2 * FRESH_MS)
        self._count(batch, done)
        return done

    def _count(self, batch: _SentBatch, done: int) -> None:
        self.counts.written += done
        self.counts.elsewhere += len(batch.requests) - done
        self.counts.unavailable += batch.unavailable

    def _replies(
        self, requests: Sequence[Request], status: QueueStatus
    ) -> tuple[list[AnsweredRequest], Publication | None, int]:
        """Return the answers, the state used, and the number of answers without a prediction."""
        loaded = self._state(status)
        if loaded is None:
            none = unavailable(requests, "no_state", "no state was published")
            return none, None, len(none)
        if self.counts.stale is not None:
            none = unavailable(requests, "stale", self.counts.stale)
            return none, loaded.publication, len(none)
        dropped = {
            i: why
            for i, r in enumerate(requests)
            if (why := self._unavailable_reason(r, status.now))
        }
        fit = [request for i, request in enumerate(requests) if i not in dropped]
        replies = answered(loaded.state, loaded.publication.seq, fit, loaded.limits) if fit else []
        for i, (code, reason) in dropped.items():
            replies += unavailable([requests[i]], code, reason)
        return replies, loaded.publication, len(dropped)

    def _unavailable_reason(self, request: Request, now: int) -> tuple[str, str] | None:
        """Return code and reason if a request is no longer answered."""
        most = self._settings.max_wait
        if request.deliveries >= MAX_DELIVERIES:
            tried = MAX_DELIVERIES - 1
            return "failed", f"{tried} scorers ended, or were cut off, while they had it"
        if most is not None and now - parse_id(request.entry[0])[0] > 1000 * most:
            return "late", f"it waited for more than {most:g} s"
        return None

    def _staleness(self, loaded: LoadedState, status: QueueStatus) -> str | None:
        """Return why a state is too old to answer, if so."""
        most, seconds = self._settings.max_stale, self._settings.max_age
        behind, age = status.behind(loaded.publication), status.age(loaded.publication) / 1000
        if most is not None and behind > most:
            return f"the newest state is {behind} examples old, the bound is {most}"
        if seconds is not None and age > seconds:
            return f"the newest state is {age:.1f} s old, the bound is {seconds:g} s"
        return None


def _head(used: Publication | None, status: QueueStatus) -> bytes:
    """Return the start of the replies: name and age of the state."""
    if used is None:
        return reply_head(None, None, None)
    return reply_head(used.name, status.behind(used), status.age(used))
