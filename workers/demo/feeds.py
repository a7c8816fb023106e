"""A feed of the demonstration: its source, its drift, and its progress."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from workers.broker import commands
from workers.broker.connection import Connection
from workers.feed.keys import FeedKeys
from workers.push.ingest import shuffled
from workers.push.reading import Reading
from workers.push.rows import Features, Row
from workers.push.sources import rows
from workers.reading.incidents import RaisedAlarm, raised_alarms

SEED = 0  # of the order of the examples

Report = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Drift:
    """A fault in the data: a feature is stuck at 0."""

    at: int  # rows before the fault
    feature: int  # from 0 on, as a feed counts the numbers of an array

    @property
    def sentence(self) -> str:
        """The fault in words."""
        return f"feature {self.feature} is stuck at 0 after {self.at:,} examples"

    def applied_to(self, rows: Iterable[Row]) -> list[Row]:
        """Return the rows with the fault in those after the first `at`."""
        return [
            replace(row, x=self._stuck(row.x)) if i >= self.at else row
            for i, row in enumerate(rows)
        ]

    def _stuck(self, x: Features) -> Features:
        return [0.0 if number == self.feature else value for number, value in enumerate(x)]


@dataclass(frozen=True, slots=True)
class DemoFeed:
    """The plan of a feed."""

    feed: str
    source: str  # name of the data set
    title: str
    rate: float  # examples pushed a second
    limit: int | None = None  # largest number of examples
    drift: Drift | None = None

    def examples(self) -> list[Row]:
        """Return the examples of the feed in order, as arrays."""
        chosen = shuffled(rows(self.source, Reading()), SEED)[: self.limit]
        arrays = [replace(row, x=[*dict(row.x).values()]) for row in chosen]
        return arrays if self.drift is None else self.drift.applied_to(arrays)


def alarm_sentence(raised: RaisedAlarm, drift: Drift | None) -> str:
    """Return the gist of an alarm, which fits a line, and its distance from the drift."""
    example, distance = raised.seq + 1, ""
    if drift is not None:
        after = example - drift.at
        distance = f", {after:,} after the drift" if after > 0 else ", before the drift"
    return f"alarm at example {example:,}{distance}: {raised.alarm.gist}"


@dataclass(slots=True)
class Progress:
    """The progress of a running feed, as of the last `refresh`."""

    plan: DemoFeed
    total: int
    answered: int = 0
    reports: list[Report] = field(default_factory=list)
    alarms: list[RaisedAlarm] = field(default_factory=list)
    _last: dict[str, bytes] = field(default_factory=dict)

    @property
    def is_done(self) -> bool:
        """Whether every example was answered."""
        return self.answered >= self.total

    @property
    def latest(self) -> Report | None:
        """The newest report, if any."""
        return self.reports[-1] if self.reports else None

    def refresh(self, connection: Connection) -> None:
        """Read the number of answers, and the new reports and alarms."""
        keys = FeedKeys(self.plan.feed)
        self.answered = connection.length(keys.out)
        self.reports += [message for _, message in self._new(connection, keys.met)]
        for entry_id, message in self._new(connection, keys.alarms):
            self.alarms += raised_alarms(entry_id, message)

    def _new(self, connection: Connection, stream: str) -> Iterator[tuple[bytes, Any]]:
        """Yield ID and parsed payload of the new entries of a stream."""
        start = commands.after(self._last.get(stream, b"0-0"))
        for entry_id, fields in connection.entries(stream, start):
            self._last[stream] = entry_id
            yield entry_id, orjson.loads(fields[1])
