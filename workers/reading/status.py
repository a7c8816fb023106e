"""Status of a feed, and the memory of its keys, read from outside."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from online_svm.stream.alarm import Alarm
from workers.broker.feed_reader import FeedReader
from workers.errors import InvalidPublication, WrongKeyType
from workers.feed.agreement import check_computed
from workers.feed.output_retention import NAMES, Retention
from workers.feed.publication import Publication
from workers.feed.state import FeedState
from workers.reading.alarms import open_alarms
from workers.reading.answers import message, newest, payload
from workers.reading.consumers import (
    ConsumerGroup,
    ScorerStatus,
    consumer_groups,
    permitted,
    scorer_status,
)
from workers.reading.events import known_events
from workers.reading.incidents import Incident, open_incident
from workers.reading.lag import Lag, lag
from workers.reading.registry import holder, require
from workers.reading.stream_info import Backlog, backlog
from workers.reading.verdict import (
    Facts,
    Verdict,
    is_replayed,
    lifecycle,
    missing_for,
    newest_answer,
    newest_label,
    tells_guarantee,
    verdict,
)

_EVENTS = 50  # events in which the last word of a worker is looked for

LABELS = 200
"""Entries of `out` in which the newest label, and the newest guarantee, is looked for."""

_SAMPLES = 5  # nodes of a stream that are measured: a few microseconds, whatever its length


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """What the keys of a feed take.

    Attributes
    ----------
    bytes : dict of str to (int or None)
        By kind of key: `in`, the output streams, `snapshots`, `published`. Of a stream it is an
        estimate. None where this user may not ask.
    bounds : dict of str to int
        Bytes that are kept of an output stream by default, as counted for trimming; a worker may
        have been told otherwise. A stream without a bound is left out.
    """

    bytes: dict[str, int | None]
    bounds: dict[str, int]


def memory_use(
    reader: FeedReader, state: FeedState | None, published: Publication | None
) -> MemoryUse:
    """Return what the keys of a feed take: one MEMORY USAGE each, which reads no stream."""
    keys = reader.keys
    pointers = () if state is None else (state.snapshot, state.previous)
    snapshots = [key for found in pointers if found is not None for key in found.keys(keys)]
    kinds: dict[str, Iterable[str]] = {
        "in": [keys.input],
        **{name: [key] for name, key in zip(NAMES, keys.outputs, strict=True)},
        "snapshots": snapshots,
        "published": [] if published is None else published.keys(keys),
    }
    return MemoryUse(
        {kind: _size(reader, held) for kind, held in kinds.items()},
        {
            name: bound
            for name, bound in Retention().bytes._asdict().items()
            if bound and state is not None
        },
    )


def _size(reader: FeedReader, keys: Iterable[str]) -> int | None:
    total = 0
    for key in keys:
        size = permitted(reader, "MEMORY", "USAGE", key, "SAMPLES", _SAMPLES)
        if size is None and reader.call("TYPE", key) != b"none":
            return None
        total += size or 0
    return total


@dataclass(frozen=True, slots=True)
class Status:
    """The status of a feed.

    Attributes
    ----------
    feed : str
    verdict : Verdict
        What is to be said of it first.
    incident : Incident or None
        The one that is open.
    seq, n : int
        Input entries answered, examples learned.
    waiting : int
    waiting_is_at_least : bool
    waiting_seconds : float
        The lag of the feed; see `workers.reading.lag.Lag`.
    pending : dict or None
        Answered examples that wait for their labels: the members of `PendingLabels`, and its
        `seconds`. None where labels come with their examples.
    waiting_bytes : int
        Of their names and values, about: by the mean of those that were counted. Producers wait
        where it reaches their `--high-water-bytes`.
    cursor : str
        ID of the last entry answered.
    out, met, alarms, dlq : int
        Entries kept in the output streams.
    epoch : int
        Number of writers so far.
    writer, holder : str or None
        The last writer, and the present holder of the lease.
    digest : str
        Digest of all answers so far, in hexadecimal.
    snapshots : list of int
        Learned examples at each kept snapshot, the newest first.
    validity : dict or None
        The newest message of `met`.
    open_alarms : list of Alarm
        The oldest first; see `alarms.open_alarms`.
    scoring : ScorerStatus or None
        What scorers have, and what waits for them; None where there are none.
    consumers : list of ConsumerGroup
        Who reads the answers, such as an archive.
    stored : MemoryUse
        Bytes in Redis.
    """

    feed: str
    verdict: Verdict
    incident: Incident | None
    seq: int
    n: int
    waiting: int
    waiting_is_at_least: bool
    waiting_seconds: float
    pending: dict[str, Any] | None
    waiting_bytes: int
    cursor: str
    out: int
    met: int
    alarms: int
    dlq: int
    epoch: int
    writer: str | None
    holder: str | None
    digest: str
    snapshots: list[int]
    validity: dict[str, Any] | None
    open_alarms: list[Alarm]
    scoring: ScorerStatus | None
    consumers: list[ConsumerGroup]
    stored: MemoryUse


def status(store: FeedReader) -> Status:
    """Return the status of a feed; this only reads.

    Raises
    ------
    NoSuchFeed
        If the feed does not exist.
    BadConfiguration
        If its semantics were given up.
    """
    require(store)
    keys, state = store.keys, store.state()
    if state is not None:
        check_computed(keys.feed, state.agreement)
    cursor = b"0-0" if state is None else state.position.cursor
    pointers = () if state is None else (state.snapshot, state.previous)
    waits = lag(store)
    n = 0 if state is None else state.position.n
    published = _published(store)
    report = next(iter(newest(store, keys.met, 1)), None)
    held, incident = holder(store), open_incident(store, report)
    return Status(
        feed=keys.feed,
        verdict=_verdict(store, state, waits, held, report, incident),
        incident=incident,
        seq=0 if state is None else state.position.seq,
        n=n,
        waiting=waits.entries,
        waiting_is_at_least=waits.is_at_least,
        waiting_seconds=waits.seconds,
        pending=None if waits.labels is None else waits.labels.told(),
        waiting_bytes=_waiting_bytes(backlog(store, keys.input, cursor), waits),
        cursor=cursor.decode(),
        out=store.length(keys.out),
        met=store.length(keys.met),
        alarms=store.length(keys.alarms),
        dlq=store.length(keys.dlq),
        epoch=0 if state is None else state.epoch,
        writer=None if state is None else state.writer,
        holder=held,
        digest=bytes(32).hex() if state is None else state.position.digest.hex(),
        snapshots=[pointer.n for pointer in pointers if pointer is not None],
        validity=None if report is None else orjson.loads(payload(report)),
        open_alarms=open_alarms(store, report),
        scoring=scorer_status(store, n, published),
        consumers=consumer_groups(store, lambda stream, after: backlog(store, stream, after)[:2]),
        stored=memory_use(store, state, published),
    )


def _published(store: FeedReader) -> Publication | None:
    """Return the newest published state; None without one, or if what names it is damaged."""
    try:
        return store.publication()
    except (InvalidPublication, WrongKeyType):
        return None


def _waiting_bytes(read: Backlog, waits: Lag) -> int:
    """Return about how many bytes wait: those that were read, times how many more wait."""
    return read.size * waits.entries // read.entries if read.entries else 0


def _verdict(
    store: FeedReader,
    state: FeedState | None,
    waits: Lag,
    held: str | None,
    report: Sequence[Any] | None,
    incident: Incident | None,
) -> Verdict:
    """Return the verdict, with what is read for it alone."""
    keys, now = store.keys, time.time()
    unlabelled = 0 if waits.labels is None else waits.labels.unlabelled
    answers = _messages(store, keys.out, LABELS if unlabelled else 1)
    if answers and not (unlabelled or tells_guarantee(answers[-1][1])):
        answers = _messages(store, keys.out, LABELS)
    told = message(report) if report is not None else None
    label = newest_label(answers) if unlabelled else None
    events = known_events(_messages(store, keys.events, _EVENTS))
    return verdict(
        Facts(
            keys.feed,
            has_begun=state is not None,
            holder=held,
            lifecycle=lifecycle(events),
            now=now,
            is_replayed=state is not None and is_replayed(state.epoch, events),
            waiting=waits.entries,
            waiting_is_at_least=waits.is_at_least,
            waiting_seconds=waits.seconds,
            unlabelled=unlabelled,
            label_seconds=missing_for(label, waits.labels, now),
            answer=newest_answer(said for _, said in answers),
            report=told if isinstance(told, dict) else None,
            incident=incident,
        )
    )


def _messages(store: FeedReader, stream: str, count: int) -> list[tuple[bytes, Any]]:
    """Return the IDs and parsed payloads of the newest entries of a stream, the oldest first."""
    return [(entry[0], message(entry)) for entry in newest(store, stream, count)]
