"""Card of the features that moved."""

import math
from collections.abc import Sequence

import numpy as np
from bokeh.models import UIElement

from online_svm.metrics.feature_shift import feature_shift
from online_svm.types import Floats
from workers.dashboard.card import Card, markup
from workers.dashboard.excerpt import Excerpt
from workers.dashboard.feed_view import MOST_FEATURES, ShownAnswer
from workers.dashboard.reports import number
from workers.dashboard.text import safe, whole

LEAST = 100
"""Examples from which the halves are compared."""

ROWS = 8


class FeaturesCard(Card):
    """The features whose means differ most between older and newer examples."""

    title = "Features that moved"
    words = (
        "Mean of each feature over the older and the newer half of the answers read here, and "
        "the difference in standard deviations of a value. z is the same in standard errors; it "
        "orders features and is no test."
    )
    section = "the-live-page"

    def body(self) -> Sequence[UIElement]:
        """Make the place of the table."""
        self._table = markup()
        return [self._table]

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
        order = np.argsort(-np.nan_to_num(np.abs(found.z), nan=0.0), kind="stable")[:ROWS]
        lines = "".join(
            f'<tr><td class="text">{safe(names[j], 40)}</td><td>{_short(found.before[j])}</td>'
            f"<td>{_short(found.after[j])}</td><td>{found.shift[j]:+.2f}</td>"
            f"<td>{found.z[j]:+.1f}</td></tr>"
            for j in order
        )
        head = (
            f'<tr><th class="left">feature</th><th>{whole(middle)} older</th>'
            f"<th>{whole(len(rows) - middle)} newer</th><th>moved by</th><th>z</th></tr>"
        )
        self._table.text = f'<div class="scroll"><table>{head}{lines}</table></div>'
        return ""


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
