"""Deliveries that the incidents of a feed still need: alarms and ends, by two consumer groups.

Redis keeps the position of each group. An entry of `alarms` is acknowledged after the receiver took
all of its alarms, and the position in `met` moves after it took an end. So neither a crash nor a
receiver that is away for days loses any that the streams still hold. Alarms that are trimmed unread
are counted: Redis 7 counts the entries that a stream ever got, and those that a group read.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from workers.broker import commands
from workers.broker.connection import Connection
from workers.broker.feed_reader import FeedReader
from workers.broker.streams import Entry, Group, GroupInfo, StreamInfo
from workers.feed.keys import FeedKeys
from workers.feed.position import next_id, parse_id
from workers.log import Logger
from workers.reading.answers import answer, message
from workers.reading.incidents import (
    Incident,
    IncidentEvent,
    ReportedOpenAlarms,
    open_at_report,
    open_before,
)

GROUP = "osvm-webhook"
"""Consumer group of `alarms` and `met`."""

CONSUMER = "webhook"
"""One name for all processes: the next one finds the unfinished entries of the last."""

_REPORTS_PER_SAVE = 100  # after so many reports the position is stored, though they end nothing
_MAX_ALARM_ENTRIES = 1000  # of `alarms` that are read between the reports of a page

log = Logger("online_svm.webhook")


class AlarmQueue:
    """The undelivered entries of `alarms`, one at a time."""

    def __init__(self, connection: Connection, keys: FeedKeys) -> None:
        self._redis, self._keys = connection, keys
        self._group = Group(connection, keys.alarms, GROUP)
        self.after = b"0-0"  # where a new group begins; an existing one has its own position
        self.lost = 0  # entries trimmed undelivered; before Redis 7 only those that were read
        self._has_group = self._was_finished = False

    def reset(self) -> None:
        """Look again for entries that this process or another read and did not acknowledge."""
        self._has_group = self._was_finished = False

    def next(self) -> Entry | None:
        """Return the next entry; None if there is none, or no feed.

        After a WorkerError of Redis the next call begins with `reset`.
        """
        has_group, was_finished = self._has_group, self._was_finished
        self.reset()  # in case of an error
        if not (has_group or self._open()):
            return None
        # First the entries that an earlier process, or attempt, did not finish.
        found = [] if was_finished else self._group.delivered_before(CONSUMER)
        if not found:
            found, was_finished = self._unread(), True
        self._has_group, self._was_finished = True, was_finished
        return found[0] if found else None

    def done(self, entry: Entry) -> None:
        """Acknowledge an entry."""
        self._group.acknowledge(entry[0])

    def _open(self) -> bool:
        """Create the group if there is none; return False if there is no feed yet."""
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
        """Read the next entry; count those before it that were trimmed."""
        found, stream, group = self._group.next_entry(CONSUMER)
        trimmed = _trimmed_unread(stream, group)
        if trimmed:
            self._pass_over(trimmed, stream, found)
        return found

    def _pass_over(self, trimmed: int, stream: StreamInfo, found: Sequence[Entry]) -> None:
        self.lost += trimmed
        log.warning(
            "alarms were trimmed before they were delivered", feed=self._keys.feed, entries=trimmed
        )
        at = found[0][0] if found else stream.last_id
        self._group.move(at, stream.gone + len(found))


def _trimmed_unread(stream: StreamInfo, group: GroupInfo) -> int:
    """Return how many entries were trimmed before the group read them.

    It is 0 before Redis 7, which does not count, and for a group that does not know its count.
    """
    if group.entries_read is None:
        return 0
    last = parse_id(group.last_delivered)
    if stream.first is not None and parse_id(stream.first[0]) <= last:
        return 0
    # All read entries are gone, so the other trimmed entries were not read.
    return max(0, stream.gone - group.entries_read)


class End(NamedTuple):
    """The end of an incident, and the report that declares it."""

    event: IncidentEvent
    report: dict[str, object]


class IncidentEnds:
    """Finds the ends of incidents, one at a time."""

    def __init__(self, reader: FeedReader) -> None:
        self._reader, self._group = reader, reader.group(reader.keys.met, GROUP)
        self.after = b"0-0"  # where a new group begins
        self.is_open = True  # whether an incident may be open, so that the next report may end it
        self.reset()

    def reset(self) -> None:
        """Read the position again, before the next look."""
        self._at: bytes | None = None
        self._last: ReportedOpenAlarms | None = None
        self._passed = 0

    def next(self, bound: bytes | None) -> End | None:
        """Return the next end; None if there is none before a bound, the ID of an alarm.

        After a WorkerError of Redis the next call begins with `reset`.
        """
        at, last = self._at, self._last
        self._at = None  # in case of an error
        if at is None:
            if (at := self._open()) is None:
                self.is_open = True
                return None
            last = open_before(self._reader, next_id(at) or at)
        upto = b"+" if bound is None else commands.after(bound)
        for page in self._reader.pages(self._reader.keys.met, at, upto):
            raised = self._raised(b"0-0" if last is None else last.entry, page[-1][0])
            for entry in page:
                mark, at = ReportedOpenAlarms.of(entry[0], message(entry)), entry[0]
                if mark is None:
                    continue
                found, last = self._end(mark, last, raised, entry), mark
                self._passed += 1
                if found is not None:
                    self._at, self._last = at, last
                    return found
        self._at, self._last = at, last
        self.is_open = last is None or bool(last.alarms) or self._is_followed(last)
        if self._passed >= _REPORTS_PER_SAVE:
            self.deliver_up_to(at)
        return None

    def deliver_up_to(self, entry: bytes) -> None:
        """Store the position: ends up to this report were delivered."""
        self._group.move(entry)
        self._passed = 0

    def _end(
        self,
        mark: ReportedOpenAlarms,
        last: ReportedOpenAlarms | None,
        raised: list[tuple[int, int]],
        entry: Entry,
    ) -> End | None:
        if mark.alarms:
            return None
        before = bisect_right(raised, (-1, -1) if last is None else parse_id(last.entry))
        was_open = bool(last and last.alarms)
        if not was_open and bisect_right(raised, parse_id(mark.entry)) == before:
            return None
        incident = open_at_report(self._reader, mark.entry)
        if incident is None:  # the alarms belong to no incident
            return None
        return End(
            IncidentEvent("ended", mark.entry, Incident(incident.parts, mark.n)), answer(entry)
        )

    def _is_followed(self, last: ReportedOpenAlarms) -> bool:
        """Return whether alarms follow the last report: the next one lists them as open."""
        return self._reader.first_entry(self._reader.keys.alarms, after=last.entry) is not None

    def _raised(self, after: bytes, upto: bytes) -> list[tuple[int, int]]:
        """Return the IDs of the entries with alarms between two reports."""
        if parse_id(after) >= parse_id(upto):
            return []
        alarms = self._reader.keys.alarms
        found = self._reader.entries(alarms, commands.after(after), upto, _MAX_ALARM_ENTRIES)
        return [parse_id(entry[0]) for entry in found]

    def _open(self) -> bytes | None:
        """Return the position, after creating the group if necessary; None without any report."""
        if not self._reader.exists(self._reader.keys.met):
            return None
        self._group.create(self.after)
        info = self._group.info()
        assert info is not None
        return info.last_delivered
