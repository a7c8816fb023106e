"""Cards of the answers: the last ones, labels that are still to come, features that moved."""

import math
from collections.abc import Sequence

import numpy as np

from online_svm.metrics.feature_shift import feature_shift
from online_svm.types import Floats
from workers.dashboard.card import TextCard
from workers.dashboard.drawings import interval
from workers.dashboard.excerpt import Excerpt
from workers.dashboard.feed_view import MOST_FEATURES, ShownAnswer
from workers.dashboard.reports import as_dict
from workers.dashboard.text import probability, safe, seconds, table, whole
from workers.feed.position import parse_id
from workers.reading.answers import number

ROWS = 12
"""Answers that are shown."""

FEATURES = 8
"""Features that are shown."""

LEAST = 100
"""Examples from which the features of older and newer ones are compared."""

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


class AnswersCard(TextCard):
    """The newest answers, and whether they were right."""

    title = "Last answers"
    words = (
        "Each answer with its probability and interval (0 to 1), the newest first, and the true "
        "label once it is known."
    )
    section = "the-live-page"
    is_wide = True

    def fill(self, excerpt: Excerpt) -> str:
        """Write the table."""
        if not excerpt.answers:
            return "No answer is kept yet. The first comes as soon as a worker has an example."
        columns = "<entry", "<id", "<answer", "probability", "<true label", "<interval, 0 to 1"
        return self.show(table(columns, map(answer_row, reversed(excerpt.answers[-ROWS:]))))


def answer_row(answer: ShownAnswer) -> list[str]:
    """Return the cells of an answer; where nothing was predicted, why not."""
    message = answer.message
    cells = [whole(number(message.get("seq"))), safe(message.get("id"), 24)]
    if message.get("status") != "ok" or message.get("label") is None:
        why = message.get("reason") or message.get("label") or ""
        return [*cells, f"{safe(message.get('status'), 12)}: {safe(why, 80)}"]
    low, point, high = (number(message.get(name)) for name in ("lower", "probability", "upper"))
    drawn = interval(low, point, high)
    return [*cells, safe(message["label"], 24), probability(point), _truth(answer), drawn]


def _truth(answer: ShownAnswer) -> str:
    truth = answer.truth
    if truth.label is None:
        return '<span class="soft">not known</span>'
    told = {
        None: "",
        True: '<span class="good">✓ right</span>',
        False: '<span class="bad">✗ wrong</span>',
    }[truth.is_right]
    return f"{told} {safe(truth.label, 24)}"


class LabelsCard(TextCard):
    """Pending labels and their age."""

    title = "Labels to come"
    words = (
        "Answered examples whose label is not here yet, and what became of late labels, in "
        "examples. Accuracy may still become anything between the bounds: all open answers wrong, "
        "or all right; the estimate assumes that the probabilities are right."
    )
    section = "labels-that-come-late"

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
        return self.show(f'<div class="figures">{drawn}</div>')


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


class FeaturesCard(TextCard):
    """The features whose means differ most between older and newer examples."""

    title = "Features that moved"
    words = (
        "Mean of each feature over the older and the newer half of the answers read here, and "
        "the difference in standard deviations of a value. z is the same in standard errors; it "
        "orders features and is no test."
    )
    section = "the-live-page"

    def fill(self, excerpt: Excerpt) -> str:
        """Write the table."""
        names, rows = _rows(excerpt.answers)
        if len(rows) < LEAST:
            return (
                f"Fewer than {LEAST} of the answers read here have features that are kept. Of "
                f"examples with more than {MOST_FEATURES} features none are."
            )
        middle = len(rows) // 2
        found = feature_shift(rows[:middle], rows[middle:])
        order = np.argsort(-np.nan_to_num(np.abs(found.z), nan=0.0), kind="stable")[:FEATURES]
        columns = (
            "<feature", f"{whole(middle)} older", f"{whole(len(rows) - middle)} newer", "moved by",
            "z",
        )  # fmt: skip
        moved = (
            [safe(names[j], 40), _short(found.before[j]), _short(found.after[j]),
             f"{found.shift[j]:+.2f}", f"{found.z[j]:+.1f}"]
            for j in order
        )  # fmt: skip
        return self.show(table(columns, moved))


def _rows(answers: Sequence[ShownAnswer]) -> tuple[list[str], Floats]:
    """Return the names of the features and a row an answer, of those that have the same names."""
    given = [one.truth.features for one in answers if one.truth.features]
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
