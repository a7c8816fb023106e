"""Reads of one feed what is new since the last time."""

from collections import deque
from typing import Any

from workers.broker.batch_size import Entry
from workers.broker.store import Store
from workers.dashboard.feed_view import (
    MOST_ALARMS,
    MOST_ANSWERS,
    MOST_EVENTS,
    MOST_REPORTS,
    FeedView,
    ShownAnswer,
    shown_answers,
)
from workers.dashboard.reports import Report, parsed
from workers.feed.position import parse_id
from workers.reading.alarms import commit_times, known_alarms
from workers.reading.answers import message, newest
from workers.reading.events import known_events
from workers.reading.incidents import OpenThen, incidents
from workers.reading.lag import lag
from workers.reading.registry import holder
from workers.reading.true_labels import TrueLabels, Truth
from workers.reading.verdict import newest_answer, newest_label, tells_guarantee

FIRST_REPORTS = 300
"""Reports that are read of a feed at first; all that fit are read once it is watched."""

PER_READ = 500
"""Answers that are read at once. Where more are new, the older ones are left out."""

LABELS = 50
"""Newest answers that are read, while nobody looks, where labels are to come or the newest tells
no guarantee."""

_COUNT_EVERY = 5
"""Readings after which the entries that wait are counted again, where there are very many."""


class FeedFollower:
    """Keeps a `FeedView` up to date.

    What a feed is answered with is read in full only while somebody looks at it. Otherwise its
    newest answer is, which tells the guarantee.

    Parameters
    ----------
    url, feed : str

    Attributes
    ----------
    view : FeedView
    viewers : int
        How many look at this feed.
    """

    def __init__(self, url: str, feed: str) -> None:
        self.view = FeedView(feed)
        self.viewers = 0
        self._url = url
        self._begin()

    def _begin(self) -> None:
        self._store = Store(self._url, self.view.feed)
        self._truths = TrueLabels(self._store, with_features=True)
        self._after: dict[str, bytes] = {}
        self._is_deep = False
        self._readings = 0
        self._answered = 0

    def close(self) -> None:
        """Give up the connection; a later reading makes another."""
        self._store.close()

    def update(self) -> None:
        """Read what is new.

        Raises
        ------
        Unavailable
            If Redis does not answer. What was read before is kept.
        WorkerError
            If the feed cannot be read.
        """
        view, keys = self.view, self._store.keys
        fields = self._store.call("HMGET", keys.state, "epoch", "seq", "n")
        epoch, seq, n = (_count(value) for value in fields)
        if seq < view.seq or (view.is_loaded and epoch < view.epoch):
            self._restart()
        view.has_begun, view.epoch = fields[0] is not None, epoch
        view.exists = view.has_begun or bool(self._store.types())
        is_new = seq > view.seq or not view.is_loaded
        before, view.holder, view.n = view.holder, holder(self._store), n
        self._sample(seq)
        if is_new or (self.viewers and not self._is_deep):
            self._read_reports()
            self._read_answers()
            self._read_alarms()
            view.version += 1
        if is_new or self.viewers or view.holder != before or view.is_replayed:
            self._read_events()
        view.is_loaded, view.problem = True, ""

    def _restart(self) -> None:
        """Begin anew: the feed was deleted, and perhaps made again."""
        self.view.clear()
        self._store.close()
        self._begin()

    def _sample(self, seq: int) -> None:
        """Note how far the answers are, and how many entries wait for one."""
        view, last = self.view, self.view.last_sample
        view.seq = seq
        self._readings += 1
        if view.waiting_is_at_least and last and self._readings % _COUNT_EVERY:
            view.sample(last.waiting, last.behind)
        else:
            found = lag(self._store)
            view.waiting_is_at_least, view.pending = found.is_at_least, found.labels
            view.sample(found.entries, found.seconds)

    def _read_reports(self) -> None:
        store, view, stream = self._store, self.view, self._store.keys.met
        is_deeper = self.viewers > 0 and not self._is_deep
        if stream not in self._after or is_deeper:
            found = newest(store, stream, MOST_REPORTS if self.viewers else FIRST_REPORTS)
            kept: list[Report] = []
            view.marks.clear()
        else:
            pages = store.pages(stream, self._after[stream])
            found = [entry for page in pages for entry in page]
            kept = list(view.reports)
        told = [(entry[0], message(entry)) for entry in found]
        kept += parsed(told)
        marks = (OpenThen.of(*one) for one in told)
        view.marks.extend(mark for mark in marks if mark is not None)
        view.reports = deque(kept, maxlen=MOST_REPORTS)
        self._mark(stream, found)

    def _read_alarms(self) -> None:
        view, keys = self.view, self._store.keys
        if news := known_alarms(self._news(keys.alarms, MOST_ALARMS)):
            view.alarms = deque([*view.alarms, *news], maxlen=MOST_ALARMS)
            kept = newest(self._store, keys.raised, len(view.alarms))
            view.committed = commit_times(kept)
        marks, alarms = list(view.marks), list(view.alarms)
        if len(marks) >= FIRST_REPORTS:  # older ones are not known, and no story begins there
            first = parse_id(marks[0].entry)  # by ID: after an `erase` n begins lower
            alarms = [one for one in alarms if parse_id(one.entry) > first]
        view.incidents = incidents(alarms, marks)

    def _read_events(self) -> None:
        """Read events: what people say, and what ends a worker, comes without answers."""
        view = self.view
        if news := known_events(self._news(self._store.keys.events, MOST_EVENTS)):
            view.events = deque([*view.events, *news], maxlen=MOST_EVENTS)
            view.version += 1

    def _news(self, stream: str, most: int) -> list[tuple[bytes, Any]]:
        """Return the entries of a stream since the last, the newest at first, with payloads."""
        if stream in self._after:
            pages = self._store.pages(stream, self._after[stream])
            found = [entry for page in pages for entry in page]
        else:
            found = newest(self._store, stream, most)
        self._mark(stream, found)
        return [(entry[0], message(entry)) for entry in found]

    def _read_answers(self) -> None:
        view, stream = self.view, self._store.keys.out
        waits = view.pending is not None and view.pending.unlabelled > 0
        few = LABELS if waits else 1
        found = self._new_answers(stream) if self.viewers else newest(self._store, stream, few)
        is_alone = not self.viewers and len(found) == 1
        if is_alone and not tells_guarantee(message(found[0])):
            found = newest(self._store, stream, LABELS)
        if waits:
            self._note_label(found)
        else:
            view.label_at = None
        view.newest = newest_answer([view.newest, *map(message, found)])
        if self.viewers:
            added = shown_answers(found, self._truths)
            kept = list(view.answers) if self._is_deep else []
            view.answers = deque(_with_late_labels(kept + added), maxlen=MOST_ANSWERS)
        self._is_deep = self.viewers > 0
        self._mark(stream, found)
        self._answered = view.seq

    def _note_label(self, found: list[Entry]) -> None:
        """Note when the newest label came; answers that wait for theirs are among those found."""
        told = [(entry[0], message(entry)) for entry in found]
        labels = [
            one for one in told if isinstance(one[1], dict) and one[1].get("status") == "label"
        ]
        if labels or self.view.label_at is None:
            self.view.label_at = newest_label(labels or told)

    def _new_answers(self, stream: str) -> list[Entry]:
        """Return the answers since the last, or the newest if they are too many."""
        store, after = self._store, self._after.get(stream)
        if after is None or not self._is_deep:
            return newest(store, stream, PER_READ)
        if self.view.seq - self._answered > PER_READ:
            found = newest(store, stream, PER_READ)
            return [entry for entry in found if parse_id(entry[0]) > parse_id(after)]
        return [entry for page in store.pages(stream, after) for entry in page]

    def _mark(self, stream: str, found: list[Entry]) -> None:
        if found:
            self._after[stream] = found[-1][0]
        else:
            self._after.setdefault(stream, b"0-0")


def _with_late_labels(answers: list[ShownAnswer]) -> list[ShownAnswer]:
    """Return answers with the labels that came after them: an entry of `out` tells each."""
    late = {
        str(one.message.get("example")): one.message.get("label")
        for one in answers
        if one.message.get("status") == "label"
    }
    return [_labelled(one, late) for one in answers] if late else answers


def _labelled(answer: ShownAnswer, late: dict[str, Any]) -> ShownAnswer:
    label = late.get(str(answer.message.get("id")))
    if label is None or answer.message.get("status") != "ok":
        return answer
    is_right = answer.message.get("label") == label
    return answer._replace(truth=Truth(is_kept=True, label=str(label), is_right=is_right))


def _count(value: bytes | None) -> int:
    """Return a counter of the state; 0 where it is none."""
    return int(value) if value is not None and value.isdigit() and len(value) < 19 else 0
