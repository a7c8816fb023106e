"""Rebuild an old answer for an auditor: its basis, and a proof by replay. It only reads."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from online_svm.predictor.explanation import Contribution, Explanation, contributions, explain
from online_svm.predictor.online_predictor import OnlinePredictor
from workers.broker.feed_reader import FeedReader
from workers.broker.streams import Entry, payload
from workers.config.settings import Limits
from workers.errors import BadConfiguration, InputLost
from workers.feed.position import Position, parse_id, previous_id
from workers.message.decode import decode
from workers.message.entry_decode import pairs
from workers.reading.answers import answer, message
from workers.reading.registry import no_answers
from workers.session.replay import Replay, restored

Value = float | str | bool | None  # value of a feature, as it was sent

_ID = b"0123456789-"


@dataclass(frozen=True, slots=True)
class Explained:
    """A recomputed answer."""

    entry: str  # its entry ID
    answer: dict[str, Any]  # the committed payload, parsed, in full form
    is_identical: bool  # whether the replay gave the same bytes
    from_seq: int  # start of the replay
    replayed: int  # entries that the replay answered before this one
    features: tuple[str, ...] | None  # names of the features; None for an array
    values: tuple[Value, ...]  # the features of the example, as they were sent
    rests_on: Explanation | None  # None while warming up, and for a rejected entry
    contributions: tuple[Contribution, ...]  # of the features, the largest first; likewise empty
    # Part of each expert in the probabilities, the largest first; empty if no ensemble answered.
    experts: dict[str, float]
    noted: dict[str, Any] | None  # `n`, `writer`, `detail` of the last note before it


def explain_answer(store: FeedReader, name: str) -> Explained:
    """Recompute the answer with an entry ID, or the newest answer with a producer's id.

    Raises BadConfiguration if there is no such answer or feed; InputLost if the input that led to
    it is no longer kept.
    """
    feed = store.keys.feed
    state = store.state()
    if state is None:
        raise no_answers(feed)
    committed = _find(store, name)
    target = committed[0]
    given = store.entries(store.keys.input, target, target)
    if not given:
        raise _lost(feed, target)
    early = [pointer for pointer in state.snapshots if parse_id(pointer.cursor) < parse_id(target)]
    replay = restored(store, state, early) or Replay.of(feed, state)
    from_seq = replay.position.seq
    before = _answer_until(store, replay, target)
    rests_on, moved, names, values = _basis(replay.predictor, replay.limits, given)
    weights = replay.predictor.frozen().expert_weights if values else {}
    outcome = replay.answer(given)
    data = payload(committed)
    if data != outcome.out[0]:
        rests_on, moved, weights = None, (), {}
    return Explained(
        entry=target.decode(), answer=answer(committed), is_identical=data == outcome.out[0],
        from_seq=from_seq, replayed=before.seq - from_seq, features=names, values=values,
        rests_on=rests_on, contributions=moved,
        experts=dict(sorted(weights.items(), key=lambda one: -one[1])),
        noted=_noted(store, before.n),
    )  # fmt: skip


def _find(store: FeedReader, name: str) -> Entry:
    """Return the entry of `out` with an entry ID or a producer's id."""
    out = store.keys.out
    sent = name.encode()
    if sent.count(b"-") == 1 and sent.strip(_ID) == b"" and all(sent.split(b"-")):
        found = store.entry(out, sent)
        if found is not None:
            return found
    kept = None
    for entry in store.each(out):
        parsed = message(entry) if sent in payload(entry) else None
        if isinstance(parsed, dict) and parsed.get("id") == name:
            kept = entry
    if kept is None:
        raise BadConfiguration(
            f"feed {store.keys.feed!r} keeps no answer {name[:80]!r}: give the ID of its entry, as "
            f"in redis-cli XRANGE {out} - +, or the id that its producer sent"
        )
    return kept


def _answer_until(store: FeedReader, replay: Replay, target: bytes) -> Position:
    """Answer the input before an entry again; return the position after that."""
    begin, upto = replay.position, previous_id(target)
    if parse_id(upto) <= parse_id(begin.cursor):
        return begin
    position = replay.run(store, upto)
    (committed,) = store.entries(store.keys.out, target, target)
    if answer(committed)["seq"] != position.seq:
        raise _lost(store.keys.feed, target)
    return position


def _basis(
    predictor: OnlinePredictor, limits: Limits, given: Sequence[Entry]
) -> tuple[Explanation | None, tuple[Contribution, ...], tuple[str, ...] | None, tuple[Value, ...]]:
    """Return the basis of the answer to an entry, and its features: effects, names and values."""
    decoded = decode(given, predictor.schema, limits)
    if not len(decoded.X):
        return None, (), None, ()
    names = decoded.schema.names
    values: tuple[Value, ...] = tuple(decoded.X[0].tolist())
    if decoded.schema.is_mixed and names is not None:
        values = _sent(given[0], names) or values
    active = predictor.active
    basis = None if active is None else explain(active, decoded.X[0])
    moved = () if active is None else contributions(predictor, decoded.X[0])
    return basis, moved, names, values


def _sent(entry: Entry, names: tuple[str, ...]) -> tuple[Value, ...] | None:
    """Return the values of named features as they were sent; None for an array."""
    fields = dict(pairs(entry[1]))
    try:
        x = json.loads(fields.get(b"x", b""), parse_int=float)
    except ValueError:
        return None
    return tuple(map(x.get, names)) if isinstance(x, dict) else None


def _noted(store: FeedReader, n: int) -> dict[str, Any] | None:
    """Return the last note at or before `n` learned examples; None without any."""
    found: dict[str, Any] | None = None
    for event in map(message, store.each(store.keys.events)):
        if not isinstance(event, dict) or event.get("code") != "note":
            continue
        at = event.get("n")
        if isinstance(at, int) and at <= n and (found is None or at >= found["n"]):
            found = {name: event.get(name) for name in ("n", "writer", "detail")}
    return found


def _lost(feed: str, target: bytes) -> InputLost:
    return InputLost(
        f"feed {feed!r}: the input that led to answer {target.decode()} is no longer kept, so it "
        "cannot be rebuilt; online-svm worker --keep-input keeps it"
    )
