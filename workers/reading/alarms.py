"""Alarms of a feed: read from its streams, and put into words."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from online_svm.stream.alarm import Alarm
from workers.broker.batch_size import Entry
from workers.broker.feed_reader import FeedReader
from workers.errors import StateLost
from workers.feed.keys import ALARM
from workers.feed.position import parse_id
from workers.reading.answers import answer, message, no_answer


@dataclass(frozen=True, slots=True)
class RaisedAlarm:
    """An alarm in the stream `alarms`.

    Attributes
    ----------
    entry : bytes
        ID of its entry, which is the ID of the input entry that raised it.
    seq : int
        Number of that input entry, from 0 on.
    alarm : Alarm
    """

    entry: bytes
    seq: int
    alarm: Alarm

    @property
    def time(self) -> float:
        """Milliseconds in the ID of its entry."""
        return float(parse_id(self.entry)[0])


def raised_alarms(entry_id: bytes, payload: Any) -> list[RaisedAlarm]:
    """Return the alarms of an entry.

    Parameters
    ----------
    entry_id : bytes
    payload : object
        Its payload, parsed.

    Raises
    ------
    StateLost
        If another program wrote it.

    Examples
    --------
    >>> fields = {"n": 5040, "kind": "calibration", "scope": "class", "name": "b",
    ...           "monitor": "bets", "log_wealth": 5.73, "threshold": 5.3, "since": 10}
    >>> (found,) = raised_alarms(b"7-0", {"seq": 5039, "alarms": [fields]})
    >>> found.time, found.alarm.name
    (7.0, 'b')
    """
    try:
        seq, alarms = int(payload["seq"]), [alarm_of(fields) for fields in payload["alarms"]]
    except (LookupError, TypeError, ValueError):
        raise no_answer((entry_id,)) from None
    return [RaisedAlarm(entry_id, seq, alarm) for alarm in alarms]


def known_alarms(entries: Iterable[tuple[bytes, Any]]) -> list[RaisedAlarm]:
    """Return the alarms of entries (ID, parsed payload); those of other programs are passed over.

    Examples
    --------
    >>> known_alarms([(b"7-0", {"seq": 1, "alarms": []}), (b"8-0", None)])
    []
    """
    found = []
    for entry_id, payload in entries:
        try:
            found += raised_alarms(entry_id, payload)
        except StateLost:
            continue
    return found


def alarm_of(fields: Mapping[str, Any]) -> Alarm:
    """Return the alarm that a message has as an object.

    Raises
    ------
    LookupError, TypeError, ValueError
        If it is none: anybody may write to a stream.
    """
    found = Alarm.of(fields)
    texts = (found.kind, found.scope, found.name or "", found.monitor, found.action)
    if not (isinstance(found.n, int) and all(isinstance(text, str) for text in texts)):
        raise TypeError("a field of an alarm has another type")
    alarm_line(found)  # raises for a number that is none
    return found


def alarm_line(alarm: Alarm) -> str:
    """Return an alarm as a line of text.

    Examples
    --------
    >>> alarm_line(Alarm(5040, "calibration", "class", "b", "bets", 5.73, 5.3, 10))
    'n 5,040  calibration: the probability of class b was off by more than the tolerance since \
n = 10  bets e^5.7 of e^5.3'
    """
    done = "" if alarm.action == "report" else f"  {alarm.action}"
    evidence = f"{alarm.monitor} e^{alarm.log_wealth:.1f} of e^{alarm.threshold:.1f}"
    return f"n {alarm.n:,}  {alarm.kind}: {alarm.words}  {evidence}{done}"


def open_alarms(store: FeedReader, report: Sequence[Any] | None) -> list[Alarm]:
    """Return the alarms that are open, the oldest first; of one test the newest.

    The newest report says which were open then, and the later entries of `alarms` are added. An
    alarm that closed since that report is still among them.

    Parameters
    ----------
    store : FeedReader
    report : entry or None
        The newest of `met`.

    Raises
    ------
    StateLost
        If another program wrote to the streams.
    """
    after, found = b"0-0", list[Alarm]()
    if report is not None:
        after, found = report[0], _open_then(report)
    for page in store.pages(store.keys.alarms, after):
        for entry in page:
            found += [raised.alarm for raised in raised_alarms(entry[0], message(entry))]
    newest = {(one.kind, one.scope, one.name, one.monitor): one for one in found}
    return sorted(newest.values(), key=lambda one: one.n)


def _open_then(report: Sequence[Any]) -> list[Alarm]:
    monitors = answer(report).get("monitors", {})
    try:
        return [alarm_of(fields) for fields in monitors.get("open", ())]
    except (AttributeError, LookupError, TypeError, ValueError):
        raise no_answer(report) from None


def commit_times(raised: Iterable[Entry]) -> dict[bytes, int]:
    """Return when entries of `alarms` were committed, in milliseconds since 1970, by their IDs.

    Parameters
    ----------
    raised : iterable of entry
        Of the stream `raised`; what another program wrote is passed over.

    Examples
    --------
    >>> commit_times([(b"1700000000123-0", [b"alarm", b"17-0"]), (b"5-0", [b"x", b"1"])])
    {b'17-0': 1700000000123}
    """
    return {
        bytes(fields[1]): parse_id(entry_id)[0]
        for entry_id, fields in raised
        if len(fields) == 2 and fields[0] == ALARM.encode()
    }
