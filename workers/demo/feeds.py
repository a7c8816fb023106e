"""A feed of the demonstration as it stands: what was pushed, answered, reported and alarmed."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson

from workers.demo.drift import Drift
from workers.feed.keys import FeedKeys
from workers.push.ingest import shuffled
from workers.push.rows import Reading, Row
from workers.push.sources import rows

SEED = 0
"""Of the order in which the examples of every feed come."""

Report = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Plan:
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


@dataclass(frozen=True, slots=True)
class Raised:
    """An alarm: after how many examples it was raised, and what was tested."""

    example: int
    kind: str
    scope: str
    name: str | None

    def told(self, drift: Drift | None) -> str:
        """Return a sentence about it.

        Examples
        --------
        >>> Raised(1234, "calibration", "class", "spam").told(Drift(1200, "weight"))
        'alarm: calibration, class spam, at example 1,234: 34 after the drift'
        """
        what = f"{self.scope} {self.name}" if self.name else self.scope
        text = f"alarm: {self.kind}, {what}, at example {self.example:,}"
        if drift is None:
            return text
        after = self.example - drift.at
        return f"{text}: {after:,} after the drift" if after > 0 else f"{text}: before the drift"


@dataclass(slots=True)
class Progress:
    """What is known of a running feed; `refresh` reads what is new."""

    plan: Plan
    total: int
    answered: int = 0
    reports: list[Report] = field(default_factory=list)
    alarms: list[Raised] = field(default_factory=list)
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
        self.reports += self._new(connected, keys.met)
        for entry in self._new(connected, keys.alarms):
            example = entry["seq"] + 1
            self.alarms += [
                Raised(example, alarm["kind"], alarm["scope"], alarm["name"])
                for alarm in entry["alarms"]
            ]

    def _new(self, connected: Any, stream: str) -> Iterator[Any]:
        """Yield the payloads of a stream that came since the last look."""
        start = b"(" + self._last.get(stream, b"0-0")
        for entry_id, fields in connected.execute_command("XRANGE", stream, start, "+"):
            self._last[stream] = entry_id
            yield orjson.loads(fields[1])
