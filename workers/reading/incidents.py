"""Incidents: the alarms of one change, from the first of them until the guarantee is back.

One change of a stream raises several alarms: of classes, of bins, of scores. They are the parts of
one incident. It begins with an alarm that comes while no other is open, and ends with the first
report that lists no alarm as open. Alarms of comparisons say nothing of the guarantee: they are of
no incident. All of this follows from the streams `alarms` and `met`; nothing else is stored.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from typing import Any, Literal, NamedTuple

from online_svm.stream.alarm import Alarm
from workers.broker.feed_reader import FeedReader
from workers.feed.position import parse_id
from workers.reading.alarms import RaisedAlarm, alarm_of, known_alarms
from workers.reading.answers import message
from workers.reading.consumers import permitted
from workers.reading.stream_info import StreamInfo

MOST_PARTS = 200
"""Alarms of an incident that are looked for, and kept."""

_BROKEN = ("overall", "class")
"""Scopes in which a change concerns all answers, or those of a class."""


@dataclass(frozen=True, slots=True)
class Incident:
    """The alarms of one change.

    Attributes
    ----------
    parts : tuple of Alarm
        At least one, the oldest first.
    until : int or None
        Examples learned when a report first said that none is open; None while one is.
    """

    parts: tuple[Alarm, ...]
    until: int | None = None

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
        """Whether probabilities are off, or labels come by another rule, and not only in a part."""
        return any(
            part.scope in _BROKEN and part.kind in ("calibration", "exchangeability")
            for part in self.parts
        )

    @property
    def cause(self) -> str:
        """What changed, in a few words.

        Examples
        --------
        >>> off = Alarm(5040, "calibration", "class", "b", "bets", 5.7, 5.3, 40, -.06, -.09, -.03)
        >>> Incident((off,)).cause
        'the probability of class b is too high by 0.060'
        """
        labels = self._newest("exchangeability", _BROKEN)
        if labels is not None:
            return "the labels changed" if labels.scope == "overall" else labels.gist
        off = self._newest("calibration", _BROKEN) or self._newest("calibration")
        features = self._newest("exchangeability")
        found = off if off is not None and (off.scope in _BROKEN or features is None) else features
        return self.parts[-1].gist if found is None else found.gist

    def _newest(self, kind: str, scopes: Sequence[str] | None = None) -> Alarm | None:
        found = (
            part
            for part in reversed(self.parts)
            if part.kind == kind and (scopes is None or part.scope in scopes)
        )
        return next(found, None)

    def with_part(self, alarm: Alarm) -> "Incident":
        """Return the incident with one more alarm; the first one always stays."""
        kept = (*self.parts, alarm)
        return Incident((kept[0], *kept[1:][-MOST_PARTS:]))


class OpenThen(NamedTuple):
    """What a report says of alarms.

    Attributes
    ----------
    entry : bytes
        Its ID.
    n : int
        Examples learned.
    alarms : tuple of Alarm
        Those that are open, the oldest first; comparisons left out.
    """

    entry: bytes
    n: int
    alarms: tuple[Alarm, ...]

    @classmethod
    def of(cls, entry: bytes, report: Any) -> "OpenThen | None":
        """Return what a report says, given its parsed payload; None where it has no monitors.

        Examples
        --------
        >>> OpenThen.of(b"7-0", {"n": 100, "monitors": {"open": []}})
        OpenThen(entry=b'7-0', n=100, alarms=())
        >>> OpenThen.of(b"7-0", {"n": 100}) is None
        True
        """
        try:
            given = report["monitors"]["open"]
            found = [alarm_of(fields) for fields in given]
            n = int(report["n"])
        except (LookupError, TypeError, ValueError, AttributeError):
            return None
        counted = [alarm for alarm in found if alarm.kind != "comparison"]
        return cls(entry, n, tuple(sorted(counted, key=lambda alarm: alarm.n)))


class Chapter(NamedTuple):
    """What happens to an incident.

    Attributes
    ----------
    what : "began", "went_on", "worsened" or "ended"
        It went on with a further alarm of a kind that it has; it worsened with one of another
        kind, or with the first that concerns all answers.
    entry : bytes
        ID of the entry in `alarms`, or of the report that ends it.
    incident : Incident
        As it is then.
    """

    what: Literal["began", "went_on", "worsened", "ended"]
    entry: bytes
    incident: Incident


def story(
    raised: Iterable[RaisedAlarm], reports: Iterable[OpenThen], before: Incident | None = None
) -> Iterator[Chapter]:
    """Yield what happens, in order: the alarms of one entry together are one chapter.

    Parameters
    ----------
    raised : iterable of RaisedAlarm
    reports : iterable of OpenThen
        Each in the order of their streams.
    before : Incident, optional
        The one that is open before them.

    Examples
    --------
    >>> alarm = Alarm(50, "exchangeability", "overall", None, "ranks", 5.0, 4.6, 10)
    >>> again = Alarm(60, "exchangeability", "class", "b", "ranks", 5.0, 4.6, 10)
    >>> raised = [RaisedAlarm(b"50-0", 49, alarm), RaisedAlarm(b"60-0", 59, again)]
    >>> reports = [OpenThen(b"75-0", 75, (alarm, again)), OpenThen(b"100-0", 100, ())]
    >>> [(one.what, one.entry) for one in story(raised, reports)]
    [('began', b'50-0'), ('went_on', b'60-0'), ('ended', b'100-0')]
    """
    incident = before
    for _, _, entry, found in merge(_of_alarms(raised), _of_reports(reports)):
        if isinstance(found, OpenThen):
            if incident is not None and not found.alarms:
                yield Chapter("ended", entry, Incident(incident.parts, found.n))
                incident = None
            elif found.alarms:
                incident = _with_older(incident, found.alarms)
            continue
        was, incident = incident, _with(incident, found)
        yield Chapter(_what(was, incident), entry, incident)


def _of_alarms(raised: Iterable[RaisedAlarm]) -> Iterator[tuple[Any, ...]]:
    """Yield the alarms of each entry, to be merged by ID, before a report of the same ID."""
    entry, found = b"", list[Alarm]()
    for one in raised:
        if one.alarm.kind == "comparison":
            continue
        if one.entry != entry and found:
            yield parse_id(entry), 0, entry, tuple(found)
            found = []
        entry = one.entry
        found.append(one.alarm)
    if found:
        yield parse_id(entry), 0, entry, tuple(found)


def _of_reports(reports: Iterable[OpenThen]) -> Iterator[tuple[Any, ...]]:
    for report in reports:
        yield parse_id(report.entry), 1, report.entry, report


def _with(incident: Incident | None, alarms: Sequence[Alarm]) -> Incident:
    for alarm in alarms:
        incident = Incident((alarm,)) if incident is None else incident.with_part(alarm)
    assert incident is not None
    return incident


def _with_older(incident: Incident | None, alarms: Sequence[Alarm]) -> Incident:
    """Return an incident with open alarms whose entries were not among those that were read."""
    known = () if incident is None else incident.parts
    older = [alarm for alarm in alarms if alarm not in known]
    if not older and incident is not None:
        return incident
    return Incident(tuple(sorted((*older, *known), key=lambda alarm: alarm.n)))


def _what(was: Incident | None, now: Incident) -> Literal["began", "went_on", "worsened"]:
    if was is None:
        return "began"
    is_worse = now.kinds > was.kinds or now.is_broken > was.is_broken
    return "worsened" if is_worse else "went_on"


def incidents(raised: Iterable[RaisedAlarm], reports: Iterable[OpenThen]) -> list[Incident]:
    """Return the incidents of a time, the oldest first; only the last may be open.

    Examples
    --------
    >>> alarm = Alarm(50, "exchangeability", "overall", None, "ranks", 5.0, 4.6, 10)
    >>> found = incidents([RaisedAlarm(b"50-0", 49, alarm)], [OpenThen(b"75-0", 75, ())])
    >>> [(one.since, one.until) for one in found]
    [(50, 75)]
    """
    said = list(reports)
    found: list[Incident] = []
    for chapter in story(raised, said):
        if chapter.what == "began" or not found or found[-1].until is not None:
            found.append(chapter.incident)
        else:
            found[-1] = chapter.incident
    # An open one of which no alarm was read is in the reports alone.
    last = said[-1] if said else None
    if last is not None and last.alarms and (not found or found[-1].until is not None):
        found.append(Incident(last.alarms))
    return found


def open_incident(reader: FeedReader, report: Sequence[Any] | None) -> Incident | None:
    """Return the incident of a feed that is open, with its first alarm; None where none is.

    Parameters
    ----------
    reader : FeedReader
    report : entry or None
        The newest of `met`.
    """
    last = None if report is None else OpenThen.of(report[0], message(report))
    return _open_at(reader, "+", last)


def open_at_alarm(reader: FeedReader, entry: bytes) -> Incident | None:
    """Return the incident that was open before an entry of `alarms`; None where none was."""
    return _open_at(reader, b"(" + entry, open_before(reader, entry))


def open_at_report(reader: FeedReader, entry: bytes) -> Incident | None:
    """Return the incident that was open before a report; None where none was."""
    return _open_at(reader, entry, open_before(reader, entry))


def _open_at(reader: FeedReader, upto: bytes | str, last: OpenThen | None) -> Incident | None:
    """Return the incident that is open after the alarms up to an ID, and a last report."""
    alarms = reader.keys.alarms
    read = reader.call("XREVRANGE", alarms, upto, "-", "COUNT", MOST_PARTS)[::-1]
    raised = [
        one
        for one in known_alarms((entry[0], message(entry)) for entry in read)
        if one.alarm.kind != "comparison"
    ]
    if last is not None and not last.alarms and not (raised and _is_after(raised[-1], last)):
        return None
    parts = tuple(one.alarm for one in raised[_first_of(reader, raised) :])
    open_now = () if last is None else last.alarms
    if not (parts or open_now):
        return None
    return _with_older(Incident(parts) if parts else None, open_now)


def _first_of(reader: FeedReader, raised: Sequence[RaisedAlarm]) -> int:
    """Return the place of the first alarm of the last incident: none was open before it."""
    begin = len(raised)
    while begin > 0:
        entry = raised[begin - 1].entry
        begin = next(place for place, one in enumerate(raised) if one.entry == entry)
        mark = open_before(reader, entry)
        if mark is None:
            return _first_before_reports(reader, raised, begin)
        if not mark.alarms and not (begin and _is_after(raised[begin - 1], mark)):
            break
    return begin


def _first_before_reports(reader: FeedReader, raised: Sequence[RaisedAlarm], begin: int) -> int:
    """Return the same where no report is kept of before the alarms at `begin`.

    Without one there was nothing between them and the earlier ones, all are of one incident. Where
    reports were trimmed that is not known: the first report that is kept lists those that are.
    """
    met = reader.keys.met
    first = reader.call("XRANGE", met, "-", "+", "COUNT", 1)
    told = permitted(reader, "XINFO", "STREAM", met) if first else None
    if told is None or not StreamInfo.parse(told).gone:
        return 0
    mark = OpenThen.of(first[0][0], message(first[0]))
    listed = () if mark is None else mark.alarms
    return next((i for i, one in enumerate(raised[:begin]) if one.alarm in listed), begin)


def _is_after(one: RaisedAlarm, report: OpenThen) -> bool:
    return parse_id(one.entry) > parse_id(report.entry)


def open_before(reader: FeedReader, entry: bytes) -> OpenThen | None:
    """Return what the newest report before an entry of `alarms` says; None without one."""
    found = reader.call("XREVRANGE", reader.keys.met, b"(" + entry, "-", "COUNT", 1)
    return OpenThen.of(found[0][0], message(found[0])) if found else None
