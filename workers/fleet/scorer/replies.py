"""From requests to payloads: what a scorer says with one state. No I/O."""

from collections.abc import Iterable, Sequence

from online_svm.errors import InvalidExample
from online_svm.predictor.answering_state import AnsweringState
from workers.broker.request_queue import Reply, Request
from workers.config.settings import Limits
from workers.message import entry_decode
from workers.message.decode import Decoded, decode
from workers.message.encode import encode_rejected, encode_unavailable
from workers.message.forms import encode_answers

_FIELDS = frozenset((b"x", b"xb", b"id"))

MOST_DELIVERIES = 5
"""How often a request is given to a scorer before it is refused: it may be what ends them."""


def answered(
    state: AnsweringState, seq: int, requests: Sequence[Request], limits: Limits
) -> list[Reply]:
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
    refused = {i: error for i, r in enumerate(requests) if (error := _refusal(r)) is not None}
    usable = [i for i in range(len(requests)) if i not in refused]
    entries = [requests[i].entry for i in usable]
    decoded = decode(entries, state.schema, limits)
    payloads = {usable[i]: payload for i, payload in _accepted(state, seq, decoded, limits)}
    refused |= {usable[i]: error for i, error in decoded.rejected.items()}
    replies = []
    for i, request in enumerate(requests):
        sent = _id(request, limits)
        payload = payloads.get(i) or encode_rejected(refused[i], seq, state.n, sent)
        replies.append(_reply(request, sent, payload))
    return replies


def unavailable(requests: Iterable[Request], limits: Limits, code: str, reason: str) -> list[Reply]:
    """Return the answers to requests that no state can answer."""
    return [
        _reply(request, sent := _id(request, limits), encode_unavailable(sent, code, reason))
        for request in requests
    ]


def _accepted(
    state: AnsweringState, seq: int, decoded: Decoded, limits: Limits
) -> Iterable[tuple[int, bytes]]:
    """Return the payload of each accepted entry, by its position."""
    rows = decoded.accepted
    if not rows:
        return ()
    block = state.answer(decoded.X)
    ids = [decoded.ids[i] for i in rows]
    payloads = encode_answers(block, [seq] * len(rows), ids, limits.payload)
    return zip(rows, payloads, strict=True)


def _refusal(request: Request) -> InvalidExample | None:
    """Return why a request is refused before it is decoded as an entry."""
    if request.size is not None:
        return InvalidExample("too_large", f"the request has {request.size} bytes, too many")
    for name in request.entry[1][::2]:
        if name not in _FIELDS:
            shown = repr(name[:40].decode(errors="backslashreplace"))
            return InvalidExample("unknown_field", f"field {shown}; a request has x or xb, and id")
    return None


def _id(request: Request, limits: Limits) -> str | None:
    return entry_decode.readable_id(request.entry[1], limits)


def _reply(request: Request, sent: str | None, payload: bytes) -> Reply:
    entry = request.entry[0]
    return Reply(entry, entry.decode() if sent is None else sent, payload)
