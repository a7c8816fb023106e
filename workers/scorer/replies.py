"""From requests to payloads: what a scorer says with one state. No I/O."""

from collections.abc import Iterable, Sequence
from itertools import chain

from online_svm.errors import InvalidExample
from online_svm.predictor.answering_state import AnsweringState
from workers.broker.request_queue import AnsweredRequest, Request
from workers.config.settings import Limits
from workers.message import entry_decode
from workers.message.compact.encode import encode_answers
from workers.message.decode import Decoded, decode
from workers.message.encode import encode_rejected, encode_unavailable

_FIELDS = frozenset((b"x", b"xb", b"id"))

MOST_DELIVERIES = 5
"""How often a request is given to a scorer before it is refused: it may be what ends them."""


def answered(
    state: AnsweringState, seq: int, requests: Sequence[Request], limits: Limits
) -> list[AnsweredRequest]:
    """Return the answers to requests: those of the worker to entries that come next, one each.

    Parameters
    ----------
    state : AnsweringState
    seq : int
        Input entries that the feed had answered.
    requests : sequence of Request
    limits : Limits
        Of an entry of the feed.
    """
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
        replies[i] = _reply(requests[i], sent, encode_rejected(error, seq, state.n, sent))
    return [reply for reply in replies if reply is not None]


def unavailable(requests: Iterable[Request], code: str, reason: str) -> list[AnsweredRequest]:
    """Return the answers to requests that no state can answer."""
    return [
        _reply(request, sent := _id(request), encode_unavailable(sent, code, reason))
        for request in requests
    ]


def _accepted(
    state: AnsweringState, seq: int, decoded: Decoded, limits: Limits
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
        return InvalidExample("too_large", f"the request has {request.size} bytes, too many")
    for name in request.entry[1][::2]:
        if name not in _FIELDS:
            shown = repr(name[:40].decode(errors="backslashreplace"))
            return InvalidExample("unknown_field", f"field {shown}; a request has x or xb, and id")
    return None


def _id(request: Request) -> str | None:
    return entry_decode.readable_id(request.entry[1])


def _reply(request: Request, sent: str | None, payload: bytes) -> AnsweredRequest:
    entry = request.entry[0]
    return AnsweredRequest(entry, entry.decode() if sent is None else sent, payload)
