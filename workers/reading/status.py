"""The status of a feed: one record for every part of the program, sampled only here.

`status` reads all fields, `sample` those that decide the verdict (`verdict.py`). A worker of many
feeds and the gateway read fewer, because they read twice a second. The record serves the command
`status`, the page, the report, the metrics, the webhook and the gateway.
"""

import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from online_svm.stream.alarm import Alarm
from workers.broker.feed_reader import FeedReader
from workers.errors import InvalidPublication, StateLost, WrongKeyType
from workers.feed.pinned_config import check_supported, stored_groups
from workers.feed.state import FeedState, Publication
from workers.feed.state_fields import count
from workers.reading.answers import message, newest_answer, newest_label, tells_guarantee
from workers.reading.events import Event, known_events
from workers.reading.incidents import Incident, open_alarms, open_incident
from workers.reading.lag import NO_LAG, Lag, backlog, damaged, lag, lags
from workers.reading.registry import holder, require
from workers.reading.usage import (
    NO_MEMORY,
    ConsumerGroup,
    MemoryUse,
    ScorerStatus,
    consumer_groups,
    memory_use,
    scorer_status,
)

_LIFECYCLE = ("began", "stopped", "failed", "input_ended")

_EVENTS = 50  # newest events that are searched for the last start or end of a worker

LABELS = 200
"""Newest entries of `out` that are searched for the last label and the last guarantee."""

_WARMING = 20  # newest entries of `out` that the gateway searches for a prediction


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedStatus:
    """The status of a feed at one moment; a field that was not read keeps its default."""

    feed: str
    now: float = 0.0  # of the sample, in seconds since 1970
    problem: str = ""  # why the feed cannot be read
    exists: bool = True  # whether Redis has any of its keys
    has_begun: bool = True  # whether a worker ever held it
    epoch: int = 0  # number of writers so far
    seq: int = 0  # input entries answered
    n: int = 0  # examples learned
    holder: str | None = None  # the worker that holds the lease
    lag: Lag = NO_LAG
    rate: float | None = None  # entries answered a second; None unless watched for some seconds
    events: tuple[Event, ...] = ()  # the newest ones, in order of time
    answered: bytes = b""  # ID of the newest entry of `out` that was read
    answer: Mapping[str, Any] = field(default_factory=dict)  # see `answers.newest_answer`
    label_at: float | None = None  # see `answers.newest_label`; None if no answer waits for a label
    report: Mapping[str, Any] | None = None  # the newest message of `met`
    incident: Incident | None = None  # the open one
    settings: Mapping[str, Any] = field(default_factory=dict)  # stored ones, by group

    # Only the command `status` reads these.
    waiting_bytes: int = 0  # estimate: mean size of the counted entries, times `waiting`
    cursor: str = "0-0"  # ID of the last entry answered
    out: int = 0  # entries kept in the output streams
    met: int = 0
    alarms: int = 0
    dlq: int = 0
    writer: str | None = None  # the last one
    digest: str = bytes(32).hex()  # of all answers so far
    snapshots: tuple[int, ...] = ()  # examples learned at each, the newest first
    open_alarms: tuple[Alarm, ...] = ()  # the oldest first
    scoring: ScorerStatus | None = None  # None without scorers
    consumers: tuple[ConsumerGroup, ...] = ()  # readers of the answers, such as an archive
    stored: MemoryUse = NO_MEMORY

    @property
    def waiting(self) -> int:
        """Input entries without an answer."""
        return self.lag.entries

    @property
    def waiting_is_at_least(self) -> bool:
        """Whether `waiting` is a lower bound, because counting stopped."""
        return self.lag.is_at_least

    @property
    def waiting_seconds(self) -> float:
        """Age of the oldest waiting entry; 0 if none waits."""
        return self.lag.seconds

    @property
    def pending(self) -> dict[str, Any] | None:
        """Answered examples that wait for labels; None if labels come with their examples."""
        return None if self.lag.labels is None else self.lag.labels.as_dict()

    @property
    def validity(self) -> Mapping[str, Any] | None:
        """The newest report; the JSON has it under this name."""
        return self.report

    @property
    def unlabelled(self) -> int:
        """Answers that wait for their label."""
        return 0 if self.lag.labels is None else self.lag.labels.unlabelled

    @property
    def label_seconds(self) -> float | None:
        """Seconds since the last label, or since the oldest unlabelled answer if that is later."""
        if self.label_at is None:
            return None
        since = None if self.lag.labels is None else self.lag.labels.since
        return max(0.0, self.now - max(self.label_at, since or 0.0) / 1000)

    @property
    def lifecycle(self) -> Event | None:
        """The newest start or end of a worker; `input_ended` outranks later starts and stops."""
        found = [event for event in self.events if event.code in _LIFECYCLE]
        ended = [event for event in found if event.code == "input_ended"]
        last = found[-1] if found else None
        return ended[-1] if ended and last is not None and last.code != "failed" else last

    @property
    def is_replayed(self) -> bool:
        """Whether the last writer still replays: its epoch has no event `began` yet."""
        details = [event.detail for event in self.events if event.code == "began"]
        found = re.match(r"epoch (\d{1,18}),", details[-1]) if details else None
        return found is not None and self.epoch > int(found[1])


def status(reader: FeedReader) -> FeedStatus:
    """Return all that the command `status` shows.

    NoSuchFeed: the feed does not exist. BadConfiguration: its semantics are no longer supported.
    """
    require(reader)
    keys, state = reader.keys, reader.state()
    if state is not None:
        check_supported(keys.feed, state.pinned)
    report, published = reader.last_entry(keys.met), _published(reader)
    # One read gives counters, cursor and digest, so that they are consistent.
    found = _sampled(reader, _stored(keys.feed, state))
    found = with_outputs(reader, found, report=report)
    read = backlog(reader, keys.input, found.cursor.encode())
    return replace(
        found,
        waiting_bytes=read.size * found.waiting // read.entries if read.entries else 0,
        out=reader.length(keys.out),
        met=reader.length(keys.met),
        alarms=reader.length(keys.alarms),
        dlq=reader.length(keys.dlq),
        open_alarms=tuple(open_alarms(reader, report)),
        scoring=scorer_status(reader, found.n, published),
        consumers=tuple(consumer_groups(reader)),
        stored=memory_use(reader, state, published),
    )


def sample(reader: FeedReader) -> FeedStatus:
    """Return the fields of a feed's status that decide its verdict."""
    return with_outputs(reader, progress(reader))


def progress(
    reader: FeedReader, before: FeedStatus | None = None, keeps_lag: bool = False
) -> FeedStatus:
    """Return the counters, the holder and the lag of a feed; the other fields are from `before`.

    StateLost: its position is damaged, or a key holds another type.
    """
    before = before or FeedStatus(feed=reader.keys.feed)
    found = _sampled(reader, _counted(reader, before), keeps_lag)
    return replace(found, problem="")


def with_outputs(
    reader: FeedReader,
    found: FeedStatus,
    before: FeedStatus | None = None,
    report: Sequence[Any] | None = None,
) -> FeedStatus:
    """Return the status `found` with the fields from the output streams and the events.

    Given an earlier status `before`, only later entries of `out` are read, and events only if the
    worker changed or has answered nothing since. `report` is the newest entry of `met`, if the
    caller has read it.
    """
    report = report or reader.last_entry(reader.keys.met)
    told = None if report is None else message(report)
    found = replace(
        _with_answers(reader, found, before),
        report=told if isinstance(told, dict) else None,
        incident=open_incident(reader, report),
    )
    is_same = before is not None and (before.holder, before.epoch) == (found.holder, found.epoch)
    if before is not None and is_same and found.seq > before.seq and not before.is_replayed:
        return replace(found, events=before.events)
    return replace(found, events=tuple(known_events(_parsed(reader, reader.keys.events, _EVENTS))))


def of_many(
    readers: Sequence[FeedReader], sources: Mapping[str, str | None], in_detail: bool
) -> dict[str, FeedStatus]:
    """Return the lag of each feed, for the metrics of a worker; damaged feeds are left out.

    `in_detail` adds counters, the newest report and the newest answer; if these cannot be read,
    `now` stays 0. `sources` as for `lag.lags`.
    """
    measured = lags(readers, sources)
    found = {feed: FeedStatus(feed=feed, lag=each) for feed, each in measured.items()}
    for reader in readers if in_detail else ():
        feed = reader.keys.feed
        if feed in found:
            with suppress(StateLost):
                found[feed] = _detailed(reader, found[feed])
    return found


def check_counts(reader: FeedReader, source: str | None = None) -> None:
    """Read the counters and the lag of a feed; WorkerError: there are none, or they are damaged."""
    lag(reader, source)
    _counted(reader, FeedStatus(feed=reader.keys.feed))


def at_gateway(reader: FeedReader) -> FeedStatus:
    """Return the fields that a request at the gateway needs.

    WorkerError: Redis does not answer, or what is stored is damaged.
    """
    state, waits, feed = reader.state(), lag(reader), reader.keys.feed
    answers = _parsed(reader, reader.keys.out, _WARMING)
    return FeedStatus(
        feed=feed,
        has_begun=state is not None,
        holder=holder(reader),
        lag=waits,
        answer=newest_answer(each for _, each in answers),
        settings={} if state is None else stored_groups(feed, state.pinned),
    )


def _counted(reader: FeedReader, found: FeedStatus) -> FeedStatus:
    stored = reader.state_fields("epoch", "seq", "n")
    try:
        epoch, seq, n = (0 if each is None else count(each) for each in stored)
    except ValueError as error:
        raise damaged(error, reader.keys) from None
    return replace(found, has_begun=stored[0] is not None, epoch=epoch, seq=seq, n=n)


def _stored(feed: str, state: FeedState | None) -> FeedStatus:
    if state is None:
        return FeedStatus(feed=feed, has_begun=False)
    at = state.position
    return FeedStatus(
        feed=feed,
        has_begun=True,
        epoch=state.epoch,
        seq=at.seq,
        n=at.n,
        cursor=at.cursor.decode(),
        digest=at.digest.hex(),
        writer=state.writer,
        snapshots=tuple(pointer.n for pointer in state.snapshots),
    )


def _sampled(reader: FeedReader, found: FeedStatus, keeps_lag: bool = False) -> FeedStatus:
    """Return a status with the time, the holder and the lag of the feed."""
    return replace(
        found,
        now=time.time(),
        exists=found.has_begun or bool(reader.types()),
        holder=holder(reader),
        lag=found.lag if keeps_lag else lag(reader),
    )


def _detailed(reader: FeedReader, found: FeedStatus) -> FeedStatus:
    found = replace(_counted(reader, found), now=time.time())
    report, answer = (_newest_object(reader, key) for key in (reader.keys.met, reader.keys.out))
    return replace(found, report=report, answer=answer or {})


def _newest_object(reader: FeedReader, stream: str) -> dict[str, Any] | None:
    """Return the payload of the last entry of a stream; None if no JSON object can be read."""
    with suppress(StateLost):
        last = reader.last_entry(stream)
        found = None if last is None else message(last)
        return found if isinstance(found, dict) else None
    return None


def _with_answers(reader: FeedReader, found: FeedStatus, before: FeedStatus | None) -> FeedStatus:
    """Return a status with the newest answer and, if labels are awaited, the last label's time.

    One entry is read, or up to `LABELS` if it has no guarantee or labels are awaited.
    """
    if before is not None and found.unlabelled and before.label_at is None:
        before = None  # read older entries again: the last label may be there
    after = b"-" if before is None or not before.answered else before.answered
    answers = _parsed(reader, reader.keys.out, LABELS if found.unlabelled else 1, after)
    if answers and not (found.unlabelled or tells_guarantee(answers[-1][1])):
        answers = _parsed(reader, reader.keys.out, LABELS, after)
    known = () if before is None else (before.answer,)
    label_at = newest_label(answers, None if before is None else before.label_at)
    return replace(
        found,
        answered=answers[-1][0] if answers else b"" if before is None else before.answered,
        answer=newest_answer([*known, *(each for _, each in answers)]),
        label_at=label_at if found.unlabelled else None,
    )


def _parsed(
    reader: FeedReader, stream: str, most: int, after: bytes = b"-"
) -> list[tuple[bytes, Any]]:
    """Return IDs and parsed payloads of the newest entries of a stream, the oldest first."""
    return [(entry[0], message(entry)) for entry in reader.last_entries(stream, most, after)]


def _published(reader: FeedReader) -> Publication | None:
    """Return the newest published state; None if there is none, or its pointer is damaged."""
    try:
        return reader.publication()
    except (InvalidPublication, WrongKeyType):
        return None
