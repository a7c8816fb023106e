"""One feed as the page shows it: bounded, and of plain values."""

import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from workers.broker.batch_size import Entry
from workers.dashboard.reports import Report
from workers.feed.state_fields import PendingLabels
from workers.reading.alarms import RaisedAlarm
from workers.reading.answers import message
from workers.reading.events import Event
from workers.reading.incidents import Incident, OpenThen
from workers.reading.true_labels import TrueLabels, Truth
from workers.reading.verdict import Facts, Verdict, is_replayed, lifecycle, missing_for, verdict

MOST_REPORTS = 2000
MOST_ANSWERS = 2000
MOST_ALARMS = 1000
MOST_EVENTS = 50
MOST_FEATURES = 200
"""Features of an example, up to which they are kept."""

SAMPLES = 900
"""Samples of rate and lag that are kept: a quarter of an hour, at one a second."""

_RATE_SECONDS = 10.0


class FeedSample(NamedTuple):
    """Where a feed stood at a moment.

    Attributes
    ----------
    time : float
        Seconds since 1970, by the clock of the page.
    seq : int
        Entries answered so far.
    rate : float
        Entries answered a second, over the last seconds.
    waiting : int
        Entries that wait.
    behind : float
        Age of the oldest of them, in seconds.
    """

    time: float
    seq: int
    rate: float
    waiting: int
    behind: float


class ShownAnswer(NamedTuple):
    """An entry of `out`, and what became known of its label."""

    entry_id: bytes
    message: dict[str, Any]
    truth: Truth


def bounded(truth: Truth) -> Truth:
    """Return what became known of an example, without features where there are very many."""
    is_wide = truth.features is not None and len(truth.features) > MOST_FEATURES
    return replace(truth, features=None) if is_wide else truth


def shown_answers(entries: Sequence[Entry], truths: TrueLabels) -> list[ShownAnswer]:
    """Return entries of `out` with what is known of their labels; of other programs, none."""
    messages = [message(entry) for entry in entries]
    return [
        ShownAnswer(entry[0], found, bounded(truth))
        for entry, found, truth in zip(entries, messages, truths.of(entries, messages), strict=True)
        if isinstance(found, dict)
    ]


@dataclass
class FeedView:
    """One feed, as the page shows it.

    Attributes
    ----------
    feed : str
    is_loaded : bool
        Whether it was read once.
    exists : bool
        Whether any of its keys does.
    problem : str
        Why it cannot be read; empty if it can.
    holder : str or None
        The worker that holds it.
    has_begun : bool
        Whether a worker ever held it.
    epoch : int
        Number of its last writer.
    seq, n : int
        Entries answered, examples learned.
    waiting_is_at_least : bool
        Whether more may wait than the last sample says.
    pending : PendingLabels or None
        Labels that are still to come; None where each comes with its example.
    newest : dict
        The last answer that tells its guarantee; see `verdict.newest_answer`.
    label_at : float or None
        When the newest label came, in milliseconds since 1970, or the first entry without one that
        was read; None where no answer waits for a label.
    marks : deque of OpenThen
        What each report says of alarms.
    incidents : list of Incident
        The oldest first.
    committed : dict of bytes to int
        When entries of `alarms` were committed, in milliseconds since 1970, where that is known.
    version : int
        Grows whenever reports, answers or alarms change.
    """

    feed: str
    is_loaded: bool = False
    exists: bool = True
    problem: str = ""
    holder: str | None = None
    has_begun: bool = False
    epoch: int = 0
    seq: int = 0
    n: int = 0
    waiting_is_at_least: bool = False
    pending: PendingLabels | None = None
    newest: Mapping[str, Any] = field(default_factory=dict)
    label_at: float | None = None
    marks: deque[OpenThen] = field(default_factory=lambda: deque(maxlen=MOST_REPORTS))
    incidents: list[Incident] = field(default_factory=list)
    samples: deque[FeedSample] = field(default_factory=lambda: deque(maxlen=SAMPLES))
    reports: deque[Report] = field(default_factory=deque)
    answers: deque[ShownAnswer] = field(default_factory=deque)
    alarms: deque[RaisedAlarm] = field(default_factory=deque)
    events: deque[Event] = field(default_factory=deque)
    committed: dict[bytes, int] = field(default_factory=dict)
    version: int = 0

    def sample(self, waiting: int, behind: float) -> None:
        """Note where the feed stands now."""
        now = time.time()
        since = [s for s in self.samples if now - s.time <= _RATE_SECONDS] or [*self.samples][-1:]
        rate = 0.0
        if since and now > since[0].time:
            rate = max(0.0, (self.seq - since[0].seq) / (now - since[0].time))
        self.samples.append(FeedSample(now, self.seq, rate, waiting, behind))

    def clear(self) -> None:
        """Forget what was read: the feed is gone, or began anew."""
        self.samples.clear()
        self.reports, self.answers = deque(), deque()
        self.alarms, self.events, self.committed = deque(), deque(), {}
        self.newest, self.pending, self.label_at, self.incidents = {}, None, None, []
        self.marks.clear()
        self.epoch = self.seq = self.n = 0
        self.version += 1

    @property
    def incident(self) -> Incident | None:
        """The incident that is open."""
        found = self.incidents
        return found[-1] if found and found[-1].until is None else None

    @property
    def is_replayed(self) -> bool:
        """Whether the last writer has not begun to answer."""
        return is_replayed(self.epoch, list(self.events))

    def verdict(self) -> Verdict:
        """Return what is to be said of the feed first."""
        if not (self.is_loaded or self.problem):
            return Verdict("wait", "Loading …")
        return verdict(self._facts(time.time()))

    def _facts(self, now: float) -> Facts:
        samples, reports = list(self.samples), list(self.reports)
        last = samples[-1] if samples else FeedSample(now, 0, 0.0, 0, 0.0)
        is_watched = bool(samples) and last.time - samples[0].time >= _RATE_SECONDS
        return Facts(
            self.feed,
            problem=self.problem,
            exists=self.exists,
            has_begun=self.has_begun,
            holder=self.holder,
            lifecycle=lifecycle(list(self.events)),
            now=now,
            is_replayed=self.is_replayed,
            waiting=last.waiting,
            waiting_is_at_least=self.waiting_is_at_least,
            waiting_seconds=last.behind,
            rate=last.rate if is_watched else None,
            unlabelled=0 if self.pending is None else self.pending.unlabelled,
            label_seconds=missing_for(self.label_at, self.pending, now),
            answer=self.newest,
            report=reports[-1].message if reports else None,
            incident=self.incident,
        )

    @property
    def last_sample(self) -> FeedSample | None:
        """The newest sample."""
        return self.samples[-1] if self.samples else None
