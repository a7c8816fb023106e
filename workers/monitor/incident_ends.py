"""The ends of a feed's incidents that are still to be told: reports of `met` after a position.

The position is that of a consumer group of `met`, which Redis keeps: ends up to it were told. So a
process that dies before an end was taken leaves it to the next.
"""

from bisect import bisect_right
from typing import NamedTuple

from workers.broker.batch_size import Entry
from workers.broker.feed_reader import FeedReader, pairs_of
from workers.errors import WorkerError
from workers.feed.position import parse_id
from workers.monitor.alarm_queue import GROUP
from workers.reading.answers import answer, message
from workers.reading.incidents import Chapter, Incident, OpenThen, open_at_report, open_before

_KEEP_EVERY = 100
"""Reports after which the position is kept although they end nothing."""

_MOST = 1000  # entries of `alarms` between the reports of a page that are looked at


class End(NamedTuple):
    """The end of an incident, and the report that says so."""

    chapter: Chapter
    report: dict[str, object]


class IncidentEnds:
    """Finds the ends of incidents, one at a time.

    Parameters
    ----------
    reader : FeedReader

    Attributes
    ----------
    after : bytes
        Where a new group begins: the last entry that was answered before.
    is_open : bool
        Whether an incident may be open, so that the next report may end it.
    """

    def __init__(self, reader: FeedReader) -> None:
        self._reader = reader
        self.after, self.is_open = b"0-0", True
        self.reset()

    def reset(self) -> None:
        """Read the position again, before the next look."""
        self._at: bytes | None = None
        self._last: OpenThen | None = None
        self._passed = 0

    def next(self, bound: bytes | None) -> End | None:
        """Return the next end; None if there is none before a bound, the ID of an alarm.

        Raises
        ------
        WorkerError
            If Redis does not answer, or refuses. The next call then begins with `reset`.
        """
        at, last = self._at, self._last
        self._at = None  # in case of an error
        if at is None:
            if (at := self._open()) is None:
                self.is_open = True
                return None
            last = open_before(self._reader, _following(at))
        upto = b"+" if bound is None else b"(" + bound
        for page in self._reader.pages(self._reader.keys.met, at, upto):
            raised = self._raised(b"0-0" if last is None else last.entry, page[-1][0])
            for entry in page:
                mark, at = OpenThen.of(entry[0], message(entry)), entry[0]
                if mark is None:
                    continue
                found, last = self._end(mark, last, raised, entry), mark
                self._passed += 1
                if found is not None:
                    self._at, self._last = at, last
                    return found
        self._at, self._last = at, last
        self.is_open = last is None or bool(last.alarms) or self._is_followed(last)
        if self._passed >= _KEEP_EVERY:
            self.told(at)
        return None

    def told(self, entry: bytes) -> None:
        """Keep the position: ends up to this report were told."""
        self._reader.call("XGROUP", "SETID", self._reader.keys.met, GROUP, entry)
        self._passed = 0

    def _end(
        self, mark: OpenThen, last: OpenThen | None, raised: list[tuple[int, int]], entry: Entry
    ) -> End | None:
        if mark.alarms:
            return None
        before = bisect_right(raised, (-1, -1) if last is None else parse_id(last.entry))
        was_open = bool(last and last.alarms)
        if not was_open and bisect_right(raised, parse_id(mark.entry)) == before:
            return None
        incident = open_at_report(self._reader, mark.entry)
        if incident is None:  # what was raised is of no incident
            return None
        return End(Chapter("ended", mark.entry, Incident(incident.parts, mark.n)), answer(entry))

    def _is_followed(self, last: OpenThen) -> bool:
        """Return whether alarms were raised since the last report: the next lists them as open."""
        alarms = self._reader.keys.alarms
        return bool(self._reader.call("XRANGE", alarms, b"(" + last.entry, "+", "COUNT", 1))

    def _raised(self, after: bytes, upto: bytes) -> list[tuple[int, int]]:
        """Return the IDs of the entries with alarms between two reports."""
        if parse_id(after) >= parse_id(upto):
            return []
        alarms = self._reader.keys.alarms
        found = self._reader.call("XRANGE", alarms, b"(" + after, upto, "COUNT", _MOST)
        return [parse_id(entry[0]) for entry in found]

    def _open(self) -> bytes | None:
        """Return the position, of a new group if there is none; None while there is no report."""
        reader, met = self._reader, self._reader.keys.met
        if not reader.call("EXISTS", met):
            return None
        try:
            reader.call("XGROUP", "CREATE", met, GROUP, self.after)
        except WorkerError as error:
            if "BUSYGROUP" not in str(error):
                raise
        groups = map(pairs_of, reader.call("XINFO", "GROUPS", met))
        own = next(one for one in groups if one[b"name"] == GROUP.encode())
        return bytes(own[b"last-delivered-id"])


def _following(entry: bytes) -> bytes:
    """Return the ID after one: what is before it includes the one itself."""
    milliseconds, number = parse_id(entry)
    last = 2**64 - 1
    if number < last:
        return b"%d-%d" % (milliseconds, number + 1)
    return entry if milliseconds == last else b"%d-0" % (milliseconds + 1)
