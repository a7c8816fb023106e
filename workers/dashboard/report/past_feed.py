"""A past run as the feed has kept it."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from workers.broker.store import Store
from workers.dashboard.excerpt import Axis, Excerpt
from workers.dashboard.feed_view import MOST_ANSWERS, MOST_REPORTS, ShownAnswer, shown_answers
from workers.dashboard.reports import Report, parsed
from workers.errors import BadConfiguration
from workers.feed.position import parse_id, previous_id
from workers.reading.alarms import RaisedAlarm, commit_times, known_alarms
from workers.reading.answers import message
from workers.reading.events import known_events
from workers.reading.incidents import OpenThen, incidents
from workers.reading.true_labels import TrueLabels

MOST_ALARMS = 10_000


class NothingKept(BadConfiguration):
    """A span of time from which a feed keeps neither reports nor answers."""


class Thinned:
    """Of very many reports evenly spaced ones, at most `MOST_REPORTS`.

    Attributes
    ----------
    kept : list of Report

    Examples
    --------
    >>> thinned = Thinned()
    >>> for n in range(5_000):
    ...     thinned.add([Report(0.0, n, n, {}, {})])
    >>> [report.n for report in thinned.kept[:3]]
    [3, 7, 11]
    """

    def __init__(self) -> None:
        self.kept: list[Report] = []
        self._step = self._seen = 1

    def add(self, reports: Iterable[Report]) -> None:
        """Add the next reports."""
        for report in reports:
            if self._seen % self._step == 0:
                self.kept.append(report)
            self._seen += 1
        while len(self.kept) > MOST_REPORTS:
            del self.kept[::2]
            self._step *= 2


def read_past(
    store: Store, since: float | None = None, until: float | None = None, axis: Axis = "n"
) -> Excerpt:
    """Return what a feed kept of a span.

    Of very many reports evenly spaced ones are taken; of the answers and alarms, the last.

    Parameters
    ----------
    store : Store
    since, until : float, optional
        Milliseconds since 1970, as in the IDs of entries; both ends are included.
    axis : "n" or "time"

    Raises
    ------
    NothingKept
        If nothing is kept of it.
    """
    keys = store.keys
    after = b"0-0" if since is None else previous_id(b"%d-0" % since)
    upto = b"+" if until is None else b"%d-18446744073709551615" % until
    alarms: list[RaisedAlarm] = []
    for found in _parsed_pages(store, keys.alarms, after, upto):
        alarms = [*alarms, *known_alarms(found)][-MOST_ALARMS:]
    thinned, marks = Thinned(), Marks(alarms)
    for found in _parsed_pages(store, keys.met, after, upto):
        thinned.add(parsed(found))
        marks.add(found)
    reports = thinned.kept
    answers = _answers(store, after, upto)
    if not reports and not answers:
        raise NothingKept(
            f"feed {keys.feed!r} keeps no answers and no reports of this time: see online-svm "
            f"status {keys.feed}, and choose another --since or --until"
        )
    events = [
        event
        for found in _parsed_pages(store, keys.events, after, upto)
        for event in known_events(found)
    ]
    kept = store.call("XRANGE", keys.raised, "-", "+")
    times = commit_times(kept)
    return Excerpt(
        keys.feed, axis, reports, answers, [], alarms, events, committed=times,
        incidents=incidents(alarms, marks.kept),
    )  # fmt: skip


class Marks:
    """What reports say of alarms, without those that repeat that none is open.

    Parameters
    ----------
    alarms : sequence of RaisedAlarm
        In the order of their stream.

    Attributes
    ----------
    kept : list of OpenThen
    """

    def __init__(self, alarms: Sequence[RaisedAlarm]) -> None:
        self.kept: list[OpenThen] = []
        self._raised = [parse_id(one.entry) for one in alarms]
        self._before = 0  # alarms up to the last report

    def add(self, entries: Iterable[tuple[bytes, Any]]) -> None:
        """Add the next entries of `met`: IDs and parsed payloads."""
        for entry in entries:
            mark = OpenThen.of(*entry)
            if mark is None:
                continue
            before, self._before = self._before, bisect_right(self._raised, parse_id(mark.entry))
            is_news = not self.kept or self.kept[-1].alarms or self._before > before
            if mark.alarms or is_news:
                self.kept.append(mark)


def _answers(store: Store, after: bytes, upto: bytes) -> list[ShownAnswer]:
    """Return the last answers of a span, with the labels that are known."""
    found = store.call("XREVRANGE", store.keys.out, upto, b"(" + after, "COUNT", MOST_ANSWERS)
    return shown_answers(found[::-1], TrueLabels(store, with_features=True))


def _parsed_pages(
    store: Store, stream: str, after: bytes, upto: bytes
) -> Iterator[list[tuple[bytes, Any]]]:
    for page in store.pages(stream, after, upto):
        yield [(entry[0], message(entry)) for entry in page]
