"""Labels that are still to come."""

from collections.abc import Sequence

from bokeh.models import UIElement

from workers.dashboard.card import Card, markup
from workers.dashboard.excerpt import Excerpt
from workers.dashboard.reports import as_dict, number
from workers.dashboard.text import probability, safe, seconds, whole
from workers.feed.position import parse_id

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
}


class LabelsCard(Card):
    """Pending labels and their age."""

    title = "Labels to come"
    words = (
        "Answered examples whose label is not here yet, and what became of late labels, in "
        "examples. Accuracy may still become anything between the bounds: all open answers wrong, "
        "or all right; the estimate assumes that the probabilities are right."
    )
    section = "labels-that-come-late"

    def body(self) -> Sequence[UIElement]:
        """Make the place of the figures."""
        self._text = markup()
        return [self._text]

    def fill(self, excerpt: Excerpt) -> str:
        """Write the figures."""
        labels = as_dict(excerpt.reports[-1].message.get("labels")) if excerpt.reports else {}
        pending = excerpt.pending
        if not labels and pending is None:
            return (
                "Each label comes with its example on this feed. With --horizon labels may come "
                "later."
            )
        counts = as_dict(labels.get("counts"))
        if pending is not None:  # a report is as old as the last label that it counts
            counts = counts | {"pending": pending.pending, "unlabelled": pending.unlabelled}
        known = [(words, number(counts.get(name))) for name, words in _COUNTS.items()]
        figures = []
        if labels:
            figures = [("open answers", whole(number(labels.get("open")))), _bounds(labels)]
        figures += [("oldest open answer", _oldest(excerpt))]
        figures += [(words, whole(value)) for words, value in known if value == value]
        drawn = "".join(
            f"<div><b>{safe(value)}</b><span>{safe(words)}</span></div>" for words, value in figures
        )
        self._text.text = f'<div class="figures">{drawn}</div>'
        return ""


def _bounds(labels: dict[str, object]) -> tuple[str, str]:
    bounds = as_dict(labels.get("accuracy"))
    low, middle, high = (
        probability(number(bounds.get(name))) for name in ("lower", "estimate", "upper")
    )
    return "accuracy in the end: bounds and estimate", f"{low} to {high}, {middle}"


def _oldest(excerpt: Excerpt) -> str:
    """Return the age of the oldest answer without a label; of a past run, among those read."""
    if excerpt.pending is not None:
        return seconds(excerpt.pending.seconds) if excerpt.pending.unlabelled else "none"
    open_ones = [
        parse_id(one.entry_id)[0]
        for one in excerpt.answers
        if one.message.get("status") == "ok" and one.truth.label is None
    ]
    if not open_ones or not excerpt.answers:
        return "none"
    newest = parse_id(excerpt.answers[-1].entry_id)[0]
    return seconds((newest - open_ones[0]) / 1000)
