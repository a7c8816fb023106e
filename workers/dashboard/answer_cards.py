"""Cards about the answers: the last ones, reliability, classes and slices, features."""

import math
from collections.abc import Sequence

import numpy as np
from bokeh.models import Range1d, UIElement
from typing_extensions import override

from online_svm.metrics.feature_shift import feature_shift
from online_svm.types import Floats
from workers.dashboard.card import COUNTS, Card, TextCard, band, plot, source
from workers.dashboard.class_figures import MIN_LABELLED
from workers.dashboard.reports import windows
from workers.dashboard.section import Cell, Section
from workers.dashboard.shown_feed import MAX_FEATURES, Excerpt, ShownAnswer
from workers.dashboard.text import (
    ACCURACY,
    ANNOUNCED,
    Markup,
    interval,
    probability,
    safe,
    signed,
    whole,
)
from workers.reading.answers import as_list, as_object, number
from workers.reading.facts import parts
from workers.text import four_digits

MIN_COMPARED = 100  # examples needed to compare the features of older and newer ones
_MAX_ROWS = 12  # answers that are shown
_MAX_SHOWN_FEATURES = 20
_MAX_SHOWN_PARTS = 20

BIN = ("count", "probability", "frequency", "lower", "upper")

_MARKS = {
    None: ("", ""),
    True: ("good", "✓ right"),
    False: ("bad", "✗ wrong"),
}


class ReliabilityCard(Card):
    """Frequencies against probabilities in bins, with counts and consistency bands."""

    title = "Reliability diagram"
    words = (
        "How often the event came true (points, 0 to 1) against how probable it was said to be, in "
        "bins of equal count. Inside the band a point is off by no more than chance allows."
    )
    section = "facts"

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
    rows = [[number(as_object(each).get(name)) for name in BIN] for each in given[:100]]
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


class PartsCard(TextCard):
    """A table of the classes and slices."""

    title = "Classes and slices, worst first"
    words = (
        "Over the last scored examples. A class: how often it came, beside the mean probability "
        "announced for it. A slice: accuracy, beside what was announced. In brackets: 95 % "
        "intervals. z is the difference in standard deviations; it is looked at again and again, "
        "so it is no test."
    )
    section = "slices"

    @staticmethod
    @override
    def sections(excerpt: Excerpt) -> Sequence[Section] | str:
        found = parts(excerpt.last.message)
        if not found:
            return (
                "No windowed figures in the reports yet. A feed has them if metrics_window is set, "
                "and slices if they are named: --slices country."
            )
        columns = "<part", "examples", "came true", "announced", "z"
        rows = [
            [part.name[:40], whole(part.examples), str(part.figure), probability(part.announced),
             signed(part.z, 1)]
            for part in found[:_MAX_SHOWN_PARTS]
        ]  # fmt: skip
        return [Section((), columns, rows)]


class AnswersCard(TextCard):
    """A table of the newest answers and their true labels."""

    title = "Last answers"
    words = (
        "Each answer with its probability and interval (0 to 1), the newest first, and the true "
        "label once it is known."
    )
    section = "the-live-page"
    is_wide = True

    @staticmethod
    @override
    def sections(excerpt: Excerpt) -> Sequence[Section] | str:
        if not excerpt.answers:
            return "No answer is kept yet. The first comes as soon as a worker has an example."
        columns = "<entry", "<id", "<answer", "probability", "<true label", "<interval, 0 to 1"
        rows = [answer_row(answer) for answer in reversed(excerpt.answers[-_MAX_ROWS:])]
        return [Section((), columns, rows)]


def answer_row(answer: ShownAnswer) -> list[Cell]:
    """Return the cells of an answer; if nothing was predicted, the reason is the last cell."""
    message = answer.message
    cells: list[Cell] = [whole(number(message.get("seq"))), _shown(message.get("id"), 24)]
    if message.get("status") != "ok" or message.get("label") is None:
        reason = message.get("reason") or message.get("label") or ""
        return [*cells, f"{_shown(message.get('status'), 12)}: {_shown(reason, 80)}"]
    low, point, high = (number(message.get(name)) for name in ("lower", "probability", "upper"))
    label = _shown(message["label"], 24)
    return [*cells, label, probability(point), _truth(answer), interval(low, point, high)]


def _truth(answer: ShownAnswer) -> Markup:
    truth = answer.truth
    if truth.label is None:
        text = "wanted" if answer.message.get("label_wanted") is True else "not known"
        return Markup(text, f'<span class="soft">{text}</span>')
    kind, word = _MARKS[truth.is_right]
    label = _shown(truth.label, 24)
    return Markup(f"{word} {label}", f'<span class="{kind}">{word}</span> {safe(label)}')


def _shown(value: object, max_chars: int) -> str:
    return "–" if value is None else str(value)[:max_chars]


class FeaturesCard(TextCard):
    """The features: their kinds, and those whose means differ most."""

    title = "Features, those that moved first"
    words = (
        "Kind of each named feature, and the share of training examples without it. Mean over the "
        "older and the newer half of the answers read here, and the difference in standard "
        "deviations of a value. z is the same in standard errors; it orders features and is no "
        "test."
    )
    section = "the-live-page"

    @staticmethod
    @override
    def sections(excerpt: Excerpt) -> Sequence[Section] | str:
        moved, kinds = _moved(excerpt.answers), excerpt.last.part("features")
        names = [*moved, *(name for name in kinds if name not in moved)]
        if not names:
            return (
                f"Fewer than {MIN_COMPARED} of the answers read here have features that are kept. "
                f"Of examples with more than {MAX_FEATURES} features none are."
            )
        rows = []
        for name in names[:_MAX_SHOWN_FEATURES]:
            kind = as_object(kinds.get(name))
            missing = probability(number(kind.get("missing")))
            shifts = moved.get(name, ("–",) * 4)
            rows.append([name[:40], _shown(kind.get("kind"), 12), missing, *shifts])
        columns = "<feature", "<kind", "missing", "older", "newer", "moved by", "z"
        return [Section((), columns, rows)]


def _moved(answers: Sequence[ShownAnswer]) -> dict[str, tuple[str, ...]]:
    """Return means of older and newer answers, shift and z by feature, the largest |z| first."""
    names, rows = _rows(answers)
    if len(rows) < MIN_COMPARED:
        return {}
    middle = len(rows) // 2
    found = feature_shift(rows[:middle], rows[middle:])
    order = np.argsort(-np.nan_to_num(np.abs(found.z), nan=0.0), kind="stable")
    return {
        names[j]: (
            _mean(found.before[j]), _mean(found.after[j]), signed(found.shift[j], 2),
            signed(found.z[j], 1),
        )
        for j in order[:_MAX_SHOWN_FEATURES]
    }  # fmt: skip


def _mean(value: float) -> str:
    return "–" if math.isnan(value) else four_digits(value)


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
