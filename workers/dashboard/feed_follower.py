"""Reads what is new of one feed for the page."""

from collections import deque
from typing import Any

from workers.broker.store import Store
from workers.broker.streams import Entry
from workers.dashboard.reports import parsed
from workers.dashboard.shown_feed import (
    MAX_ALARMS,
    MAX_ANSWERS,
    MAX_EVENTS,
    MAX_REPORTS,
    ShownAnswer,
    ShownFeed,
    shown_answers,
)
from workers.feed.position import parse_id
from workers.reading.answers import message
from workers.reading.events import known_events
from workers.reading.incidents import ReportedOpenAlarms, commit_times, incidents, known_alarms
from workers.reading.status import FeedStatus, read_progress, with_outputs
from workers.reading.true_labels import TrueLabels, Truth

FIRST_REPORTS = 300
"""Newest reports of a feed that are read at first; all that fit are read once it is viewed."""

MAX_NEW_ANSWERS = 500
"""Answers that are read at once. If more are new, the older ones are left out."""

_COUNT_EVERY = 5
"""Readings after which the waiting entries are counted again, if there are very many."""


class FeedFollower:
    """Keeps the `ShownFeed` of one feed up to date.

    Its status, its reports and its events are always read, its answers and alarms only while a
    browser shows the feed.
    """

    def __init__(self, url: str, feed: str) -> None:
        self.viewers = 0  # sessions that show this feed
        self._url = url
        self.shown = ShownFeed(FeedStatus(feed=feed))
        self._begin()

    def _begin(self) -> None:
        self._store = Store(self._url, self.shown.feed)
        self._truths = TrueLabels(self._store, with_features=True)
        self._after: dict[str, bytes] = {}
        self._is_deep = False  # whether the last reading was for a viewer
        self._readings = 0
        self._answered = 0

    def close(self) -> None:
        """Close the connection; a later reading opens another."""
        self._store.close()

    def update(self) -> None:
        """Read what is new.

        Unavailable: Redis does not answer; what was read before is kept. WorkerError: the feed
        cannot be read.
        """
        shown = self.shown
        before = shown.status if shown.status.now else None
        found = self._progress(before)
        if before is not None and (found.seq < before.seq or found.epoch < before.epoch):
            self._restart()  # the feed was deleted, and perhaps made again
            before, found = None, self._progress(None)
        is_kept, is_viewed = self._is_deep, self.viewers > 0
        is_new = before is None or found.seq > before.seq or is_viewed > is_kept
        if is_new:
            self._read_reports(is_kept or not is_viewed)
        if is_new and is_viewed:
            self._read_answers(found.seq, is_kept)
            self._read_alarms(is_kept)
        has_events = self._read_events()
        shown.version += is_new or has_events
        is_held = before is not None and found.holder == before.holder
        if is_new or has_events or found.is_replayed or not is_held:
            found = with_outputs(self._store, found, before)
        shown.take(found)
        self._is_deep = is_viewed

    def _progress(self, before: FeedStatus | None) -> FeedStatus:
        """Read how far the feed is; very many waiting entries are not counted each time."""
        self._readings += 1
        keeps_lag = before is not None and before.waiting_is_at_least
        return read_progress(self._store, before, keeps_lag and self._readings % _COUNT_EVERY > 0)

    def _restart(self) -> None:
        self.shown.clear()
        self._store.close()
        self._begin()

    def _read_reports(self, is_kept: bool) -> None:
        shown = self.shown
        most = MAX_REPORTS if self.viewers else FIRST_REPORTS
        found = self._news(self._store.keys.met, most, is_kept)
        if not is_kept:
            shown.marks.clear()
        marks = (ReportedOpenAlarms.of(*one) for one in found)
        shown.marks.extend(mark for mark in marks if mark is not None)
        kept = list(shown.reports) if is_kept else []
        shown.reports = deque(kept + parsed(found), maxlen=MAX_REPORTS)

    def _read_alarms(self, is_kept: bool) -> None:
        shown, keys = self.shown, self._store.keys
        news = known_alarms(self._news(keys.alarms, MAX_ALARMS, is_kept))
        if news:
            kept = list(shown.alarms) if is_kept else []
            shown.alarms = deque(kept + news, maxlen=MAX_ALARMS)
            shown.committed = commit_times(self._store.last_entries(keys.raised, len(shown.alarms)))
        marks, alarms = list(shown.marks), list(shown.alarms)
        if len(marks) >= FIRST_REPORTS:  # older ones are not known: no incident begins before these
            first = parse_id(marks[0].entry)  # by ID: after an `erase` n begins lower
            alarms = [one for one in alarms if parse_id(one.entry) > first]
        shown.incidents = incidents(alarms, marks)

    def _read_events(self) -> bool:
        """Read events, which come without answers too; return whether there are new ones."""
        news = known_events(self._news(self._store.keys.events, MAX_EVENTS, is_kept=True))
        if news:
            self.shown.events = deque([*self.shown.events, *news], maxlen=MAX_EVENTS)
        return bool(news)

    def _read_answers(self, seq: int, is_kept: bool) -> None:
        shown, count = self.shown, seq - self._answered
        found = self._entries(self._store.keys.out, MAX_NEW_ANSWERS, is_kept, count)
        kept = list(shown.answers) if is_kept else []
        added = shown_answers(found, self._truths)
        shown.answers = deque(_with_late_labels(kept + added), maxlen=MAX_ANSWERS)
        self._answered = seq

    def _news(self, stream: str, most: int, is_kept: bool) -> list[tuple[bytes, Any]]:
        """Return IDs and payloads of `_entries`."""
        return [(entry[0], message(entry)) for entry in self._entries(stream, most, is_kept)]

    def _entries(self, stream: str, most: int, is_kept: bool, count: int = 0) -> list[Entry]:
        """Return the entries since the last, or only the newest if these are more than `most`."""
        store, after = self._store, self._after.get(stream) if is_kept else None
        if after is None or count > most:
            found = store.last_entries(stream, most)
            if after is not None:
                found = [entry for entry in found if parse_id(entry[0]) > parse_id(after)]
        else:
            found = [entry for page in store.pages(stream, after) for entry in page]
        self._after[stream] = found[-1][0] if found else self._after.get(stream, b"0-0")
        return found


def _with_late_labels(answers: list[ShownAnswer]) -> list[ShownAnswer]:
    """Return answers with the labels that came after them, each in an entry of `out`."""
    messages = (one.message for one in answers if one.message.get("status") == "label")
    late = {str(one.get("example")): one.get("label") for one in messages}
    return [_labelled(one, late) for one in answers] if late else answers


def _labelled(answer: ShownAnswer, late: dict[str, Any]) -> ShownAnswer:
    label = late.get(str(answer.message.get("id")))
    if label is None or answer.message.get("status") != "ok":
        return answer
    is_right = answer.message.get("label") == label
    return answer._replace(truth=Truth(is_kept=True, label=str(label), is_right=is_right))
