"""Pending deliveries of a feed's incidents and notices, from consumer groups of `alarms` and `met`.

Redis keeps the position of each group. An entry of `alarms` is acknowledged after the receiver
accepted all of its alarms; the position in `met` moves after it accepted the end of an incident. So
a crash, or a receiver that is down for days, loses nothing that the streams still hold. Alarms that
are trimmed before delivery are counted, by the counters of Redis 7: entries ever added to a stream,
and entries read by a group. The notices have a group of their own, which reads `met`.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from workers.broker import commands
from workers.broker.connection import Connection
from workers.broker.feed_reader import FeedReader
from workers.broker.streams import Entry, Group, GroupInfo, StreamInfo
from workers.feed.keys import FeedKeys
from workers.feed.position import next_id, parse_id
from workers.log import Logger
from workers.reading.answers import answer, as_object, message
from workers.reading.incidents import (
    AnyNotice,
    Incident,
    IncidentEvent,
    NoticeKey,
    ReportedOpenAlarms,
    key_of,
    open_at_report,
    open_before,
    open_notices,
)

GROUP = "osvm-webhook"  # consumer group of `alarms` and `met`
NOTICE_GROUP = "osvm-notices"  # of `met`

CONSUMER = "webhook"
"""The consumer name of every process, so that a process finds the pending entries of the last."""

_REPORTS_PER_SAVE = 100  # reports that tell no news, after which the position is stored
_MAX_ALARM_ENTRIES = 1000  # entries of `alarms` that are read for a page of reports

log = Logger("online_svm.webhook")


class AlarmQueue:
    """The undelivered entries of `alarms`, one at a time."""

    def __init__(self, connection: Connection, keys: FeedKeys) -> None:
        self._redis, self._keys = connection, keys
        self._group = Group(connection, keys.alarms, GROUP)
        self.after = b"0-0"  # start of a new group; an existing group has its own position
        self.lost = 0  # entries trimmed before delivery; before Redis 7 only those already read
        self._has_group = self._has_no_pending = False

    def reset(self) -> None:
        """Make `next` start again with the entries that were read and not acknowledged."""
        self._has_group = self._has_no_pending = False

    def next(self) -> Entry | None:
        """Return the next entry; None if there is none, or no feed.

        After a WorkerError the queue is `reset`.
        """
        has_group, has_no_pending = self._has_group, self._has_no_pending
        self.reset()  # undone below unless Redis fails
        if not (has_group or self._open()):
            return None
        # Pending entries of an earlier process or attempt come first.
        found = [] if has_no_pending else self._group.delivered_before(CONSUMER)
        if not found:
            found, has_no_pending = self._unread(), True
        self._has_group, self._has_no_pending = True, has_no_pending
        return found[0] if found else None

    def done(self, entry: Entry) -> None:
        """Acknowledge an entry."""
        self._group.acknowledge(entry[0])

    def _open(self) -> bool:
        """Create the group unless it exists; return False if the feed does not exist yet."""
        keys = self._keys
        if not self._redis.exists(keys.state):
            return False
        if not self._group.create(self.after, makes_stream=True):
            return True
        stream = self._redis.stream_info(keys.alarms)
        is_at_the_end = parse_id(stream.last_id) <= parse_id(self.after)
        if stream.added is not None and is_at_the_end:
            self._group.move(self.after, stream.added)
        return True

    def _unread(self) -> list[Entry]:
        """Read the next entry; count the unread entries that were trimmed before it."""
        found, stream, group = self._group.next_entry(CONSUMER)
        trimmed = _trimmed_unread(stream, group)
        if trimmed:
            self.lost += trimmed
            log.warning(
                "alarms were trimmed before they were delivered",
                feed=self._keys.feed, entries=trimmed,
            )  # fmt: skip
            at = found[0][0] if found else stream.last_id
            self._group.move(at, stream.gone + len(found))
        return found


def _trimmed_unread(stream: StreamInfo, group: GroupInfo) -> int:
    """Return the number of entries that were trimmed before the group read them.

    It is 0 if Redis does not count them: before Redis 7, or for a group without `entries-read`.
    """
    if group.entries_read is None:
        return 0
    last = parse_id(group.last_delivered)
    if stream.first is not None and parse_id(stream.first[0]) <= last:
        return 0
    # All entries that the group read are gone, so the rest of the trimmed ones were unread.
    return max(0, stream.gone - group.entries_read)


class ReportPosition:
    """The position of a group in `met`; it moves at once, or after many reports without a find.

    Attributes
    ----------
    start : bytes
        ID of the entry after which a new group begins.
    """

    def __init__(self, reader: FeedReader, group: str) -> None:
        self._reader, self._group = reader, reader.group(reader.keys.met, group)
        self.start = b"0-0"
        self.passed = 0  # reports since the last `move`

    def read(self) -> bytes | None:
        """Return the position, after creating the group unless it exists; None without reports."""
        self.passed = 0
        if not self._reader.exists(self._reader.keys.met):
            return None
        self._group.create(self.start)
        info = self._group.info()
        assert info is not None
        return info.last_delivered

    def move(self, entry: bytes) -> None:
        """Store the position: what was found up to this report was delivered."""
        self._group.move(entry)
        self.passed = 0

    def move_if_far(self, entry: bytes) -> None:
        """Store the position, if many reports were passed since it was stored."""
        if self.passed >= _REPORTS_PER_SAVE:
            self.move(entry)


class End(NamedTuple):
    """The end of an incident, and the report that declares it."""

    event: IncidentEvent
    report: dict[str, object]


class IncidentEnds:
    """Finds the ends of incidents, one at a time."""

    def __init__(self, reader: FeedReader) -> None:
        self._reader, self.position = reader, ReportPosition(reader, GROUP)
        self.is_open = True  # whether an incident may be open, so that the next report may end it
        self.reset()

    def reset(self) -> None:
        """Make `next` read the position again."""
        self._at: bytes | None = None
        self._last: ReportedOpenAlarms | None = None

    def next(self, bound: bytes | None) -> End | None:
        """Return the next end before a bound, the ID of an alarm; None if there is none.

        After a WorkerError it is `reset`.
        """
        at, last = self._at, self._last
        self._at = None  # restored below unless Redis fails
        if at is None:
            if (at := self.position.read()) is None:
                self.is_open = True
                return None
            last = open_before(self._reader, next_id(at) or at)
        upto = b"+" if bound is None else commands.after(bound)
        for page in self._reader.pages(self._reader.keys.met, at, upto):
            raised = self._raised(b"0-0" if last is None else last.entry, page[-1][0])
            for entry in page:
                report, at = ReportedOpenAlarms.of(entry[0], message(entry)), entry[0]
                if report is None:
                    continue
                found, last = self._end(report, last, raised, entry), report
                self.position.passed += 1
                if found is not None:
                    self._at, self._last = at, last
                    return found
        self._at, self._last = at, last
        self.is_open = last is None or bool(last.alarms) or self._is_followed(last)
        self.position.move_if_far(at)
        return None

    def _end(
        self,
        report: ReportedOpenAlarms,
        last: ReportedOpenAlarms | None,
        raised: list[tuple[int, int]],
        entry: Entry,
    ) -> End | None:
        """Return the end that a report declares, given the report before it."""
        if report.alarms:
            return None
        before = bisect_right(raised, (-1, -1) if last is None else parse_id(last.entry))
        was_open = bool(last and last.alarms)
        if not was_open and bisect_right(raised, parse_id(report.entry)) == before:
            return None
        incident = open_at_report(self._reader, report.entry)
        if incident is None:  # the alarms belong to no incident
            return None
        ended = Incident(incident.parts, report.n)
        return End(IncidentEvent("ended", report.entry, ended), answer(entry))

    def _is_followed(self, last: ReportedOpenAlarms) -> bool:
        """Return whether alarms follow the last report; the next report lists them as open."""
        return self._reader.first_entry(self._reader.keys.alarms, after=last.entry) is not None

    def _raised(self, after: bytes, upto: bytes) -> list[tuple[int, int]]:
        """Return the IDs of the entries of `alarms` between two reports."""
        if parse_id(after) >= parse_id(upto):
            return []
        alarms = self._reader.keys.alarms
        found = self._reader.entries(alarms, commands.after(after), upto, _MAX_ALARM_ENTRIES)
        return [parse_id(entry[0]) for entry in found]


class NoticeStep(NamedTuple):
    """A notice that began or ended between two reports."""

    step: Literal["began", "ended"]
    entry: bytes  # ID of the later report
    number: int  # of the change, in that report
    notice: AnyNotice
    report: Mapping[str, Any]


class NoticeChanges:
    """Finds the changes of open notices; the position in `met` moves after the last of a report."""

    def __init__(self, reader: FeedReader) -> None:
        self._reader, self.position = reader, ReportPosition(reader, NOTICE_GROUP)
        self.reset()

    def reset(self) -> None:
        """Make `next` read the position again."""
        self._at: bytes | None = None
        self._open: dict[NoticeKey, AnyNotice] = {}
        self._left = deque[NoticeStep]()

    def next(self) -> NoticeStep | None:
        """Return the next change, until it is `done`; None if there is none.

        After a WorkerError it is `reset`.
        """
        if self._left:
            return self._left[0]
        at, known = self._at, self._open
        self.reset()  # undone below unless Redis fails
        if at is None:
            if (at := self.position.read()) is None:
                return None
            before = self._reader.last_entry(self._reader.keys.met, at)
            known = _open_in({} if before is None else as_object(message(before)))
        for page in self._reader.pages(self._reader.keys.met, at):
            for entry in page:
                report, at = as_object(message(entry)), entry[0]
                self.position.passed += 1
                if "monitors" in report:
                    found = _open_in(report)
                    self._left = deque(_changes(known, found, at, report))
                    known = found
                if self._left:
                    self._at, self._open = at, known
                    return self._left[0]
        self._at, self._open = at, known
        self.position.move_if_far(at)
        return None

    def done(self) -> None:
        """Go on to the next change."""
        change = self._left.popleft()
        if not self._left:
            self.position.move(change.entry)


def _open_in(report: Mapping[str, Any]) -> dict[NoticeKey, AnyNotice]:
    return {key_of(notice): notice for notice in open_notices(report)}


def _changes(
    before: Mapping[NoticeKey, AnyNotice],
    now: Mapping[NoticeKey, AnyNotice],
    entry: bytes,
    report: Mapping[str, Any],
) -> list[NoticeStep]:
    """Return the changes from one report to the next: ends first."""
    found = [NoticeStep("ended", entry, 0, before[key], report) for key in before.keys() - now]
    found += [NoticeStep("began", entry, 0, now[key], report) for key in now.keys() - before]
    found.sort(key=lambda change: (change.step == "began", key_of(change.notice)))
    return [change._replace(number=number) for number, change in enumerate(found)]
