"""A scorer: take requests, answer them with the newest state, write each answer once.

It keeps nothing that matters: if it ends at any instruction, its requests are taken over by another
scorer, or by itself after its next start.

Where more requests wait than one batch, Redis and the scorer work at the same time: the next
requests are asked for before a batch is answered, and whether its answers were written is learned
after the next batch.
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
from workers.scorer.newest_state import Held, NewestState
from workers.scorer.settings import ScorerCounts, ScorerSettings
from workers.stop import Stop

_FIELDS = frozenset((b"x", b"xb", b"id"))

MAX_DELIVERIES = 5
"""Attempts before a request is refused: the request itself may crash scorers."""


def answered(
    state: FrozenPredictor, seq: int, requests: Sequence[Request], limits: Limits
) -> list[AnsweredRequest]:
    """Return the answers to requests, as if each were the entry after `seq` ones of the feed."""
    refused = _refused(requests)
    usable = [i for i in range(len(requests)) if i not in refused]
    decoded = decode([requests[i].entry for i in usable], state.schema, limits)
    replies: list[AnsweredRequest | None] = [None] * len(requests)
    for row, sent, payload in _accepted(state, seq, decoded, limits):
        i = usable[row]
        replies[i] = _reply(requests[i], sent, payload)
    refused |= {usable[row]: error for row, error in decoded.rejected.items()}
    for i, error in refused.items():
        sent = _id(requests[i])
        payload = encode_rejected(error, seq, state.n, sent, state.config.semantics)
        replies[i] = _reply(requests[i], sent, payload)
    return [reply for reply in replies if reply is not None]


def unavailable(requests: Iterable[Request], code: str, reason: str) -> list[AnsweredRequest]:
    """Return the answers to requests that no state can answer."""
    return [
        _reply(request, sent := _id(request), encode_unavailable(sent, code, reason))
        for request in requests
    ]


def _accepted(
    state: FrozenPredictor, seq: int, decoded: Decoded, limits: Limits
) -> Iterable[tuple[int, str | None, bytes]]:
    """Return position, id and payload of each accepted entry."""
    rows = decoded.accepted
    if not rows:
        return ()
    block = state.answer(decoded.X)
    ids = [decoded.ids[i] for i in rows]
    payloads = encode_answers(block, [seq] * len(rows), ids, limits.payload)
    return zip(rows, ids, payloads, strict=True)


def _refused(requests: Sequence[Request]) -> dict[int, InvalidExample]:
    """Return the position of each request that is refused before it is decoded, and why."""
    # Most requests have the same few names: one look at these, not one at each request.
    names = set(chain.from_iterable(request.entry[1][::2] for request in requests))
    if names <= _FIELDS and all(request.size is None for request in requests):
        return {}
    return {i: error for i, r in enumerate(requests) if (error := _refusal(r)) is not None}


def _refusal(request: Request) -> InvalidExample | None:
    """Return why a request is refused before it is decoded as an entry."""
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
"""Milliseconds between the moment for which an answer states its staleness and its writing; more
where Redis takes longer than that again and again."""


@dataclass(frozen=True, slots=True)
class _Answered:
    """A batch whose answers were sent to Redis."""

    requests: Sequence[Request]
    sent: PendingReply
    missing: int  # how many of the answers say that there is none now


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
        self._unconfirmed: _Answered | None = None
        self.counts = counts or ScorerCounts()
        self.counts.trouble = lambda: queue.trouble or newest.trouble

    def run(self) -> None:
        """Answer requests until a stop is requested; then leave the group."""
        self._queue.ensure_group()
        self.look()
        self.counts.is_at_work = True
        while not self._stop.requested:
            self.turn()
        self.finish()
        self._queue.leave()

    def turn(self) -> int:
        """Answer the requests of one batch; return how many answers were written since.

        If more requests wait, the next turn counts this batch.
        """
        self.counts.turned = time.monotonic()
        overdue = self._overdue()
        return self._answer(overdue) if overdue else self._answer_next()

    def finish(self) -> int:
        """Answer what was asked for ahead; return how many answers were written since."""
        done = 0
        while self._ahead is not None:
            done += self._answer_next(is_last=True)
        return done + self._confirmed()

    def _answer_next(self, is_last: bool = False) -> int:
        """Answer the requests of the next read; ask for more if there may be more."""
        taken = self._queue.read() if self._ahead is None else self._queue.receive(self._ahead)
        self._ahead = None
        if taken.is_full and not is_last:
            self._ahead = self._queue.send_read()
        if not taken.requests:
            self._held(taken.status)  # so that the next request finds the newest state here
            return self._confirmed()
        answered = self._send(taken.requests, taken.status, FRESH_MS)
        done = self._confirmed()
        self._unconfirmed = answered
        return done if self._ahead is not None else done + self._confirmed()

    def look(self) -> None:
        """Read the newest state, if there is another one."""
        self._held(self._queue.status())

    def _held(self, status: QueueStatus) -> Held | None:
        """Return the state to answer with, and note where it stands."""
        held, counts = self._newest.of(status), self.counts
        counts.states = self._newest.loaded
        if held is None:
            counts.n, counts.stale = None, None
            return None
        used = held.publication
        counts.n, counts.behind = used.n, status.behind(used)
        counts.age = status.age(used) / 1000
        counts.stale = self._staleness(held, status)
        return held

    def _overdue(self) -> list[Request]:
        """Return requests of scorers that do not answer, where it is time to look for them."""
        if time.monotonic() < self._next_claim:
            return []
        found = self._queue.claim(int(1000 * self._settings.claim_after))
        self.counts.waiting = self._queue.length()
        if not found:
            self._next_claim = time.monotonic() + self._settings.claim_after / 2
        self.counts.taken_over += len(found)
        return found

    def _answer(self, requests: Sequence[Request], most: int = FRESH_MS) -> int:
        """Answer requests with what is known now; return how many answers were written."""
        while True:
            answered = self._send(requests, self._queue.status(), most)
            done = self._queue.written(answered.sent)
            if done is not None:
                self._note(answered, done)
                return done
            # If this process was paused, what it knew is out of date: it looks again. If Redis is
            # that slow, the answers are written in the end.
            most *= 2

    def _send(self, requests: Sequence[Request], status: QueueStatus, most: int) -> _Answered:
        """Send the answers to requests; what they say of the state may be `most` ms old then."""
        replies, used, missing = self._replies(requests, status)
        head = _head(used, status)
        answers = [(reply, head + reply.payload + b"}") for reply in replies]
        sent = self._queue.send_answers(answers, status.now, most, self._settings.keep)
        return _Answered(requests, sent, missing)

    def _confirmed(self) -> int:
        """Return how many answers of the batch before were written, which is known by now."""
        answered, self._unconfirmed = self._unconfirmed, None
        if answered is None:
            return 0
        done = self._queue.written(answered.sent)
        if done is None:
            return self._answer(answered.requests, 2 * FRESH_MS)
        self._note(answered, done)
        return done

    def _note(self, answered: _Answered, done: int) -> None:
        self.counts.written += done
        self.counts.elsewhere += len(answered.requests) - done
        self.counts.unavailable += answered.missing

    def _replies(
        self, requests: Sequence[Request], status: QueueStatus
    ) -> tuple[list[AnsweredRequest], Publication | None, int]:
        """Return the answers, the state they name, and how many say that there is none now."""
        held = self._held(status)
        if held is None:
            none = unavailable(requests, "no_state", "no state was published")
            return none, None, len(none)
        if self.counts.stale is not None:
            none = unavailable(requests, "stale", self.counts.stale)
            return none, held.publication, len(none)
        given_up = {i: why for i, r in enumerate(requests) if (why := self._refusal(r, status.now))}
        fit = [request for i, request in enumerate(requests) if i not in given_up]
        replies = answered(held.state, held.publication.seq, fit, held.limits) if fit else []
        for i, (code, reason) in given_up.items():
            replies += unavailable([requests[i]], code, reason)
        return replies, held.publication, len(given_up)

    def _refusal(self, request: Request, now: int) -> tuple[str, str] | None:
        """Return code and reason of a request that is not answered any more; None of others."""
        most = self._settings.max_wait
        if request.deliveries >= MAX_DELIVERIES:
            tried = MAX_DELIVERIES - 1
            return "failed", f"{tried} scorers ended, or were cut off, while they had it"
        if most is not None and now - parse_id(request.entry[0])[0] > 1000 * most:
            return "late", f"it waited for more than {most:g} s"
        return None

    def _staleness(self, held: Held, status: QueueStatus) -> str | None:
        """Return why a state may not answer any more; None while it may."""
        most, seconds = self._settings.max_stale, self._settings.max_age
        behind, age = status.behind(held.publication), status.age(held.publication) / 1000
        if most is not None and behind > most:
            return f"the newest state is {behind} examples old, the bound is {most}"
        if seconds is not None and age > seconds:
            return f"the newest state is {age:.1f} s old, the bound is {seconds:g} s"
        return None


def _head(used: Publication | None, status: QueueStatus) -> bytes:
    """Return what answers say of the state that gave them, and how old it is."""
    if used is None:
        return reply_head(None, None, None)
    return reply_head(used.name, status.behind(used), status.age(used))
