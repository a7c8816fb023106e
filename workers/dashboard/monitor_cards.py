"""Cards of the sequential tests: evidence, deviation from calibration, alarms and events."""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bokeh.models import Range1d, Span, UIElement
from typing_extensions import override

from workers.dashboard.card import Card, TextCard, band, legend, markup, plot, source
from workers.dashboard.reports import Report
from workers.dashboard.section import Cell, Section
from workers.dashboard.shown_feed import Excerpt, thinned
from workers.dashboard.text import ACCURACY, ALARM, ANNOUNCED, OTHER, Markup, scale, signed, whole
from workers.reading.answers import as_list, as_object, number
from workers.reading.dates import Dates, date_of, moment
from workers.reading.incidents import Incident, RaisedAlarm
from workers.reading.verdict import incident_sentence

NO_MONITORS = (
    "No report yet that has them. Or the reports of this feed carry no monitors: the feed was "
    "begun with monitors = off."
)

_MAX_TESTS = 100  # tests that are read of a report
_MAX_PARTS = 8  # parts in the table of deviations
_MAX_ROWS = 10  # incidents, alarms or events in a table

_DEVIATION = ("since", "estimate", "lower", "upper")


class Test(NamedTuple):
    """A sequential test in a report."""

    kind: str
    scope: str
    name: str
    margin: float  # log wealth less log threshold: an alarm is raised at 0
    # The mean of y - p since the start with the most evidence; NaN if the report has none.
    since: float = math.nan  # first example of that mean
    estimate: float = math.nan
    lower: float = math.nan  # of the confidence sequence
    upper: float = math.nan


def tests_of(report: Report) -> list[Test]:
    """Return the valid tests in a report.

    Examples
    --------
    >>> found = {"kind": "calibration", "scope": "overall", "log_wealth": 1.5, "threshold": 5}
    >>> tests_of(Report.of(b"1-0", {"n": 1, "scored": 1, "monitors": {"tests": [found]}}))[0].margin
    -3.5
    """
    given = as_list(report.part("monitors").get("tests"))
    tests = [_test(as_object(each)) for each in given[:_MAX_TESTS]]
    return [test for test in tests if not math.isnan(test.margin)]


def _test(given: dict[str, object]) -> Test:
    deviation = as_object(given.get("deviation"))
    kind, scope, name = (str(given.get(key) or "")[:200] for key in ("kind", "scope", "name"))
    margin = number(given.get("log_wealth")) - number(given.get("threshold"))
    return Test(kind, scope, name, margin, *(number(deviation.get(key)) for key in _DEVIATION))


def _nearest(tests: Sequence[Test], kind: str) -> float:
    """Return the largest margin of the tests of a kind: of the test nearest to an alarm."""
    return max((test.margin for test in tests if test.kind == kind), default=math.nan)


def _overall(tests: Sequence[Test]) -> Test:
    """Return the overall test of calibration; one of NaN if there is none."""
    found = (test for test in tests if (test.kind, test.scope) == ("calibration", "overall"))
    return next(found, Test("", "", "", math.nan))


class EvidenceCard(Card):
    """Log-wealth of the tests against their thresholds."""

    title = "Evidence of the monitors"
    words = (
        "How near each test is to an alarm: log of its wealth less that of its threshold. "
        "An alarm (marked) is raised at 0. While all is well the lines stay below it."
    )
    section = "monitors"

    @override
    def body(self) -> Sequence[UIElement]:
        self._source = source("x", "overall", "calibration", "exchangeability")
        self._alarms = source("x")
        drawn = plot(self.axis, "log wealth - log threshold")
        drawn.add_layout(Span(location=0, dimension="width", line_color=ALARM, line_width=2))
        drawn.y_range.end = 1  # so that the threshold is visible
        both = {"source": self._source, "width": 2}
        overall = drawn.line("x", "overall", color=ANNOUNCED, **both)
        parts = drawn.line("x", "calibration", color=ACCURACY, line_dash="dashed", **both)
        exchange = drawn.line("x", "exchangeability", color=OTHER, line_dash="dotted", **both)
        alarm = drawn.scatter(
            "x", 0, source=self._alarms, marker="inverted_triangle", size=12, color=ALARM
        )
        legend(
            drawn,
            [
                ("calibration, overall", overall),
                ("calibration, nearest part", parts),
                ("exchangeability, nearest", exchange),
                ("alarm", alarm),
            ],
        )
        return [drawn]

    @override
    def fill(self, excerpt: Excerpt) -> str:
        chosen = thinned(len(excerpt.reports))
        tests = [tests_of(excerpt.reports[i]) for i in chosen]
        if not (tests and tests[-1]):
            return NO_MONITORS
        self._source.data = {
            "x": excerpt.x()[chosen],
            "overall": [_overall(found).margin for found in tests],
            "calibration": [_nearest(found, "calibration") for found in tests],
            "exchangeability": [_nearest(found, "exchangeability") for found in tests],
        }
        self._alarms.data = {"x": excerpt.alarm_x()}
        return ""


class DeviationCard(Card):
    """Mean of y - p with its confidence sequence, overall and for the worst parts."""

    title = "How far the probabilities are off"
    words = (
        "How often the SVM's own class was right, less the probability announced for it, since the "
        "start that tells most, with its confidence sequence: the band holds the truth at all "
        "times together. Above 0 the feed announces too little, below 0 too much. The table has "
        "the parts that are off most."
    )
    section = "monitors"

    def body(self) -> Sequence[UIElement]:
        """Make the plot, and an empty table below it."""
        self._source = source("x", "estimate", "lower", "upper")
        drawn = plot(self.axis, "frequency - probability", height=220, y_range=Range1d(-0.5, 0.5))
        band(drawn, "x", self._source)
        drawn.line("x", "estimate", source=self._source, color=ANNOUNCED, width=2)
        drawn.add_layout(Span(location=0, dimension="width", line_color=ACCURACY, line_width=1.5))
        self._table = markup()
        return [drawn, self._table]

    def fill(self, excerpt: Excerpt) -> str:
        """Draw the overall deviation; list the deviations of parts."""
        chosen = thinned(len(excerpt.reports))
        tests = [tests_of(excerpt.reports[i]) for i in chosen]
        found = [_overall(each) for each in tests]
        if not found or math.isnan(found[-1].estimate):
            return NO_MONITORS
        columns = {name: [getattr(test, name) for test in found] for name in _DEVIATION[1:]}
        self._source.data = {"x": excerpt.x()[chosen], **columns}
        self._table.text = _deviations(tests[-1])
        return ""


def _deviations(tests: Sequence[Test]) -> str:
    known = [test for test in tests if not math.isnan(test.lower + test.upper + test.estimate)]
    known.sort(key=lambda test: (-max(test.lower, -test.upper), -abs(test.estimate)))
    columns = "<part", "off by", "confidence sequence", "-0.5 to +0.5", "since example"
    rows: list[list[Cell]] = [
        [f"{test.scope} {test.name}".strip()[:30], signed(test.estimate, 3),
         f"{signed(test.lower, 3)} to {signed(test.upper, 3)}",
         Markup("", scale(test.lower, test.estimate, test.upper)), whole(test.since)]
        for test in known[:_MAX_PARTS]
    ]  # fmt: skip
    return Section((), columns, rows).html()


class AlarmsCard(TextCard):
    """Tables of the open notices and the last incidents, alarms and events."""

    title = "Notices, incidents, alarms and events"
    words = (
        "A notice is a part that is off at present; it ends when the part is right again. The "
        "alarms of one change are one incident, from the first until model and calibration are of "
        "later examples alone. An alarm is a sequential test that was rejected. Events tell what "
        "happened to the workers, and what people said. Times are UTC; an alarm has that of the "
        "entry that raised it, and that of its commit where it is known."
    )
    section = "monitors"
    is_wide = True

    @staticmethod
    @override
    def sections(excerpt: Excerpt) -> Sequence[Section] | str:
        if not excerpt.has_alarms:
            return "An exported file holds answers alone: no alarms, and no events."
        notices = list(_notices(excerpt))
        if not (notices or excerpt.alarms or excerpt.events):
            return "No alarm was raised, and nothing happened to a worker, as far as is kept."
        return [*notices, *_incidents(excerpt), *_alarms(excerpt), *_events(excerpt)]


def _notices(excerpt: Excerpt) -> Iterator[Section]:
    status = excerpt.status
    if found := [*status.notices, *status.silenced_notices]:
        rows = [
            (whole(each.since), each.words_since(date_of(excerpt.dates, each.since)))
            for each in found[:_MAX_ROWS]
        ]
        yield Section((), ("<notice since", "<<what is off"), rows)


def _incidents(excerpt: Excerpt) -> Iterator[Section]:
    if excerpt.incidents:
        columns = "<incident since", "<<what it says", "<until", "alarms", "<kinds"
        shown = reversed(excerpt.incidents[-_MAX_ROWS:])
        yield Section((), columns, [_incident(one, excerpt.dates) for one in shown])


def _incident(incident: Incident, dates: Dates) -> list[Cell]:
    until = "open" if incident.until is None else f"{incident.until:,}"
    kind = "bad" if incident.until is None else "soft"
    return [
        whole(incident.since),
        incident_sentence(incident, dates),
        Markup(until, f'<span class="{kind}">{until}</span>'),
        whole(len(incident.parts)),
        ", ".join(sorted(incident.kinds)),
    ]


def _alarms(excerpt: Excerpt) -> Iterator[Section]:
    alarms = excerpt.alarms
    if not alarms:
        yield Section(["No alarm was raised, as far as is kept."])
        return
    more = len(alarms) - _MAX_ROWS
    rows = [
        [whole(raised.alarm.n),
         raised.alarm.words_since(date_of(excerpt.dates, raised.alarm.since)),
         raised.alarm.kind[:20], _done(raised.alarm.action), moment(raised.time),
         _committed(raised, excerpt)]
        for raised in reversed(alarms[-_MAX_ROWS:])
    ]  # fmt: skip
    columns = "<alarm at", "<<what was found", "<kind", "<done", "<time", "<committed"
    yield Section([f"{more:,} older alarms are kept."] if more > 0 else (), columns, rows)


def _done(action: str) -> str:
    return "–" if action == "report" else action[:20]


def _committed(raised: RaisedAlarm, excerpt: Excerpt) -> str:
    found = excerpt.committed.get(raised.entry)
    return "–" if found is None else moment(found)


def _events(excerpt: Excerpt) -> Iterator[Section]:
    if excerpt.events:
        rows = [
            [moment(event.time), event.code[:30], event.writer[:30], event.words]
            for event in reversed(excerpt.events[-_MAX_ROWS:])
        ]
        yield Section((), ("<event at", "<event", "<worker", "<<detail"), rows)
