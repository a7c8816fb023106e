"""Reads the new entries and the status of one feed for the page."""

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
"""Newest reports that are read of a feed without a viewer; for a viewer `MAX_REPORTS` are read."""

MAX_NEW_ANSWERS = 500  # answers that an update reads; of more, the older ones are skipped

_COUNT_EVERY = 5
"""Updates between two counts of the waiting entries, if counting stopped at its bound."""


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
        self._after: dict[str, bytes] = {}  # by stream: ID of the last entry read
        self._was_viewed = False  # at the last update
        self._updates = 0
        self._answered = 0

    def close(self) -> None:
        """Close the connection; a later update opens another."""
        self._store.close()

    def update(self) -> None:
        """Read the new entries and the status.

        Unavailable: Redis does not answer; the entries read so far are kept. WorkerError: the feed
        cannot be read.
        """
        shown = self.shown
        before = shown.status if shown.status.now else None
        found = self._progress(before)
        if before is not None and (found.seq < before.seq or found.epoch < before.epoch):
            self._restart()  # the feed was deleted, and perhaps made again
            before, found = None, self._progress(None)
        is_kept, is_viewed = self._was_viewed, self.viewers > 0
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
        self._was_viewed = is_viewed

    def _progress(self, before: FeedStatus | None) -> FeedStatus:
        """Read the progress of the feed; count very many waiting entries only now and then."""
        self._updates += 1
        keeps_lag = before is not None and before.waiting_is_at_least
        return read_progress(self._store, before, keeps_lag and self._updates % _COUNT_EVERY > 0)

    def _restart(self) -> None:
        self.shown.clear()
        self._store.close()
        self._begin()

    def _read_reports(self, is_kept: bool) -> None:
        shown = self.shown
        count = MAX_REPORTS if self.viewers else FIRST_REPORTS
        found = self._new_payloads(self._store.keys.met, count, is_kept)
        if not is_kept:
            shown.open_alarms.clear()
        reported = (ReportedOpenAlarms.of(*entry) for entry in found)
        shown.open_alarms.extend(report for report in reported if report is not None)
        kept = list(shown.reports) if is_kept else []
        shown.reports = deque(kept + parsed(found), maxlen=MAX_REPORTS)

    def _read_alarms(self, is_kept: bool) -> None:
        shown, keys = self.shown, self._store.keys
        new = known_alarms(self._new_payloads(keys.alarms, MAX_ALARMS, is_kept))
        if new:
            kept = list(shown.alarms) if is_kept else []
            shown.alarms = deque(kept + new, maxlen=MAX_ALARMS)
            shown.committed = commit_times(self._store.last_entries(keys.raised, len(shown.alarms)))
        reported, alarms = list(shown.open_alarms), list(shown.alarms)
        if len(reported) >= FIRST_REPORTS:  # older reports are missing, so older alarms are ignored
            first = parse_id(reported[0].entry)  # by ID: after an `erase` n begins lower
            alarms = [alarm for alarm in alarms if parse_id(alarm.entry) > first]
        shown.incidents = incidents(alarms, reported)

    def _read_events(self) -> bool:
        """Read the new events, which come also without answers; return whether there are any."""
        new = known_events(self._new_payloads(self._store.keys.events, MAX_EVENTS, is_kept=True))
        if new:
            self.shown.events = deque([*self.shown.events, *new], maxlen=MAX_EVENTS)
        return bool(new)

    def _read_answers(self, seq: int, is_kept: bool) -> None:
        shown, count = self.shown, seq - self._answered
        found = self._new_entries(self._store.keys.out, MAX_NEW_ANSWERS, is_kept, count)
        kept = list(shown.answers) if is_kept else []
        added = shown_answers(found, self._truths)
        shown.answers = deque(_with_late_labels(kept + added), maxlen=MAX_ANSWERS)
        self._answered = seq

    def _new_payloads(self, stream: str, limit: int, is_kept: bool) -> list[tuple[bytes, Any]]:
        return [(entry[0], message(entry)) for entry in self._new_entries(stream, limit, is_kept)]

    def _new_entries(self, stream: str, limit: int, is_kept: bool, count: int = 0) -> list[Entry]:
        """Return the entries after the last one read.

        If earlier entries are not kept, or if `count` new entries are more than `limit`, return the
        newest `limit` entries.
        """
        store, after = self._store, self._after.get(stream) if is_kept else None
        if after is None or count > limit:
            found = store.last_entries(stream, limit)
            if after is not None:
                found = [entry for entry in found if parse_id(entry[0]) > parse_id(after)]
        else:
            found = list(store.each(stream, after))
        self._after[stream] = found[-1][0] if found else self._after.get(stream, b"0-0")
        return found


def _with_late_labels(answers: list[ShownAnswer]) -> list[ShownAnswer]:
    """Return answers with their delayed labels, which the answers to label entries hold."""
    messages = (answer.message for answer in answers if answer.message.get("status") == "label")
    late = {str(message.get("example")): message.get("label") for message in messages}
    return [_labelled(answer, late) for answer in answers] if late else answers


def _labelled(answer: ShownAnswer, late: dict[str, Any]) -> ShownAnswer:
    label = late.get(str(answer.message.get("id")))
    if label is None or answer.message.get("status") != "ok":
        return answer
    is_right = answer.message.get("label") == label
    return answer._replace(truth=Truth(is_kept=True, label=str(label), is_right=is_right))
