"""Cards of the last scored examples: the reliability diagram; classes and slices."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from bokeh.models import Range1d, UIElement

from workers.dashboard.card import (
    ACCURACY,
    ANNOUNCED,
    BAND,
    BAND_ALPHA,
    COUNTS,
    Card,
    TextCard,
    plot,
    source,
)
from workers.dashboard.excerpt import Excerpt
from workers.dashboard.feed_view import ShownAnswer
from workers.dashboard.reports import Report, as_dict, as_list
from workers.dashboard.text import probability, safe, table, whole
from workers.reading.answers import number

LEAST = 50
"""Answers with a known label from which a diagram is drawn of them."""

_COLUMNS = ("count", "probability", "frequency", "lower", "upper")

ROWS = 12
"""Parts that are shown."""

_MOST_PARTS = 2000


class ReliabilityCard(Card):
    """Frequencies beside probabilities in bins, with counts and consistency bands."""

    title = "Reliability diagram"
    words = (
        "How often the event came true (points, 0 to 1) against how probable it was said to be, in "
        "bins of equal count. Inside the band a point is off by no more than chance allows."
    )
    section = "recent-figures"

    def body(self) -> Sequence[UIElement]:
        """Make the diagram, and the bars of the counts below it."""
        self._source = source(*_COLUMNS)
        drawn = plot(None, "share that came true", x_range=Range1d(0, 1), y_range=Range1d(0, 1))
        drawn.line([0, 1], [0, 1], color=ANNOUNCED, line_dash="dashed")
        drawn.varea(
            "probability", "lower", "upper", source=self._source, color=BAND, alpha=BAND_ALPHA
        )
        drawn.line("probability", "frequency", source=self._source, color=ACCURACY)
        drawn.scatter("probability", "frequency", source=self._source, color=ACCURACY, size=9)
        counts = plot(None, "answers", height=COUNTS, x_range=drawn.x_range)
        counts.xaxis.axis_label = "announced probability"
        counts.segment(
            "probability", 0, "probability", "count", source=self._source, color=ANNOUNCED, width=7
        )
        counts.y_range.start = 0
        return [drawn, counts]

    def fill(self, excerpt: Excerpt) -> str:
        """Draw the bins of the newest report, or those of the answers with a known label."""
        bins = _reported(excerpt) or _of_answers(excerpt.answers)
        if not bins:
            return (
                f"Nothing to draw yet: the reports carry no bins, and fewer than {LEAST} of the "
                "answers read here have a label whose input is still kept."
            )
        self._source.data = {
            name: [row[place] for row in bins] for place, name in enumerate(_COLUMNS)
        }
        return ""


def _reported(excerpt: Excerpt) -> list[list[float]]:
    """Return the bins of the newest report."""
    if not excerpt.reports:
        return []
    given: list[Any] = as_list(
        as_dict(excerpt.reports[-1].message.get("windowed")).get("reliability")
    )
    rows = [[number(as_dict(one).get(name)) for name in _COLUMNS] for one in given[:100]]
    return [row for row in rows if all(value >= 0 for value in row)]


def _of_answers(answers: Sequence[ShownAnswer]) -> list[list[float]]:
    """Return bins of the probability of the predicted label, where the true one is known."""
    known = [
        (number(one.message.get("probability")), one.truth.is_right)
        for one in answers
        if one.truth.is_right is not None
    ]
    pairs = [(p, hit) for p, hit in known if 0 <= p <= 1]
    if len(pairs) < LEAST:
        return []
    # Imported here: it compiles, and only feeds whose reports have no bins need it.
    from online_svm.metrics.reliability import reliability_bins

    probabilities, hits = zip(*pairs, strict=True)
    bins = reliability_bins(probabilities, [int(hit) for hit in hits])
    return [[float(getattr(one, name)) for name in _COLUMNS] for one in bins]


class PartFigures(NamedTuple):
    """A class or a slice.

    Attributes
    ----------
    name : str
    examples : float
        Of the window.
    happened, announced : float
        Share of examples (that have the class; that were answered right in the slice), and the
        mean probability announced for it.
    z : float
        Their difference in standard deviations, if each probability is right.
    """

    name: str
    examples: float
    happened: float
    announced: float
    z: float


class PartsCard(TextCard):
    """A table of the classes and slices."""

    title = "Classes and slices, worst first"
    words = (
        "Over the last scored examples. A class: how often it came, beside the mean probability "
        "announced for it. A slice: accuracy, beside what was announced. z is the difference in "
        "standard deviations; it is looked at again and again, so it is no test."
    )
    section = "slices"

    def fill(self, excerpt: Excerpt) -> str:
        """Write the table."""
        found = worst(excerpt.reports[-1]) if excerpt.reports else []
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
            for part in found[:ROWS]
        )  # fmt: skip
        return self.show(table(columns, rows))


def worst(report: Report) -> list[PartFigures]:
    """Return the classes and slices of a report, those farthest off first."""
    found = [*_classes(report), *_slices(report)]
    found.sort(key=lambda part: (-abs(part.z) if not math.isnan(part.z) else 0.0, part.name))
    return found


def _classes(report: Report) -> Iterator[PartFigures]:
    window = as_dict(report.message.get("windowed"))
    for given in map(as_dict, as_list(window.get("classes"))[:_MOST_PARTS]):
        label = given.get("label")
        name = "class not seen yet" if label is None else f"class {label}"
        keys = ("examples", "frequency", "probability", "z")
        yield PartFigures(name[:200], *(number(given.get(key)) for key in keys))


def _slices(report: Report) -> Iterator[PartFigures]:
    window = as_dict(report.message.get("windowed"))
    for name, values in list(as_dict(window.get("slices")).items())[:_MOST_PARTS]:
        for given in map(as_dict, as_list(values)[:_MOST_PARTS]):
            value, scores = given.get("value"), as_dict(given.get("scores"))
            title = f"{name}: all other values" if value is None else f"{name} = {value}"
            keys = ("scored", "accuracy", "probability", "z")
            yield PartFigures(title[:200], *(number(scores.get(key)) for key in keys))


def _signed(value: float, places: int) -> str:
    return "–" if math.isnan(value) else f"{value:+.{places}f}"
