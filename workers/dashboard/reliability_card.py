"""The reliability diagram: how often an announced probability came true."""

from collections.abc import Sequence
from typing import Any

from bokeh.models import Range1d, UIElement

from workers.dashboard.card import Card, plot, source
from workers.dashboard.colours import ACCURACY, ANNOUNCED, BAND, BAND_ALPHA
from workers.dashboard.excerpt import Excerpt
from workers.dashboard.feed_view import ShownAnswer
from workers.dashboard.reports import as_dict, as_list, number

LEAST = 50
"""Answers with a known label from which a diagram is drawn of them."""

_COLUMNS = ("count", "probability", "frequency", "lower", "upper")


class ReliabilityCard(Card):
    """Frequencies beside probabilities in bins, with counts and consistency bands."""

    title = "Reliability diagram"
    words = (
        "Answers in bins of equal count: how often the event came true (points, 0 to 1) against "
        "how probable it was said to be. Points inside the band differ from the diagonal by no "
        "more than chance allows, in nine of ten bins. Below: answers in each bin."
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
        counts = plot(None, "answers", height=110, x_range=drawn.x_range)
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
