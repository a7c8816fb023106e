"""A feed of the demonstration as it stands: what was pushed, answered and reported."""

from dataclasses import dataclass, field
from typing import Any

import orjson

from workers.feed.keys import FeedKeys

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
    """

    feed: str
    source: str
    title: str
    rate: float


@dataclass(slots=True)
class Progress:
    """What is known of a running feed; `refresh` reads what is new."""

    plan: Plan
    total: int
    answered: int = 0
    reports: list[Report] = field(default_factory=list)
    _last: bytes = b"0-0"

    @property
    def is_done(self) -> bool:
        """Whether every example has been answered."""
        return self.answered >= self.total

    @property
    def latest(self) -> Report | None:
        """The newest report, if any."""
        return self.reports[-1] if self.reports else None

    def refresh(self, connected: Any) -> None:
        """Read the number of answers and the reports that came since."""
        keys = FeedKeys(self.plan.feed)
        self.answered = int(connected.execute_command("XLEN", keys.out))
        new = connected.execute_command("XRANGE", keys.met, b"(" + self._last, "+")
        for entry_id, fields in new:
            self._last = entry_id
            self.reports.append(orjson.loads(fields[1]))
