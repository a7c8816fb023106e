"""The data of one feed on the page, the choice of a viewer, and the excerpt for this choice."""

import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, Self
from urllib.parse import urlencode

import numpy as np

from online_svm.types import Floats
from workers.broker.streams import Entry
from workers.dashboard.reports import NO_REPORT, Report
from workers.feed.state_fields import PendingLabels
from workers.reading.answers import message, newest_answer
from workers.reading.dates import Dates, date_of, moment
from workers.reading.events import Event
from workers.reading.facts import Fact, facts
from workers.reading.incidents import Incident, RaisedAlarm, ReportedOpenAlarms, dates_of
from workers.reading.label_facts import MAX_COMPARED_ANSWERS, selective_labels
from workers.reading.lag import NO_LAG
from workers.reading.status import FeedStatus
from workers.reading.true_labels import TrueLabels, Truth
from workers.reading.verdict import Verdict, trust, verdict
from workers.text import counted

MAX_REPORTS = 2000
MAX_ANSWERS = 2000
MAX_ALARMS = 1000
MAX_EVENTS = 50
MAX_FEATURES = 200  # examples with more features are kept without them
MAX_FLOW_POINTS = 900  # points of rate and lag that are kept: a quarter of an hour, at one a second
MAX_POINTS = 400  # points of a curve: about the width of a card in pixels
_RATE_SECONDS = 10.0  # time over which a rate is measured
_MAX_NOTE = 32  # characters of a note in a plot; the table of events has the whole text
_MAX_NOTES = 5  # newest notes among the facts
_PURPOSE = "purpose:"  # a note that begins so says what the feed is for
_MS_PER_HOUR = 3_600_000.0

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


class FlowPoint(NamedTuple):
    """A point of the curves of rate and lag."""

    time: float  # seconds since 1970, by the clock of the page
    seq: int  # entries answered
    rate: float  # entries answered a second, over `_RATE_SECONDS`
    waiting: int


class ShownAnswer(NamedTuple):
    """An entry of `out`, and the truth about it."""

    entry_id: bytes
    message: dict[str, Any]
    truth: Truth


def bounded(truth: Truth) -> Truth:
    """Return the truth of an example, without features if there are more than `MAX_FEATURES`."""
    is_wide = truth.features is not None and len(truth.features) > MAX_FEATURES
    return replace(truth, features=None) if is_wide else truth


def shown_answers(entries: Sequence[Entry], truths: TrueLabels) -> list[ShownAnswer]:
    """Return entries of `out` with their labels; entries of other programs are skipped."""
    messages = [message(entry) for entry in entries]
    return [
        ShownAnswer(entry[0], found, bounded(truth))
        for entry, found, truth in zip(entries, messages, truths.of(entries, messages), strict=True)
        if isinstance(found, dict)
    ]


@dataclass
class ShownFeed:
    """The status of one feed and the newest entries of its streams, the oldest first."""

    status: FeedStatus
    flow: deque[FlowPoint] = field(default_factory=lambda: deque(maxlen=MAX_FLOW_POINTS))
    open_alarms: deque[ReportedOpenAlarms] = field(
        default_factory=lambda: deque(maxlen=MAX_REPORTS)
    )
    reports: deque[Report] = field(default_factory=deque)
    answers: deque[ShownAnswer] = field(default_factory=deque)
    alarms: deque[RaisedAlarm] = field(default_factory=deque)
    events: deque[Event] = field(default_factory=deque)
    incidents: list[Incident] = field(default_factory=list)
    committed: dict[bytes, int] = field(default_factory=dict)  # see `incidents.commit_times`
    version: int = 0  # changes whenever reports, answers or alarms change

    @property
    def feed(self) -> str:
        """Name of the feed."""
        return self.status.feed

    @property
    def is_loaded(self) -> bool:
        """Whether the feed was read, or could not be read."""
        return bool(self.status.now or self.status.problem)

    @property
    def rate(self) -> float:
        """Entries answered a second, over `_RATE_SECONDS`."""
        return self.flow[-1].rate if self.flow else 0.0

    def take(self, status: FeedStatus) -> None:
        """Replace the status; add a point to the curves."""
        now, flow = status.now, self.flow
        since = [p for p in flow if now - p.time <= _RATE_SECONDS] or [*flow][-1:]
        rate = 0.0
        if since and now > since[0].time:
            rate = max(0.0, (status.seq - since[0].seq) / (now - since[0].time))
        flow.append(FlowPoint(now, status.seq, rate, status.waiting))
        is_watched = now - flow[0].time >= _RATE_SECONDS
        self.status = replace(status, rate=rate if is_watched else None)

    def clear(self) -> None:
        """Forget everything: the feed was deleted, or created again."""
        self.status = FeedStatus(feed=self.feed)
        entries = (self.reports, self.answers, self.alarms, self.events)
        for kept in (self.flow, self.open_alarms, *entries):
            kept.clear()
        self.incidents, self.committed = [], {}
        self.version += 1

    def fail(self, problem: str) -> None:
        """Set the reason why the feed cannot be read."""
        self.status = replace(self.status, problem=problem)

    def verdict(self) -> Verdict:
        """Return the verdict on the feed."""
        if not self.is_loaded:
            return Verdict("wait", "Loading …")
        return verdict(replace(self.status, now=time.time()))


@dataclass(frozen=True, slots=True)
class Choice:
    """The choice of a viewer. It is kept in the address of the page, so that a link shows the same.

    Examples
    --------
    >>> Choice.of({"feed": "mail", "range": "1h"}).address()
    '?feed=mail&range=1h'
    >>> Choice.of({"range": "<script>"}).address()
    '?'
    """

    feed: str = ""  # empty for the table of all feeds
    range: str = "all"  # one of `RANGES`
    axis: Axis = "n"
    sort: str = "verdict"  # column of the table of feeds
    theme: str = "auto"
    tab: str = ""  # empty for the first

    @classmethod
    def of(cls, arguments: Mapping[str, str]) -> Self:
        """Return the choice in an address; unknown values mean the default."""
        name = arguments.get("range", "all")
        theme = arguments.get("theme", "auto")
        return cls(
            feed=arguments.get("feed", "")[:80],
            range=name if name in RANGES else "all",
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
        """Return the link to this choice, with some changes."""
        defaults = {"feed": "", "range": "all", "axis": "n", "sort": "verdict", "theme": "auto"}
        values = {name: changes.get(name, getattr(self, name)) for name in defaults}
        return "?" + urlencode({k: v for k, v in values.items() if v != defaults[k]})


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The part of a feed that is drawn; the lists are in order of time."""

    feed: str
    axis: Axis = "n"  # whether curves run over examples learned or over time
    reports: list[Report] = field(default_factory=list)
    answers: list[ShownAnswer] = field(default_factory=list)
    flow: list[FlowPoint] = field(default_factory=list)
    alarms: list[RaisedAlarm] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    has_alarms: bool = True  # False if the source does not record alarms
    committed: dict[bytes, int] = field(default_factory=dict)  # see `incidents.commit_times`
    pending: PendingLabels | None = None  # None for a past run, or without delayed labels
    incidents: list[Incident] = field(default_factory=list)
    settings: Mapping[str, Any] = field(default_factory=dict)  # stored settings, by group
    silences: Sequence[Event] = ()  # of notices
    dates: Dates = field(default_factory=dict)  # of examples that alarms and notices name
    positive: str | None = None  # the class of interest; None for the rare ones
    digest: str = ""  # of all answers, with their number; empty if the source has none

    @classmethod
    def of(cls, shown: ShownFeed, choice: Choice) -> Self:
        """Return the excerpt of a feed for a choice."""
        # `list` copies a deque in one step, although the follower's thread may append to it.
        reports, answers, flow = list(shown.reports), list(shown.answers), list(shown.flow)
        drawn = within(reports, choice.range)
        # A range begins with its first report; earlier alarms and notes are left out.
        first = drawn[0].n if len(drawn) < len(reports) else 0
        alarms = [raised for raised in list(shown.alarms) if raised.alarm.n >= first]
        events = [e for e in list(shown.events) if not (e.is_note and e.n < first)]
        return cls(
            shown.feed, choice.axis, drawn, answers, flow, alarms, events,
            committed=shown.committed, pending=shown.status.lag.labels,
            incidents=shown.incidents, settings=shown.status.settings,
            silences=shown.status.silences, dates={**shown.status.dates, **dates_of(alarms)},
        )  # fmt: skip

    @property
    def is_scored(self) -> bool:
        """Whether any report has scored examples."""
        return any(report.scored for report in self.reports)

    @property
    def last(self) -> Report:
        """The newest report; one without figures if there is none."""
        return self.reports[-1] if self.reports else NO_REPORT

    @property
    def status(self) -> FeedStatus:
        """The status at the end of the excerpt, without what is of a worker."""
        last = self.incidents[-1] if self.incidents else None
        messages = [answer.message for answer in self.answers if "status" in answer.message]
        report = self.reports[-1].message if self.reports else None
        newest = messages[-MAX_COMPARED_ANSWERS:]
        return FeedStatus(
            feed=self.feed,
            answer=newest_answer(messages),
            report=report,
            incident=last if last is not None and last.until is None else None,
            settings=self.settings,
            lag=NO_LAG._replace(labels=self.pending),
            selective_labels=selective_labels(report or {}, lambda: newest),
            silences=tuple(self.silences),
            dates=self.dates,
        )

    def facts(self) -> list[Fact]:
        """Return the facts at the end of the excerpt, and those of its history."""
        return [*facts(self.status), *self._history()]

    def _history(self) -> Iterator[Fact]:
        notes = [event for event in self.events if event.is_note]
        stated = [note for note in notes if note.detail.lower().startswith(_PURPOSE)]
        for note in stated[-1:]:
            yield Fact("purpose", note.detail[len(_PURPOSE) :].strip())
        for note in [note for note in notes if note not in stated][-_MAX_NOTES:]:
            yield Fact("note", f"{note.writer} at example {note.n:,.0f}: {note.detail}")
        if self.reports:
            first, last = moment(self.reports[0].time), moment(self.last.time)
            yield Fact(
                "reports", f"{counted(len(self.reports), 'report')} from {first} to {last}, UTC"
            )
        if self.has_alarms and (self.reports or self.alarms):
            yield Fact("alarms", self._alarms())
        if self.digest:
            yield Fact("digest", f"SHA-256 {self.digest}")

    def _alarms(self) -> str:
        if not self.alarms:
            return "none was raised"
        raised, of = counted(len(self.alarms), "alarm"), counted(len(self.incidents), "incident")
        if not self.incidents:
            return f"{raised} raised"
        last = self.incidents[-1]
        until = "and is open" if last.until is None else f"until example {last.until:,}"
        began = f"at example {last.since:,}"
        if date := date_of(self.dates, last.since):
            began += f" ({date})"
        return f"{raised} in {of}; the last began {began} {until}: {last.cause}"

    def trust(self) -> Verdict:
        """Return the verdict on the answers at the end of the excerpt."""
        found = trust(self.status)
        if self.has_alarms or found.level != "well":
            return found
        sentence = f"As far as an exported file tells: {found.sentence}"
        return Verdict("wait", sentence, "It holds answers alone, and nothing of alarms.")

    def x(self) -> Floats:
        """Return the position of each report on the axis."""
        return np.array([r.n if self.axis == "n" else r.time for r in self.reports], dtype=float)

    def alarm_x(self) -> list[float]:
        """Return the distinct positions of the alarms on the axis."""
        return sorted({a.alarm.n if self.axis == "n" else a.time for a in self.alarms})

    def notes(self) -> dict[str, list[float] | list[str]]:
        """Return the positions of the notes on the axis, and their texts, as columns of a plot."""
        notes = [event for event in self.events if event.is_note]
        return {
            "x": [event.n if self.axis == "n" else event.time for event in notes],
            "text": [_short(event.detail) for event in notes],
        }


def _short(text: str) -> str:
    return text if len(text) <= _MAX_NOTE else f"{text[: _MAX_NOTE - 1]}…"


def within(reports: Sequence[Report], name: str) -> list[Report]:
    """Return the reports of a range; it ends at the newest report."""
    if not reports or name == "all":
        return list(reports)
    last = reports[-1]
    if name in EXAMPLES:
        return [r for r in reports if r.n > last.n - EXAMPLES[name]]
    return [r for r in reports if r.time >= last.time - HOURS[name] * _MS_PER_HOUR]


def thinned(count: int) -> np.ndarray:
    """Return at most `MAX_POINTS` evenly spaced indices of `count` points, including the last."""
    if count <= MAX_POINTS:
        return np.arange(count)
    return np.linspace(0, count - 1, MAX_POINTS).round().astype(int)
