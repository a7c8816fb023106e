"""A feed of the demonstration: its plan, the drift in it, and what was answered so far."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from workers.feed.keys import FeedKeys
from workers.push.ingest import shuffled
from workers.push.rows import Features, Reading, Row
from workers.push.sources import rows
from workers.reading.alarms import RaisedAlarm, raised_alarms

SEED = 0
"""Of the order in which the examples of every feed come."""

Report = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Drift:
    """What goes wrong, and when.

    Attributes
    ----------
    at : int
        Rows that are still right.
    feature : str
        Of the rows after them it is stuck at 0.
    """

    at: int
    feature: str

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        return f"feature {self.feature} is stuck at 0 after {self.at:,} examples"

    def applied_to(self, rows: Iterable[Row]) -> list[Row]:
        """Return the rows with the fault in those after the first `at`.

        Examples
        --------
        >>> rows = [Row({"a": 1.0, "b": 2.0}), Row({"a": 3.0, "b": 4.0})]
        >>> [row.x for row in Drift(1, "b").applied_to(rows)]
        [{'a': 1.0, 'b': 2.0}, {'a': 3.0, 'b': 0.0}]
        """
        return [
            replace(row, x=self._stuck(row.x)) if i >= self.at else row
            for i, row in enumerate(rows)
        ]

    def _stuck(self, x: Features) -> Features:
        assert isinstance(x, Mapping), "the data sets of the demonstration name their features"
        return {name: 0.0 if name == self.feature else value for name, value in x.items()}


@dataclass(frozen=True, slots=True)
class DemoFeed:
    """One feed of the demonstration.

    Attributes
    ----------
    feed, source, title : str
        Name of the feed, of river's data set, and for people.
    rate : float
        Examples pushed a second.
    limit : int or None
        Examples at most.
    drift : Drift or None
        What goes wrong on purpose.
    """

    feed: str
    source: str
    title: str
    rate: float
    limit: int | None = None
    drift: Drift | None = None

    def examples(self) -> list[Row]:
        """Return the examples of the feed, in the order in which they come."""
        chosen = shuffled(rows(self.source, Reading()), SEED)[: self.limit]
        return chosen if self.drift is None else self.drift.applied_to(chosen)


def alarm_sentence(raised: RaisedAlarm, drift: Drift | None) -> str:
    """Return what an alarm found, and how long after the drift.

    Examples
    --------
    >>> from online_svm.stream.alarm import Alarm
    >>> alarm = Alarm(1234, "calibration", "class", "spam", "bets", 5.7, 5.3, 10)
    >>> alarm_sentence(RaisedAlarm(b"7-0", 1233, alarm), Drift(1200, "weight"))
    'alarm at example 1,234, 34 after the drift: the probability of class spam was off by more \
than the tolerance since n = 10'
    """
    example, place = raised.seq + 1, ""
    if drift is not None:
        after = example - drift.at
        place = f", {after:,} after the drift" if after > 0 else ", before the drift"
    return f"alarm at example {example:,}{place}: {raised.alarm.words}"


@dataclass(slots=True)
class Progress:
    """What is known of a running feed; `refresh` reads what is new."""

    plan: DemoFeed
    total: int
    answered: int = 0
    reports: list[Report] = field(default_factory=list)
    alarms: list[RaisedAlarm] = field(default_factory=list)
    _last: dict[str, bytes] = field(default_factory=dict)

    @property
    def is_done(self) -> bool:
        """Whether every example has been answered."""
        return self.answered >= self.total

    @property
    def latest(self) -> Report | None:
        """The newest report, if any."""
        return self.reports[-1] if self.reports else None

    def refresh(self, connected: Any) -> None:
        """Read the number of answers, and the reports and alarms that came since."""
        keys = FeedKeys(self.plan.feed)
        self.answered = int(connected.execute_command("XLEN", keys.out))
        self.reports += [message for _, message in self._new(connected, keys.met)]
        for entry_id, message in self._new(connected, keys.alarms):
            self.alarms += raised_alarms(entry_id, message)

    def _new(self, connected: Any, stream: str) -> Iterator[tuple[bytes, Any]]:
        """Yield ID and payload of the entries of a stream that came since the last look."""
        start = b"(" + self._last.get(stream, b"0-0")
        for entry_id, fields in connected.execute_command("XRANGE", stream, start, "+"):
            self._last[stream] = entry_id
            yield entry_id, orjson.loads(fields[1])
