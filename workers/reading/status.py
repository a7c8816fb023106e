"""The status of a feed: one record, which every part of the program reads through this module.

`read_status` reads all fields, for the command `status`. The page reads those that decide the
verdict (`verdict.py`): `read_progress` and `with_outputs`. A worker's metrics (`read_many`) and the
gateway (`read_for_gateway`) read fewer, because they read up to twice a second.
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
from workers.feed.codes import EVENTS_KEPT
from workers.feed.pinned_config import check_supported, stored_groups
from workers.feed.position import parse_id
from workers.feed.state import FeedState, Publication
from workers.feed.state_fields import count
from workers.reading.answers import (
    is_prediction,
    message,
    newest_answer,
    newest_label,
    stored_values,
)
from workers.reading.dates import Dates, learned_at
from workers.reading.events import Event, known_events, notice_silences
from workers.reading.incidents import (
    AnyNotice,
    Incident,
    SilencedNotice,
    incident_of,
    key_of,
    open_alarms,
    open_incident,
    open_notices,
)
from workers.reading.label_facts import MAX_COMPARED_ANSWERS, selective_labels
from workers.reading.lag import (
    NO_LAG,
    NO_MEMORY,
    ConsumerGroup,
    Lag,
    MemoryUse,
    PublishedStatus,
    backlog,
    consumer_groups,
    damaged,
    lag,
    lags,
    memory_use,
)
from workers.reading.registry import holder, require

MAX_NAMED = 8  # features, and open notices, that are named
MAX_ALARMS = 3  # alarms of the open incident that are shown

_LIFECYCLE = ("began", "stopped", "failed", "input_ended")

_MAX_EVENTS = 50  # newest events that are searched for the last start or end of a worker

MAX_SEARCHED = 200
"""Newest entries of `out` that are searched for the last label and the last prediction."""

_MIN_REJECTED = 10  # entries of which most must be rejected

_MAX_SEARCHED_BY_GATEWAY = 20  # the same, for a request at the gateway


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedStatus:
    """The status of a feed at one moment; fields that were not read keep their defaults."""

    feed: str
    now: float = 0.0  # time of reading, in seconds since 1970
    problem: str = ""  # the reason if the feed cannot be read
    exists: bool = True  # whether Redis has any of its keys
    has_begun: bool = True  # whether a worker ever held it
    epoch: int = 0  # number of writers so far
    seq: int = 0  # input entries answered
    n: int = 0  # examples learned
    duplicates: int = 0  # entries answered that repeated an id
    holder: str | None = None  # the worker that holds the lease
    lag: Lag = NO_LAG
    rate: float | None = None  # entries answered a second; None until measured for some seconds
    events: tuple[Event, ...] = ()  # the newest, in order of time
    answered: bytes = b""  # ID of the newest entry of `out` that was read
    answer: Mapping[str, Any] = field(default_factory=dict)  # see `answers.newest_answer`
    # Rejected among the newest entries of `out` that were searched, and the number of these, if the
    # newest is rejected and most of them are.
    rejected: tuple[int, int] | None = None
    label_at: float | None = None  # see `answers.newest_label`; None if no answer waits for a label
    report: Mapping[str, Any] | None = None  # the newest message of `met`
    incident: Incident | None = None  # the open incident
    silences: tuple[Event, ...] = ()  # of notices; read while a notice is open
    silences_read: bytes = b"-"  # ID of the newest event that was read for them
    dates: Dates = field(default_factory=dict)  # of the examples that alarms and notices name
    settings: Mapping[str, Any] = field(default_factory=dict)  # stored settings, by group

    # Only `read_status` reads these.
    waiting_bytes: int = 0  # estimate: mean size of the counted entries, times `waiting`
    cursor: str = "0-0"  # ID of the last entry answered
    out: int = 0  # entries kept in the output streams
    met: int = 0
    alarms: int = 0
    dlq: int = 0
    kinds: Sequence[Mapping[str, Any]] = ()  # features in another kind than was learned
    memory: Mapping[str, Any] = field(default_factory=dict)  # see `MemoryStatus`; may be empty
    writer: str | None = None  # the last worker that wrote to the feed
    digest: str = bytes(32).hex()  # of all answers so far
    snapshots: tuple[int, ...] = ()  # examples learned at each snapshot, the newest first
    open_alarms: tuple[Alarm, ...] = ()  # the oldest first
    selective_labels: str = ""  # see `selective_labels`
    published: PublishedStatus | None = None  # None if no state is published
    consumers: tuple[ConsumerGroup, ...] = ()  # readers of the answers, such as a recording
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
        """Counts of answered examples that wait; None if labels come with their examples."""
        return None if self.lag.labels is None else self.lag.labels.as_dict()

    @property
    def validity(self) -> Mapping[str, Any] | None:
        """The newest report, under its name in the JSON."""
        return self.report

    @property
    def notices(self) -> tuple[AnyNotice, ...]:
        """Open notices of the newest report that nobody silenced, of features first."""
        known = {event.silenced for event in self.silences}
        return tuple(one for one in open_notices(self.report) if key_of(one) not in known)

    @property
    def silenced_notices(self) -> tuple[SilencedNotice, ...]:
        """Open notices of the newest report that a person silenced."""
        notes = {event.silenced: event for event in self.silences}
        found = ((one, notes.get(key_of(one))) for one in open_notices(self.report))
        return tuple(
            SilencedNotice(one, note.writer, note.detail) for one, note in found if note is not None
        )

    @property
    def unlabelled(self) -> int:
        """Answers that wait for their label."""
        return 0 if self.lag.labels is None else self.lag.labels.unlabelled

    @property
    def label_seconds(self) -> float | None:
        """Seconds since the last label, or since the oldest unlabelled answer if that is later."""
        labels = self.lag.labels
        if self.label_at is None:
            return None
        answered_at = parse_id(self.answered)[0] if self.answered else 0
        oldest_at = answered_at - 1000 * (0.0 if labels is None else labels.seconds)
        return max(0.0, self.now - max(self.label_at, oldest_at) / 1000)

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


def read_status(reader: FeedReader) -> FeedStatus:
    """Return all fields of a feed's status.

    NoSuchFeed: the feed does not exist. BadConfiguration: an earlier version began it.
    """
    require(reader)
    keys, state = reader.keys, reader.state()
    if state is not None:
        check_supported(keys.feed, state.pinned)
    report, published = reader.last_entry(keys.met), _published(reader)
    # Counters, cursor and digest come from one read of the state, so that they are consistent.
    status = _with_holder_and_lag(reader, _of_state(keys.feed, state))
    status = with_outputs(reader, status, report=report)
    counted = backlog(reader, keys.input, status.cursor.encode())
    return replace(
        status,
        waiting_bytes=counted.size * status.waiting // counted.entries if counted.entries else 0,
        out=reader.length(keys.out),
        met=reader.length(keys.met),
        alarms=reader.length(keys.alarms),
        dlq=reader.length(keys.dlq),
        open_alarms=tuple(open_alarms(reader, report)),
        selective_labels=selective_labels(
            status.report or {},
            lambda: [each for _, each in _newest_payloads(reader, keys.out, MAX_COMPARED_ANSWERS)],
        ),
        published=None if published is None else PublishedStatus.of(reader, status.n, published),
        consumers=tuple(consumer_groups(reader)),
        stored=memory_use(reader, state, published),
    )


def read_progress(
    reader: FeedReader, before: FeedStatus | None = None, keeps_lag: bool = False
) -> FeedStatus:
    """Return the counters, the holder and the lag of a feed; the other fields are from `before`.

    StateLost: its position is damaged, or a key holds another type.
    """
    before = before or FeedStatus(feed=reader.keys.feed)
    status = _with_holder_and_lag(reader, _with_counters(reader, before), keeps_lag)
    return replace(status, problem="")


def with_outputs(
    reader: FeedReader,
    status: FeedStatus,
    before: FeedStatus | None = None,
    report: Sequence[Any] | None = None,
) -> FeedStatus:
    """Return a status with the fields that are read from the output streams and the events.

    Given an earlier status `before`, only later entries of `out` are read, and events only if the
    worker changed or has answered nothing since. `report` is the newest entry of `met`, if the
    caller has read it.
    """
    report = report or reader.last_entry(reader.keys.met)
    payload = None if report is None else message(report)
    status = replace(
        _with_answers(reader, status, before),
        report=payload if isinstance(payload, dict) else None,
        incident=open_incident(reader, report),
    )
    status = with_dates(reader, with_silences(reader, status), before)
    known = {} if before is None or before.epoch != status.epoch else before.settings
    status = replace(status, settings=known or stored_values(reader))
    is_same = before is not None and (before.holder, before.epoch) == (status.holder, status.epoch)
    if before is not None and is_same and status.seq > before.seq and not before.is_replayed:
        return replace(status, events=before.events)
    events = known_events(_newest_payloads(reader, reader.keys.events, _MAX_EVENTS))
    return replace(status, events=tuple(events))


def with_dates(
    reader: FeedReader, status: FeedStatus, before: FeedStatus | None = None
) -> FeedStatus:
    """Return a status with the dates of the examples that its alarms and notices name."""
    named = [*status.notices[:MAX_NAMED], *status.silenced_notices[:MAX_NAMED]]
    numbers = {notice.since for notice in named}
    if status.incident is not None:
        shown = status.incident.findings[:MAX_ALARMS]
        numbers |= {status.incident.since, *(n for alarm in shown for n in (alarm.n, alarm.since))}
    # Of another writer the numbers may be others: `erase` learns a feed again.
    known = {} if before is None or before.epoch != status.epoch else before.dates
    missing = numbers - known.keys()
    found = learned_at(reader, missing) if missing else {}
    return replace(status, dates={n: known[n] for n in numbers & known.keys()} | found)


def with_silences(reader: FeedReader, status: FeedStatus) -> FeedStatus:
    """Return a status with the silences of its open notices; only newer events are read."""
    if not open_notices(status.report):
        return status
    found = _newest_payloads(reader, reader.keys.events, EVENTS_KEPT, status.silences_read)
    return replace(
        status,
        silences=notice_silences(known_events(found), status.silences),
        silences_read=found[-1][0] if found else status.silences_read,
    )


def read_many(readers: Sequence[FeedReader], in_detail: bool) -> dict[str, FeedStatus]:
    """Return the lag of each feed, for the metrics of a worker; damaged feeds are left out.

    `in_detail` adds counters, settings, the newest report, the newest answer, and the open alarms
    as an incident, without those that closed; if these cannot be read, `now` stays 0.
    """
    measured = lags(readers)
    found = {feed: FeedStatus(feed=feed, lag=each) for feed, each in measured.items()}
    for reader in readers if in_detail else ():
        feed = reader.keys.feed
        if feed in found:
            with suppress(StateLost):
                status = replace(_with_counters(reader, found[feed]), now=time.time())
                last = _newest_entry(reader, reader.keys.met)
                answer = _newest_entry(reader, reader.keys.out)
                status = replace(
                    status,
                    report=None if last is None else message(last),
                    answer={} if answer is None else message(answer),
                    settings=stored_values(reader),
                    incident=_reported_incident(reader, last),
                )
                found[feed] = with_silences(reader, status)
    return found


def check_readable(reader: FeedReader) -> None:
    """Raise WorkerError if the counters or the lag of a feed cannot be read."""
    lag(reader)
    _with_counters(reader, FeedStatus(feed=reader.keys.feed))


def read_for_gateway(reader: FeedReader) -> FeedStatus:
    """Return the fields that a request at the gateway needs.

    WorkerError: Redis does not answer, or the stored state is damaged.
    """
    state, waits, feed = reader.state(), lag(reader), reader.keys.feed
    answers = _newest_payloads(reader, reader.keys.out, _MAX_SEARCHED_BY_GATEWAY)
    return FeedStatus(
        feed=feed,
        has_begun=state is not None,
        holder=holder(reader),
        lag=waits,
        answer=newest_answer(payload for _, payload in answers),
        settings={} if state is None else stored_groups(feed, state.pinned),
    )


def _with_counters(reader: FeedReader, status: FeedStatus) -> FeedStatus:
    stored = reader.state_fields("epoch", "seq", "n")
    try:
        epoch, seq, n = (0 if value is None else count(value) for value in stored)
    except ValueError as error:
        raise damaged(error, reader.keys) from None
    return replace(status, has_begun=stored[0] is not None, epoch=epoch, seq=seq, n=n)


def _of_state(feed: str, state: FeedState | None) -> FeedStatus:
    if state is None:
        return FeedStatus(feed=feed, has_begun=False)
    position = state.position
    return FeedStatus(
        feed=feed,
        has_begun=True,
        epoch=state.epoch,
        seq=position.seq,
        n=position.n,
        cursor=position.cursor.decode(),
        digest=position.digest.hex(),
        duplicates=state.duplicates,
        kinds=state.kinds,
        memory=state.memory,
        writer=state.writer,
        snapshots=tuple(pointer.n for pointer in state.snapshots),
    )


def _with_holder_and_lag(
    reader: FeedReader, status: FeedStatus, keeps_lag: bool = False
) -> FeedStatus:
    return replace(
        status,
        now=time.time(),
        exists=status.has_begun or bool(reader.types()),
        holder=holder(reader),
        lag=status.lag if keeps_lag else lag(reader),
    )


def _newest_entry(reader: FeedReader, stream: str) -> Sequence[Any] | None:
    """Return the last entry of a stream; None if no JSON object can be read in it."""
    with suppress(StateLost):
        last = reader.last_entry(stream)
        return last if last is not None and isinstance(message(last), dict) else None
    return None


def _reported_incident(reader: FeedReader, report: Sequence[Any] | None) -> Incident | None:
    """Return the open alarms of a report, and those after it, as an incident."""
    with suppress(StateLost):
        return None if report is None else incident_of(open_alarms(reader, report))
    return None


def _with_answers(reader: FeedReader, status: FeedStatus, before: FeedStatus | None) -> FeedStatus:
    """Return a status with the newest answer and, if labels are awaited, the last label's time.

    One entry is read; up to `MAX_SEARCHED` if it is no prediction, or if labels are awaited.
    """
    if before is not None and status.unlabelled and before.label_at is None:
        before = None  # read older entries again: they may hold the last label
    after = b"-" if before is None or not before.answered else before.answered
    out = reader.keys.out
    answers = _newest_payloads(reader, out, MAX_SEARCHED if status.unlabelled else 1, after)
    if answers and not (status.unlabelled or is_prediction(answers[-1][1])):
        answers = _newest_payloads(reader, out, MAX_SEARCHED, after)
    known = () if before is None else (before.answer,)
    label_at = newest_label(answers, None if before is None else before.label_at)
    rejected = None if before is None else before.rejected
    if answers:
        rejected = _rejected(reader, answers[-1][1])
    return replace(
        status,
        answered=answers[-1][0] if answers else b"" if before is None else before.answered,
        answer=newest_answer([*known, *(payload for _, payload in answers)]),
        label_at=label_at if status.unlabelled else None,
        rejected=rejected,
    )


def _rejected(reader: FeedReader, newest: Any) -> tuple[int, int] | None:
    """Return the rejected among the newest entries of `out`, if the newest is, and most are."""
    if not _is_rejected(newest):
        return None
    found = [
        _is_rejected(one) for _, one in _newest_payloads(reader, reader.keys.out, MAX_SEARCHED)
    ]
    is_most = len(found) >= _MIN_REJECTED and 2 * sum(found) > len(found)
    return (sum(found), len(found)) if is_most else None


def _is_rejected(payload: Any) -> bool:
    return isinstance(payload, dict) and payload.get("status") == "rejected"


def _newest_payloads(
    reader: FeedReader, stream: str, count: int, after: bytes = b"-"
) -> list[tuple[bytes, Any]]:
    """Return IDs and parsed payloads of the newest entries of a stream, the oldest first."""
    return [(entry[0], message(entry)) for entry in reader.last_entries(stream, count, after)]


def _published(reader: FeedReader) -> Publication | None:
    """Return the newest published state; None if there is none, or its pointer is damaged."""
    try:
        return reader.publication()
    except (InvalidPublication, WrongKeyType):
        return None
