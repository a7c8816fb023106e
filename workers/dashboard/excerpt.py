"""The part of a feed that is drawn: what was asked for, and what is known of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Self
from urllib.parse import urlencode

import numpy as np

from online_svm.types import Floats
from workers.dashboard.feed_view import FeedSample, FeedView, ShownAnswer
from workers.dashboard.reports import Report
from workers.feed.state_fields import PendingLabels
from workers.reading.alarms import RaisedAlarm
from workers.reading.events import Event
from workers.reading.incidents import Incident
from workers.reading.verdict import Verdict, newest_answer, trust

Axis = Literal["n", "time"]

HOURS = {"1h": 1.0, "6h": 6.0, "1d": 24.0, "7d": 168.0}
EXAMPLES = {"1000": 1_000, "5000": 5_000, "20000": 20_000}
RANGES = {
    "all": "all that is kept",
    **{name: f"last {count:,} examples" for name, count in EXAMPLES.items()},
    "1h": "last hour",
    "6h": "last 6 hours",
    "1d": "last day",
    "7d": "last 7 days",
}
"""Ranges of the page by their name in its address."""

POINTS = 400
"""Points of a curve, at most: about the pixels that a card is wide."""

NOTE = 32
"""Characters of a note in a plot; the table of events has the rest."""

_MS = 3_600_000.0  # milliseconds in an hour


@dataclass(frozen=True, slots=True)
class Choice:
    """What somebody wants to see. It is the address of the page, so that a link shows the same.

    Attributes
    ----------
    feed : str
        Empty for the table of all feeds.
    range : str
        One of `RANGES`.
    axis : "n" or "time"
    sort : str
        Column of the table of feeds.
    tab : str
        Which of the cards below the pictures are shown; empty for the first.

    Examples
    --------
    >>> Choice.of({"feed": "mail", "range": "1h"}).address()
    '?feed=mail&range=1h'
    >>> Choice.of({"range": "<script>"}).address()
    '?'
    """

    feed: str = ""
    range: str = "all"
    axis: Axis = "n"
    sort: str = "verdict"
    theme: str = "auto"
    tab: str = ""

    @classmethod
    def of(cls, arguments: Mapping[str, str]) -> Self:
        """Return the choice of an address; what is unknown there is ignored."""
        asked = arguments.get("range", "all")
        theme = arguments.get("theme", "auto")
        return cls(
            feed=arguments.get("feed", "")[:80],
            range=asked if asked in RANGES else "all",
            axis="time" if arguments.get("axis") == "time" else "n",
            sort=arguments.get("sort", "verdict")[:20],
            theme=theme if theme in ("light", "dark") else "auto",
            tab=arguments.get("tab", "")[:20],
        )

    @property
    def title(self) -> str:
        """Title of the page."""
        return f"{self.feed or 'feeds'} - online-svm"

    def address(self, **changes: str) -> str:
        """Return the link to this choice, with some of it changed."""
        usual = {"feed": "", "range": "all", "axis": "n", "sort": "verdict", "theme": "auto"}
        shown = {name: changes.get(name, getattr(self, name)) for name in usual}
        return "?" + urlencode({k: v for k, v in shown.items() if v != usual[k]})


@dataclass(frozen=True, slots=True)
class Excerpt:
    """What is drawn of one feed.

    Attributes
    ----------
    feed : str
    axis : "n" or "time"
        Whether curves run over examples learned or over time.
    reports : list of Report
        The oldest first.
    answers : list of ShownAnswer
    samples : list of FeedSample
    alarms : list of RaisedAlarm
    events : list of Event
    committed : dict of bytes to int
        When alarms were committed, by their entry ID, in milliseconds since 1970; where known.
    pending : PendingLabels or None
        Labels that are still to come, where that is known.
    incidents : list of Incident
        The oldest first.
    has_alarms : bool
        False where the source cannot tell whether there were any.
    """

    feed: str
    axis: Axis = "n"
    reports: list[Report] = field(default_factory=list)
    answers: list[ShownAnswer] = field(default_factory=list)
    samples: list[FeedSample] = field(default_factory=list)
    alarms: list[RaisedAlarm] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    has_alarms: bool = True
    committed: dict[bytes, int] = field(default_factory=dict)
    pending: PendingLabels | None = None
    incidents: list[Incident] = field(default_factory=list)

    @classmethod
    def of(cls, view: FeedView, choice: Choice) -> Self:
        """Return the part of a view that a choice asks for."""
        # One call copies a deque as a whole, while the thread that reads may append to it.
        reports, answers, samples = list(view.reports), list(view.answers), list(view.samples)
        drawn = within(reports, choice.range)
        # Alarms and notes before the first report of a range are not of it.
        first = drawn[0].n if len(drawn) < len(reports) else 0
        alarms = [one for one in list(view.alarms) if one.alarm.n >= first]
        # The n of an event that is about no example is NaN: it is kept, so this is no >=.
        events = [event for event in list(view.events) if not event.n < first]
        return cls(
            view.feed, choice.axis, drawn, answers, samples, alarms, events,
            committed=view.committed, pending=view.pending, incidents=view.incidents,
        )  # fmt: skip

    def trust(self) -> Verdict:
        """Return whether the answers can be trusted at the end, whoever answers now."""
        last = self.incidents[-1] if self.incidents else None
        said = newest_answer(one.message for one in self.answers if "status" in one.message)
        report = self.reports[-1].message if self.reports else None
        found = trust(report, said, last if last is not None and last.until is None else None)
        if self.has_alarms or found.level != "well":
            return found
        told = found.sentence.replace("Probabilities hold", "As far as an exported file tells")
        return Verdict("wait", told, "It holds answers alone, and nothing of alarms.")

    def x(self) -> Floats:
        """Return where each report stands on the axis."""
        return np.array([r.n if self.axis == "n" else r.time for r in self.reports], dtype=float)

    def alarm_x(self) -> list[float]:
        """Return where the alarms stand on the axis; several at one place are one."""
        return sorted({a.alarm.n if self.axis == "n" else a.time for a in self.alarms})

    def notes(self) -> dict[str, list[float] | list[str]]:
        """Return where the notes stand on the axis, and their texts, as columns of a plot."""
        said = [event for event in self.events if event.is_note]
        return {
            "x": [event.n if self.axis == "n" else event.time for event in said],
            "text": [_short(event.detail) for event in said],
        }


def _short(text: str) -> str:
    return text if len(text) <= NOTE else f"{text[: NOTE - 1]}…"


def within(reports: Sequence[Report], name: str) -> list[Report]:
    """Return the reports of a range, which ends at the newest of them."""
    if not reports or name == "all":
        return list(reports)
    last = reports[-1]
    if name in EXAMPLES:
        return [r for r in reports if r.n > last.n - EXAMPLES[name]]
    return [r for r in reports if r.time >= last.time - HOURS[name] * _MS]


def thinned(count: int, most: int = POINTS) -> np.ndarray:
    """Return indices of at most `most` of `count` points, evenly spaced; the last is among them.

    Examples
    --------
    >>> thinned(7, most=3)
    array([0, 3, 6])
    """
    if count <= most:
        return np.arange(count)
    return np.linspace(0, count - 1, most).round().astype(int)
