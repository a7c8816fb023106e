"""Cards about the answers: the last ones, reliability, classes and slices, labels, features."""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from bokeh.models import Range1d, UIElement
from typing_extensions import override

from online_svm.metrics.feature_shift import feature_shift
from online_svm.types import Floats
from workers.dashboard.card import COUNTS, Card, TextCard, band, plot, source
from workers.dashboard.class_figures import MIN_LABELLED
from workers.dashboard.reports import Report, as_dict, as_list, windows
from workers.dashboard.shown_feed import MAX_FEATURES, Excerpt, ShownAnswer
from workers.dashboard.text import (
    ACCURACY,
    ANNOUNCED,
    figures,
    interval,
    probability,
    safe,
    seconds,
    table,
    whole,
)
from workers.feed.position import parse_id
from workers.reading.answers import number

MIN_COMPARED = 100  # examples needed to compare the features of older and newer ones
_MAX_ROWS = 12  # answers that are shown
_MAX_SHOWN_FEATURES = 8
_MAX_SHOWN_PARTS = 12
_MAX_PARTS = 2000  # classes, values of a slice and slices that are read of a report

BIN = ("count", "probability", "frequency", "lower", "upper")

_COUNTS = {
    "pending": "wait to be learned",
    "unlabelled": "of them without a label",
    "late": "labels came late",
    "repeated": "labels repeated",
    "corrected": "labels corrected",
    "censored": "horizon passed without a label",
    "dropped": "given up, too many waited",
    "early": "labels before their example",
    "backwards": "time ran backwards",
    "ahead": "time far ahead of the feed's clock",
}

_BUDGET = {
    "wanted": "labels wanted",
    "labelled": "of them came in time",
    "missing": "of them did not",
    "unasked": "other labels, in no figure",
}

_MARKS = {
    None: "",
    True: '<span class="good">✓ right</span>',
    False: '<span class="bad">✗ wrong</span>',
}


class ReliabilityCard(Card):
    """Frequencies against probabilities in bins, with counts and consistency bands."""

    title = "Reliability diagram"
    words = (
        "How often the event came true (points, 0 to 1) against how probable it was said to be, in "
        "bins of equal count. Inside the band a point is off by no more than chance allows."
    )
    section = "recent-figures"

    def body(self) -> Sequence[UIElement]:
        """Make the diagram, and the bars of the counts below it."""
        self._source = source(*BIN)
        drawn = plot(None, "share that came true", x_range=Range1d(0, 1), y_range=Range1d(0, 1))
        self.drawn = drawn
        drawn.line([0, 1], [0, 1], color=ANNOUNCED, line_dash="dashed")
        band(drawn, "probability", self._source)
        drawn.line("probability", "frequency", source=self._source, color=ACCURACY)
        drawn.scatter("probability", "frequency", source=self._source, color=ACCURACY, size=9)
        counts = plot(None, "answers", height=COUNTS, x_range=drawn.x_range)
        counts.xaxis.axis_label = "announced probability"
        counts.segment(
            "probability", 0, "probability", "count", source=self._source, color=ANNOUNCED, width=7
        )
        counts.y_range.start = 0
        counts.yaxis.ticker.desired_num_ticks = 2  # more would overlap
        return [drawn, counts]

    def fill(self, excerpt: Excerpt) -> str:
        """Draw the bins of the newest report; without them, bins of the labelled answers."""
        bins = _reported_bins(excerpt) or _bins_of(excerpt.answers)
        if not bins:
            return (
                f"Nothing to draw yet: the reports carry no bins, and fewer than {MIN_LABELLED} of "
                "the answers read here have a label whose input is still kept."
            )
        self.draw(bins)
        return ""

    def draw(self, bins: Sequence[Sequence[float]]) -> None:
        """Draw bins, each with the values of `BIN`."""
        self._source.data = {
            name: list(cells) for name, cells in zip(BIN, zip(*bins, strict=True), strict=True)
        }


def _reported_bins(excerpt: Excerpt) -> list[list[float]]:
    given = as_list(windows(excerpt.last).get("reliability"))
    rows = [[number(as_dict(each).get(name)) for name in BIN] for each in given[:100]]
    return [row for row in rows if all(value >= 0 for value in row)]


def _bins_of(answers: Sequence[ShownAnswer]) -> list[list[float]]:
    """Return bins of the predicted label's probability, over the answers with a known label."""
    known = [
        (number(answer.message.get("probability")), answer.truth.is_right) for answer in answers
    ]
    pairs = [(p, int(hit)) for p, hit in known if hit is not None and 0 <= p <= 1]
    if len(pairs) < MIN_LABELLED:
        return []
    # Imported here: it takes long, and only feeds whose reports have no bins need it.
    from online_svm.metrics.reliability import reliability_bins

    probabilities, hits = zip(*pairs, strict=True)
    bins = reliability_bins(probabilities, hits)
    return [[float(getattr(each, name)) for name in BIN] for each in bins]


class PartFigures(NamedTuple):
    """The figures of a class, or of a value of a slice, over the window."""

    name: str
    examples: float
    happened: float  # share of examples of the class, or of right answers in the slice
    announced: float  # mean announced probability of the same event
    z: float  # their difference, in the standard deviations of exact probabilities


class PartsCard(TextCard):
    """A table of the classes and slices."""

    title = "Classes and slices, worst first"
    words = (
        "Over the last scored examples. A class: how often it came, beside the mean probability "
        "announced for it. A slice: accuracy, beside what was announced. z is the difference in "
        "standard deviations; it is looked at again and again, so it is no test."
    )
    section = "slices"

    @override
    def fill(self, excerpt: Excerpt) -> str:
        found = worst(excerpt.last)
        if not found:
            return (
                "No windowed figures in the reports yet. A feed has them if metrics_window is set, "
                "and slices if they are named: --slices country."
            )
        columns = "<part", "examples", "came true", "announced", "difference", "z"
        rows = (
            [safe(part.name, 40), whole(part.examples), probability(part.happened),
             probability(part.announced), _signed(part.happened - part.announced, 3),
             _signed(part.z, 1)]
            for part in found[:_MAX_SHOWN_PARTS]
        )  # fmt: skip
        return self.show(table(columns, rows))


def worst(report: Report) -> list[PartFigures]:
    """Return the classes and slices of a report, by decreasing |z|."""
    found = [*_classes(report), *_slices(report)]
    found.sort(key=lambda part: (-abs(part.z) if not math.isnan(part.z) else 0.0, part.name))
    return found


def _classes(report: Report) -> Iterator[PartFigures]:
    for given in map(as_dict, as_list(windows(report).get("classes"))[:_MAX_PARTS]):
        label = given.get("label")
        name = "class not seen yet" if label is None else f"class {label}"
        keys = ("examples", "frequency", "probability", "z")
        yield PartFigures(name[:200], *(number(given.get(key)) for key in keys))


def _slices(report: Report) -> Iterator[PartFigures]:
    for name, values in list(as_dict(windows(report).get("slices")).items())[:_MAX_PARTS]:
        for given in map(as_dict, as_list(values)[:_MAX_PARTS]):
            value, scores = given.get("value"), as_dict(given.get("scores"))
            title = f"{name}: all other values" if value is None else f"{name} = {value}"
            keys = ("scored", "accuracy", "probability", "z")
            yield PartFigures(title[:200], *(number(scores.get(key)) for key in keys))


def _signed(value: float, places: int) -> str:
    return "–" if math.isnan(value) else f"{value:+.{places}f}"


class AnswersCard(TextCard):
    """A table of the newest answers and their true labels."""

    title = "Last answers"
    words = (
        "Each answer with its probability and interval (0 to 1), the newest first, and the true "
        "label once it is known."
    )
    section = "the-live-page"
    is_wide = True

    @override
    def fill(self, excerpt: Excerpt) -> str:
        if not excerpt.answers:
            return "No answer is kept yet. The first comes as soon as a worker has an example."
        columns = "<entry", "<id", "<answer", "probability", "<true label", "<interval, 0 to 1"
        return self.show(table(columns, map(answer_row, reversed(excerpt.answers[-_MAX_ROWS:]))))


def answer_row(answer: ShownAnswer) -> list[str]:
    """Return the cells of an answer; if nothing was predicted, the reason is the last cell."""
    message = answer.message
    cells = [whole(number(message.get("seq"))), safe(message.get("id"), 24)]
    if message.get("status") != "ok" or message.get("label") is None:
        reason = message.get("reason") or message.get("label") or ""
        return [*cells, f"{safe(message.get('status'), 12)}: {safe(reason, 80)}"]
    low, point, high = (number(message.get(name)) for name in ("lower", "probability", "upper"))
    drawn = interval(low, point, high)
    return [*cells, safe(message["label"], 24), probability(point), _truth(answer), drawn]


def _truth(answer: ShownAnswer) -> str:
    truth = answer.truth
    if truth.label is None and answer.message.get("label_wanted") is True:
        return '<span class="soft">wanted</span>'
    if truth.label is None:
        return '<span class="soft">not known</span>'
    return f"{_MARKS[truth.is_right]} {safe(truth.label, 24)}"


class LabelsCard(TextCard):
    """Pending labels and their age."""

    title = "Labels to come"
    words = (
        "Answered examples whose label is not here yet, and what became of late labels, in "
        "examples. Accuracy may still become anything between the bounds: all open answers wrong, "
        "or all right; the estimate assumes that the probabilities are right."
    )
    section = "labels-that-come-late"

    @override
    def fill(self, excerpt: Excerpt) -> str:
        labels = excerpt.last.part("labels")
        pending = excerpt.pending
        if not labels and pending is None:
            return (
                "Each label comes with its example on this feed. With --horizon labels may come "
                "later."
            )
        counts = as_dict(labels.get("counts"))
        if pending is not None:  # the counts of the report are as old as its last label
            counts = counts | {"pending": pending.pending, "unlabelled": pending.unlabelled}
        known = [(words, number(counts.get(name))) for name, words in _COUNTS.items()]
        shown = []
        if labels:
            shown = [("open answers", whole(number(labels.get("open")))), _bounds(labels)]
        shown += [("oldest open answer", _oldest(excerpt))]
        shown += [(words, whole(value)) for words, value in known if value == value]
        budget = excerpt.last.part("budget")
        if budget:
            shown += [(words, whole(number(budget.get(k)))) for k, words in _BUDGET.items()]
        return self.show(figures(shown))


def _bounds(labels: dict[str, object]) -> tuple[str, str]:
    bounds = as_dict(labels.get("accuracy"))
    low, middle, high = (
        probability(number(bounds.get(name))) for name in ("lower", "estimate", "upper")
    )
    return "accuracy in the end: bounds and estimate", f"{low} to {high}, {middle}"


def _oldest(excerpt: Excerpt) -> str:
    """Return the age of the oldest answer without a label; for a past run, at its end."""
    if excerpt.pending is not None:
        return seconds(excerpt.pending.seconds) if excerpt.pending.unlabelled else "none"
    unlabelled = (
        parse_id(answer.entry_id)[0]
        for answer in excerpt.answers
        if answer.message.get("status") == "ok" and answer.truth.label is None
    )
    oldest = next(unlabelled, None)
    if oldest is None:
        return "none"
    return seconds((parse_id(excerpt.answers[-1].entry_id)[0] - oldest) / 1000)


class FeaturesCard(TextCard):
    """The features whose means differ most between older and newer examples."""

    title = "Features that moved"
    words = (
        "Mean of each feature over the older and the newer half of the answers read here, and "
        "the difference in standard deviations of a value. z is the same in standard errors; it "
        "orders features and is no test."
    )
    section = "the-live-page"

    @override
    def fill(self, excerpt: Excerpt) -> str:
        names, rows = _rows(excerpt.answers)
        if len(rows) < MIN_COMPARED:
            return (
                f"Fewer than {MIN_COMPARED} of the answers read here have features that are kept. "
                f"Of examples with more than {MAX_FEATURES} features none are."
            )
        middle = len(rows) // 2
        found = feature_shift(rows[:middle], rows[middle:])
        order = np.argsort(-np.nan_to_num(np.abs(found.z), nan=0.0), kind="stable")
        columns = (
            "<feature", f"{whole(middle)} older", f"{whole(len(rows) - middle)} newer", "moved by",
            "z",
        )  # fmt: skip
        moved = (
            [safe(names[j], 40), _short(found.before[j]), _short(found.after[j]),
             _signed(found.shift[j], 2), _signed(found.z[j], 1)]
            for j in order[:_MAX_SHOWN_FEATURES]
        )  # fmt: skip
        return self.show(table(columns, moved))


def _rows(answers: Sequence[ShownAnswer]) -> tuple[list[str], Floats]:
    """Return the newest answer's feature names, and a row for each answer with the same names."""
    given = [answer.truth.features for answer in answers if answer.truth.features]
    if not given:
        return [], np.empty((0, 0))
    last = given[-1]
    if isinstance(last, dict):
        names = sorted(map(str, last))
        same = [f for f in given if isinstance(f, dict) and sorted(f) == names]
        return names, _floats([[f[name] for name in names] for f in same])
    names = [str(i) for i in range(len(last))]
    return names, _floats([f for f in given if isinstance(f, list) and len(f) == len(names)])


def _floats(rows: Sequence[Sequence[object]]) -> Floats:
    return np.array([[number(value) for value in row] for row in rows], dtype=np.float64)


def _short(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.4g}"
