"""A feed of the demonstration: its plan, the drift in it, and what was answered so far."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from workers.broker import commands
from workers.broker.connection import Connection
from workers.feed.keys import FeedKeys
from workers.push.ingest import shuffled
from workers.push.rows import Features, Reading, Row
from workers.push.sources import rows
from workers.reading.incidents import RaisedAlarm, raised_alarms

SEED = 0  # of the order in which the examples of every feed come

Report = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Drift:
    """A fault in the data, and its time."""

    at: int  # rows that are still right
    feature: str  # of the rows after them it is stuck at 0

    @property
    def sentence(self) -> str:
        """One sentence about the fault, for the view."""
        return f"feature {self.feature} is stuck at 0 after {self.at:,} examples"

    def applied_to(self, rows: Iterable[Row]) -> list[Row]:
        """Return the rows with the fault in those after the first `at`."""
        return [
            replace(row, x=self._stuck(row.x)) if i >= self.at else row
            for i, row in enumerate(rows)
        ]

    def _stuck(self, x: Features) -> Features:
        assert isinstance(x, Mapping), "the data sets of the demonstration name their features"
        return {name: 0.0 if name == self.feature else value for name, value in x.items()}


@dataclass(frozen=True, slots=True)
class DemoFeed:
    """One feed of the demonstration."""

    feed: str
    source: str
    title: str
    rate: float  # examples pushed a second
    limit: int | None = None  # examples at most
    drift: Drift | None = None  # what goes wrong on purpose

    def examples(self) -> list[Row]:
        """Return the examples of the feed, in the order in which they come."""
        chosen = shuffled(rows(self.source, Reading()), SEED)[: self.limit]
        return chosen if self.drift is None else self.drift.applied_to(chosen)


def alarm_sentence(raised: RaisedAlarm, drift: Drift | None) -> str:
    """Return what an alarm found, and how long after the drift."""
    example, place = raised.seq + 1, ""
    if drift is not None:
        after = example - drift.at
        place = f", {after:,} after the drift" if after > 0 else ", before the drift"
    return f"alarm at example {example:,}{place}: {raised.alarm.words}"


@dataclass(slots=True)
class Progress:
    """The state of a running feed; `refresh` reads it again."""

    plan: DemoFeed
    total: int
    answered: int = 0
    reports: list[Report] = field(default_factory=list)
    alarms: list[RaisedAlarm] = field(default_factory=list)
    _last: dict[str, bytes] = field(default_factory=dict)

    @property
    def is_done(self) -> bool:
        """True if every example was answered."""
        return self.answered >= self.total

    @property
    def latest(self) -> Report | None:
        """The newest report, if any."""
        return self.reports[-1] if self.reports else None

    def refresh(self, connection: Connection) -> None:
        """Read the number of answers, and the reports and alarms that came since."""
        keys = FeedKeys(self.plan.feed)
        self.answered = connection.length(keys.out)
        self.reports += [message for _, message in self._new(connection, keys.met)]
        for entry_id, message in self._new(connection, keys.alarms):
            self.alarms += raised_alarms(entry_id, message)

    def _new(self, connection: Connection, stream: str) -> Iterator[tuple[bytes, Any]]:
        """Yield ID and payload of the entries of a stream that came since the last look."""
        start = commands.after(self._last.get(stream, b"0-0"))
        for entry_id, fields in connection.entries(stream, start):
            self._last[stream] = entry_id
            yield entry_id, orjson.loads(fields[1])
