"""Read a past run from the streams of a feed, or from its recording."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from workers.broker import commands
from workers.broker.feed_reader import FeedReader
from workers.dashboard.reports import Report, parsed
from workers.dashboard.shown_feed import (
    MAX_REPORTS,
    Excerpt,
    shown_answers,
)
from workers.errors import BadConfiguration
from workers.feed.position import last_id_at, parse_id, previous_id
from workers.reading.answers import message, stored_values
from workers.reading.events import known_events, notice_silences
from workers.reading.incidents import (
    Incident,
    RaisedAlarm,
    ReportedOpenAlarms,
    commit_times,
    dates_of,
    incidents,
    known_alarms,
)
from workers.reading.status import with_dates
from workers.reading.true_labels import TrueLabels

MAX_ALARMS = 10_000
MAX_ANSWERS = 20_000  # newest answers of a past run that are read: ten times those of the live page


class NothingKept(BadConfiguration):
    """The source keeps neither reports nor answers of a span of time."""


class Thinned:
    """Keeps evenly spaced reports of a series, at most `MAX_REPORTS`."""

    def __init__(self) -> None:
        self.kept: list[Report] = []
        self._step = self._seen = 1

    def add(self, reports: Iterable[Report]) -> None:
        """Add the next reports."""
        for report in reports:
            if self._seen % self._step == 0:
                self.kept.append(report)
            self._seen += 1
        while len(self.kept) > MAX_REPORTS:
            del self.kept[::2]
            self._step *= 2


def _reports_and_incidents(
    alarms: Sequence[RaisedAlarm], pages: Iterable[list[tuple[bytes, Any]]]
) -> tuple[list[Report], list[Incident]]:
    """Return evenly spaced reports of pages of `met`, and the incidents.

    To bound memory, a report without open alarms is dropped for the incidents if the one before it
    had none either and no alarm came between them.
    """
    raised, before = [parse_id(alarm.entry) for alarm in alarms], 0
    thinned, reported = Thinned(), list[ReportedOpenAlarms]()
    for page in pages:
        thinned.add(parsed(page))
        for entry in page:
            report = ReportedOpenAlarms.of(*entry)
            if report is None:
                continue
            upto = bisect_right(raised, parse_id(report.entry))
            if report.alarms or upto > before or not reported or reported[-1].alarms:
                reported.append(report)
            before = upto
    return thinned.kept, incidents(alarms, reported)


def read_past(store: FeedReader, since: float | None = None, until: float | None = None) -> Excerpt:
    """Return the excerpt of a span from a feed, in milliseconds since 1970, both ends included.

    Reports are thinned evenly to `MAX_REPORTS`; of answers and alarms the newest are read.
    NothingKept: the feed keeps nothing of the span.
    """
    keys = store.keys
    after = b"0-0" if since is None else previous_id(b"%d-0" % since)
    upto = b"+" if until is None else last_id_at(until)
    alarms: list[RaisedAlarm] = []
    for found in _parsed_pages(store, keys.alarms, after, upto):
        alarms = [*alarms, *known_alarms(found)][-MAX_ALARMS:]
    reports, found_incidents = _reports_and_incidents(
        alarms, _parsed_pages(store, keys.met, after, upto)
    )
    last = store.last_entries(keys.out, MAX_ANSWERS, commands.after(after), upto)
    answers = shown_answers(last, TrueLabels(store, with_features=True))
    if not reports and not answers:
        raise NothingKept(
            f"feed {keys.feed!r} keeps no answers and no reports of this time: see online-svm "
            f"status {keys.feed}, and choose another --since or --until"
        )
    pages = _parsed_pages(store, keys.events, after, upto)
    events = [event for found in pages for event in known_events(found)]
    times = commit_times(store.entries(keys.raised))
    digest = store.state_fields("seq", "digest")
    past = Excerpt(
        keys.feed, "n", reports, answers, [], alarms, events, committed=times,
        incidents=found_incidents, settings=stored_values(store), digest=_digest(*digest),
        silences=notice_silences(events),
    )  # fmt: skip
    return replace(past, dates={**with_dates(store, past.status).dates, **dates_of(alarms)})


def _digest(seq: bytes | None, digest: bytes | None) -> str:
    """Return the digest of all answers so far, and their number; "" if none is stored."""
    if seq is None or digest is None:
        return ""
    text = digest.decode(errors="replace") if len(digest) == 64 else digest.hex()
    number = f"{int(seq):,}" if seq.isdigit() else seq.decode(errors="replace")
    return f"{text} of {number} answered entries"


def _parsed_pages(
    store: FeedReader, stream: str, after: bytes, upto: bytes
) -> Iterator[list[tuple[bytes, Any]]]:
    for page in store.pages(stream, after, upto):
        yield [(entry[0], message(entry)) for entry in page]
