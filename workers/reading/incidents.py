"""Alarms of a feed, and its incidents: the alarms of one change, until the guarantee is back.

One change of a stream raises several alarms: of classes, of bins, of scores. They are the parts of
one incident. It begins with an alarm while no other is open, and ends with the first report that
lists no open alarm. Incidents are not stored; they are computed from the streams `alarms` and
`met`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import groupby
from typing import Any, Literal, NamedTuple

from online_svm.stream.alarm import Alarm
from online_svm.stream.notice import FeatureNotice, Notice
from workers.broker import commands
from workers.broker.feed_reader import FeedReader
from workers.broker.streams import Entry, no_answer
from workers.errors import StateLost
from workers.feed.keys import ALARM
from workers.feed.position import parse_id
from workers.reading.answers import answer, as_object, message
from workers.reading.dates import NO_DATES, Dates, date_of
from workers.reading.lag import permitted

MAX_PARTS = 200
"""Newest alarms of an incident that are read and kept, besides the first."""

_WIDE_SCOPES = ("overall", "class")
"""Scopes of alarms about all answers, or about all of a class."""


@dataclass(frozen=True, slots=True)
class RaisedAlarm:
    """An alarm in the stream `alarms`."""

    entry: bytes  # ID of its entry and of the input entry that raised it
    seq: int  # number of that input entry, from 0
    alarm: Alarm

    @property
    def time(self) -> float:
        """Milliseconds in the ID of its entry."""
        return float(parse_id(self.entry)[0])


def raised_alarms(entry_id: bytes, payload: Any) -> list[RaisedAlarm]:
    """Return the alarms of an entry's parsed payload; StateLost if another program wrote it."""
    try:
        seq, alarms = int(payload["seq"]), [_alarm_of(fields) for fields in payload["alarms"]]
    except (LookupError, TypeError, ValueError):
        raise no_answer((entry_id,)) from None
    return [RaisedAlarm(entry_id, seq, alarm) for alarm in alarms]


def dates_of(raised: Iterable[RaisedAlarm]) -> dict[int, float]:
    """Return the times of alarms by the example that raised them."""
    return {one.alarm.n: one.time for one in raised}


def known_alarms(entries: Iterable[tuple[bytes, Any]]) -> list[RaisedAlarm]:
    """Return the alarms of entries (ID, parsed payload), without entries of other programs."""
    found = []
    for entry_id, payload in entries:
        try:
            found += raised_alarms(entry_id, payload)
        except StateLost:
            continue
    return found


def _alarm_of(fields: Mapping[str, Any]) -> Alarm:
    """Return the alarm of a JSON object; LookupError, TypeError or ValueError if it is no alarm."""
    alarm = Alarm.of(fields)
    texts = (alarm.kind, alarm.scope, alarm.name or "", alarm.monitor, alarm.action)
    numbers = alarm.log_wealth, alarm.threshold
    is_typed = isinstance(alarm.n, int) and all(isinstance(text, str) for text in texts)
    if not (is_typed and all(isinstance(each, int | float) for each in numbers)):
        raise TypeError("a field of an alarm has another type")
    alarm_line(alarm)  # raises if a number is a text
    return alarm


def alarm_line(alarm: Alarm, dates: Dates = NO_DATES) -> str:
    """Return an alarm as a line of text, with those of its examples' dates that are known.

    Examples
    --------
    >>> figures = -0.06, -0.09, -0.03, 0.9, 910
    >>> alarm_line(Alarm(5040, "calibration", "class", "b", "bets", 5.7, 5.3, 4000, *figures))
    'at example 5,040: class b: announced 90 of 100, true were 84 (81 to 87), in 910 since \
example 4,000'
    """
    done = "" if alarm.action == "report" else f"; {alarm.action}"
    raised = f" ({date})" if (date := date_of(dates, alarm.n)) else ""
    return f"at example {alarm.n:,}{raised}: {alarm.words_since(date_of(dates, alarm.since))}{done}"


def open_alarms(store: FeedReader, report: Sequence[Any] | None) -> list[Alarm]:
    """Return the open alarms, the oldest first; of each test only the newest.

    They are the open alarms of the newest report and the alarms after it. An alarm that closed
    after that report is still included. StateLost: another program wrote to the streams.
    """
    after, found = b"0-0", list[Alarm]()
    if report is not None:
        monitors = answer(report).get("monitors", {})
        try:
            after, found = report[0], [_alarm_of(fields) for fields in monitors.get("open", ())]
        except (AttributeError, LookupError, TypeError, ValueError):
            raise no_answer(report) from None
    for page in store.pages(store.keys.alarms, after):
        for entry in page:
            found += [raised.alarm for raised in raised_alarms(entry[0], message(entry))]
    newest = {alarm.test: alarm for alarm in found}
    return sorted(newest.values(), key=lambda alarm: alarm.n)


def commit_times(raised: Iterable[Entry]) -> dict[bytes, int]:
    """Return the commit times of entries of `alarms`, in milliseconds since 1970, by entry ID.

    The times are the IDs of the stream `raised`; its entries by other programs are skipped.
    """
    return {
        bytes(fields[1]): parse_id(entry_id)[0]
        for entry_id, fields in raised
        if len(fields) == 2 and fields[0] == ALARM.encode()
    }


@dataclass(frozen=True, slots=True)
class Incident:
    """The alarms of one change."""

    parts: tuple[Alarm, ...]  # at least one, the oldest first
    until: int | None = None  # examples learned at the report that ended it; None while it is open

    @property
    def since(self) -> int:
        """Examples learned at its first alarm."""
        return self.parts[0].n

    @property
    def kinds(self) -> frozenset[str]:
        """Kinds of its alarms."""
        return frozenset(part.kind for part in self.parts)

    @property
    def is_broken(self) -> bool:
        """Whether probabilities are off, or labels changed, overall or for a whole class."""
        return any(part.scope in _WIDE_SCOPES for part in self.parts)

    @property
    def cause(self) -> str:
        """The change, in a few words."""
        labels = self._newest("exchangeability", _WIDE_SCOPES)
        if labels is not None:
            return "the labels changed" if labels.scope == "overall" else labels.gist
        off = self._newest("calibration", _WIDE_SCOPES) or self._newest("calibration")
        features = self._newest("exchangeability")
        is_off = off is not None and (off.scope in _WIDE_SCOPES or features is None)
        return ((off if is_off else features) or self.parts[-1]).gist

    @property
    def findings(self) -> list[Alarm]:
        """The newest alarm of each test: those of exchangeability first, then the newest."""
        tests = {part.test: part for part in self.parts}
        return sorted(tests.values(), key=lambda part: (part.kind != "exchangeability", -part.n))

    def _newest(self, kind: str, scopes: Sequence[str] | None = None) -> Alarm | None:
        found = (
            part
            for part in reversed(self.parts)
            if part.kind == kind and (scopes is None or part.scope in scopes)
        )
        return next(found, None)

    def with_part(self, alarm: Alarm) -> "Incident":
        """Return the incident with one more alarm: the first and the newest `MAX_PARTS` stay."""
        kept = (*self.parts, alarm)
        return Incident((kept[0], *kept[1:][-MAX_PARTS:]))


def incident_of(alarms: Sequence[Alarm]) -> Incident | None:
    """Return the incident of these open alarms, the oldest first; None without any."""
    return Incident(tuple(alarms)[-MAX_PARTS:]) if alarms else None


class ReportedOpenAlarms(NamedTuple):
    """The alarms that a report lists as open."""

    entry: bytes  # ID of the report
    n: int  # examples learned
    alarms: tuple[Alarm, ...]  # the oldest first

    @classmethod
    def of(cls, entry: bytes, report: Any) -> "ReportedOpenAlarms | None":
        """Return the open alarms of a report's parsed payload; None if it has no monitors."""
        try:
            found = [_alarm_of(fields) for fields in report["monitors"]["open"]]
            n = int(report["n"])
        except (LookupError, TypeError, ValueError, AttributeError):
            return None
        return cls(entry, n, tuple(sorted(found, key=lambda alarm: alarm.n)))


class IncidentEvent(NamedTuple):
    """A step of an incident, and the incident after it.

    An incident worsens with an alarm of a new kind, or with the first that makes it `is_broken`.
    With any other alarm it goes on.
    """

    step: Literal["began", "went_on", "worsened", "ended"]
    entry: bytes  # ID of the entry in `alarms`, or of the report that ends it
    incident: Incident


def timeline(
    raised: Iterable[RaisedAlarm],
    reports: Iterable[ReportedOpenAlarms],
    before: Incident | None = None,
) -> Iterator[IncidentEvent]:
    """Yield the steps of incidents in order; the alarms of one entry are one step.

    Alarms and reports are in the order of their streams; `before` is the incident that is open
    before them.

    Examples
    --------
    >>> alarm = Alarm(50, "exchangeability", "overall", None, "ranks", 5.0, 4.6, 10)
    >>> again = Alarm(60, "exchangeability", "class", "b", "ranks", 5.0, 4.6, 10)
    >>> raised = [RaisedAlarm(b"50-0", 49, alarm), RaisedAlarm(b"60-0", 59, again)]
    >>> reports = [ReportedOpenAlarms(b"75-0", 75, (alarm, again))]
    >>> reports += [ReportedOpenAlarms(b"100-0", 100, ())]
    >>> [(event.step, event.entry) for event in timeline(raised, reports)]
    [('began', b'50-0'), ('went_on', b'60-0'), ('ended', b'100-0')]
    """
    incident = before
    # At one ID the alarms (0) come before the report (1).
    alarms: Iterator[tuple[Any, ...]] = (
        (parse_id(entry), 0, entry, [one.alarm for one in found])
        for entry, found in groupby(raised, key=lambda one: one.entry)
    )
    listed = ((parse_id(report.entry), 1, report.entry, report) for report in reports)
    for _, _, entry, found in merge(alarms, listed):
        if isinstance(found, ReportedOpenAlarms):
            if incident is not None and not found.alarms:
                yield IncidentEvent("ended", entry, Incident(incident.parts, found.n))
                incident = None
            elif found.alarms:
                incident = _with_open(incident, found.alarms)
            continue
        previous, incident = incident, _with_parts(incident, found)
        yield IncidentEvent(_step(previous, incident), entry, incident)


def _with_parts(incident: Incident | None, alarms: Sequence[Alarm]) -> Incident:
    for alarm in alarms:
        incident = Incident((alarm,)) if incident is None else incident.with_part(alarm)
    assert incident is not None
    return incident


def _with_open(incident: Incident | None, alarms: Sequence[Alarm]) -> Incident:
    """Return the incident with those open alarms that it lacks: their entries were not read.

    After an erasure `n` is smaller by the examples that went; the alarms are those of before.
    """
    known = () if incident is None else incident.parts
    newest = {part.test: part.n for part in known}
    missing = [alarm for alarm in alarms if alarm.n > newest.get(alarm.test, -1)]
    if not missing and incident is not None:
        return incident
    return Incident(tuple(sorted((*missing, *known), key=lambda alarm: alarm.n)))


def _step(before: Incident | None, now: Incident) -> Literal["began", "went_on", "worsened"]:
    if before is None:
        return "began"
    is_worse = now.kinds > before.kinds or now.is_broken > before.is_broken
    return "worsened" if is_worse else "went_on"


def incidents(
    raised: Iterable[RaisedAlarm], reports: Iterable[ReportedOpenAlarms]
) -> list[Incident]:
    """Return the incidents of these alarms, the oldest first; only the last may be open."""
    marks = list(reports)
    found: list[Incident] = []
    for event in timeline(raised, marks):
        if event.step == "began" or not found or found[-1].until is not None:
            found.append(event.incident)
        else:
            found[-1] = event.incident
    # The reports may list an open incident of which no alarm was read.
    last = marks[-1] if marks else None
    if last is not None and last.alarms and (not found or found[-1].until is not None):
        found.append(Incident(last.alarms))
    return found


def open_incident(reader: FeedReader, report: Sequence[Any] | None) -> Incident | None:
    """Return the open incident of a feed, if there is one, given the newest entry of `met`."""
    last = None if report is None else ReportedOpenAlarms.of(report[0], message(report))
    return _open_at(reader, b"+", last)


def open_at_alarm(reader: FeedReader, entry: bytes) -> Incident | None:
    """Return the incident that was open before an entry of `alarms`, if there was one."""
    return _open_at(reader, commands.after(entry), open_before(reader, entry))


def open_at_report(reader: FeedReader, entry: bytes) -> Incident | None:
    """Return the incident that was open before a report, if there was one."""
    return _open_at(reader, entry, open_before(reader, entry))


def _open_at(reader: FeedReader, upto: bytes, last: ReportedOpenAlarms | None) -> Incident | None:
    """Return the incident that is open at an ID, given the last report before it."""
    if last is not None and not last.alarms:
        later = _newest_alarms(reader, upto, last.entry)
        if not (later and _is_after(later[-1], last)):
            return None
    raised = _newest_alarms(reader, upto)
    parts = tuple(one.alarm for one in raised[_incident_start(reader, raised) :])
    open_now = () if last is None else last.alarms
    if not (parts or open_now):
        return None
    return _with_open(Incident(parts) if parts else None, open_now)


def _newest_alarms(reader: FeedReader, upto: bytes, after: bytes = b"-") -> list[RaisedAlarm]:
    """Return the newest alarms in a range of IDs, the oldest first."""
    found = reader.last_entries(reader.keys.alarms, MAX_PARTS, after, upto)
    return known_alarms((entry[0], message(entry)) for entry in found)


def _incident_start(reader: FeedReader, raised: Sequence[RaisedAlarm]) -> int:
    """Return the index of the last incident's first alarm: before it no alarm was open."""
    begin = len(raised)
    while begin > 0:
        entry = raised[begin - 1].entry
        begin = next(index for index, one in enumerate(raised) if one.entry == entry)
        report = open_before(reader, entry)
        if report is None:
            return _incident_start_before_reports(reader, raised, begin)
        if not report.alarms and not (begin and _is_after(raised[begin - 1], report)):
            break
    return begin


def _incident_start_before_reports(
    reader: FeedReader, raised: Sequence[RaisedAlarm], begin: int
) -> int:
    """Return the index like `_incident_start`; no report before the alarm at `begin` is kept.

    If no report was ever trimmed, no incident ended before that alarm: all alarms are of one
    incident. Otherwise the first kept report lists the alarms of the last incident.
    """
    met = reader.keys.met
    first = reader.first_entry(met)
    info = None if first is None else permitted(reader.stream_info, met)
    if first is None or info is None or not info.gone:
        return 0
    report = ReportedOpenAlarms.of(first[0], message(first))
    listed = () if report is None else report.alarms
    return next((i for i, one in enumerate(raised[:begin]) if one.alarm in listed), begin)


def _is_after(raised: RaisedAlarm, report: ReportedOpenAlarms) -> bool:
    return parse_id(raised.entry) > parse_id(report.entry)


def open_before(reader: FeedReader, entry: bytes) -> ReportedOpenAlarms | None:
    """Return the open alarms of the newest report before an ID; None if there is no report."""
    found = reader.last_entry(reader.keys.met, commands.after(entry))
    return None if found is None else ReportedOpenAlarms.of(found[0], message(found))


AnyNotice = Notice | FeatureNotice
NoticeKey = tuple[str, int]  # its code, and the examples learned when it opened
MAX_NOTICES = 100  # of each sort, that are read of a report


@dataclass(frozen=True, slots=True)
class SilencedNotice:
    """An open notice that a person silenced, with that person's note."""

    notice: AnyNotice
    by: str
    note: str

    @property
    def since(self) -> int:
        """Examples learned when the change began."""
        return self.notice.since

    @property
    def words(self) -> str:
        """The notice and the note in one sentence."""
        return self.words_since()

    def words_since(self, date: str = "") -> str:
        """Return `words` with the date of the example `since`, if it is known."""
        return f"{self.notice.words_since(date)}; silenced by {self.by}: {self.note}"


def key_of(notice: AnyNotice) -> NoticeKey:
    """Return what identifies a notice: one that ends and begins anew has another key."""
    return notice.code, notice.opened


def open_notices(report: Mapping[str, Any] | None) -> tuple[AnyNotice, ...]:
    """Return the open notices of a report, of features first; what is no notice is left out.

    Examples
    --------
    >>> found = {"n": 12900, "scope": "class", "name": "b", "direction": "high", "since": 12300}
    >>> shares = {"announced": 0.9, "happened": 0.85, "lower": 0.81, "upper": 0.884}
    >>> missing = {"since": 900, "feature": "age", "direction": "missing", "rank": 0.98}
    >>> given = {"notices": [found | {"examples": 640} | shares, {"n": 3}], "features": [missing]}
    >>> for notice in open_notices({"monitors": given}):
    ...     print(notice.words)
    feature age is missing more often than usual, since example 900
    class b: announced 90 of 100, true were 85 (81 to 88), in 640 since example 12,300
    """
    given = as_object(as_object(report).get("monitors"))
    return (*_read(given.get("features"), FeatureNotice), *_read(given.get("notices"), Notice))


def _read(given: Any, of: type[AnyNotice]) -> list[AnyNotice]:
    found = list[AnyNotice]()
    for fields in given[:MAX_NOTICES] if isinstance(given, list) else ():
        try:
            notice = of.of(fields)
            notice.words  # noqa: B018 - raises if a number is a text
        except (AttributeError, LookupError, TypeError, ValueError):
            continue
        found.append(notice)
    return found
