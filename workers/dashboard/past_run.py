"""Read a past run from the streams of a feed, or from an archive."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from workers.broker import commands
from workers.broker.store import Store
from workers.dashboard.reports import Report, parsed
from workers.dashboard.shown_feed import (
    MAX_REPORTS,
    Axis,
    Excerpt,
    ShownAnswer,
    bounded,
    shown_answers,
)
from workers.errors import BadConfiguration, StateLost
from workers.feed.pinned_config import Groups, stored_groups
from workers.feed.position import last_id_at, parse_id, previous_id
from workers.message.compact import parse
from workers.offline.archive.reader import Archive
from workers.reading.answers import message, stored_values
from workers.reading.events import known_events
from workers.reading.incidents import (
    Incident,
    RaisedAlarm,
    ReportedOpenAlarms,
    commit_times,
    incidents,
    known_alarms,
)
from workers.reading.true_labels import ANSWERED, TrueLabels, Truth, features_of, is_right

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


def read_past(
    store: Store, since: float | None = None, until: float | None = None, axis: Axis = "n"
) -> Excerpt:
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
    return Excerpt(
        keys.feed, axis, reports, answers, [], alarms, events, committed=times,
        incidents=found_incidents, settings=stored_values(store), digest=_digest(*digest),
    )  # fmt: skip


def _digest(seq: bytes | None, digest: bytes | None) -> str:
    """Return the digest of all answers so far, and their number; "" if none is stored."""
    if seq is None or digest is None:
        return ""
    text = digest.decode(errors="replace") if len(digest) == 64 else digest.hex()
    return f"{text} of {seq.decode(errors='replace')} answered entries"


def _parsed_pages(
    store: Store, stream: str, after: bytes, upto: bytes
) -> Iterator[list[tuple[bytes, Any]]]:
    for page in store.pages(stream, after, upto):
        yield [(entry[0], message(entry)) for entry in page]


def read_archive(
    archive: Archive, since: float | None = None, until: float | None = None, axis: Axis = "n"
) -> Excerpt:
    """Return the excerpt of a span from an archive; see `read_past`."""
    after = b"0-0" if since is None else previous_id(b"%d-0" % since)
    upto = None if until is None else last_id_at(until)
    last = archive.tail("alarms", ("payload",), MAX_ALARMS, after, upto)
    alarms = known_alarms(_messages(last))[-MAX_ALARMS:]
    pages = archive.pages("reports", ("payload",), after, upto)
    reports, found = _reports_and_incidents(alarms, (list(_messages(page)) for page in pages))
    answers = _archived_answers(archive, after, upto)
    if not reports and not answers:
        raise NothingKept(
            f"{archive.directory}: holds no answers and no reports of this time: choose another "
            "--since or --until"
        )
    feed = archive.identity.feed
    settings: Groups = {}
    with suppress(BadConfiguration, StateLost):  # of an earlier version: the rest is still shown
        settings = stored_groups(feed, archive.identity.pinned)
    return Excerpt(feed, axis, reports, answers, [], alarms, incidents=found, settings=settings)


def _archived_answers(archive: Archive, after: bytes, upto: bytes | None) -> list[ShownAnswer]:
    """Return the last answers of a span, with their archived labels and features."""
    rows = archive.tail("answers", ("payload",), MAX_ANSWERS, after, upto)
    if not rows:
        return []
    before, last = previous_id(rows[0][0]), rows[-1][0]
    features = {
        at: features_of(dict(zip(fields[::2], fields[1::2], strict=False)))
        for page in archive.inputs(before, last)
        for at, fields in page
    }
    own: dict[bytes, str] = {}
    late: dict[str, str] = {}
    for page in archive.pages("labels", ("id", "label", "is_late"), before):
        for at, (example, label, is_late) in page:
            if is_late:
                late[example] = label
            else:
                own[at] = label
    found = []
    for at, answer in _messages(rows):
        if isinstance(answer, dict):
            label = late.get(answer.get("id") or "", own.get(at))
            given = features.get(at) if answer.get("status") in ANSWERED else None
            truth = Truth(at in features, label, is_right(answer, label), given)
            found.append(ShownAnswer(at, answer, bounded(truth)))
    return found


def _messages(rows: list[tuple[bytes, tuple[Any, ...]]]) -> Iterator[tuple[bytes, Any]]:
    for at, (text,) in rows:
        try:
            yield at, parse(text.encode())
        except ValueError:
            yield at, None
