"""The card of costs: what decisions cost on average, beside what simple rules would have cost."""

from collections.abc import Sequence

import numpy as np
from bokeh.models import UIElement

from workers.dashboard.card import ACCURACY, ANNOUNCED, OTHER, Card, legend, plot, source
from workers.dashboard.excerpt import Excerpt, thinned
from workers.dashboard.reports import Report, as_dict
from workers.reading.answers import number

_COLUMNS = ("x", "answers", "by_label", "always")


class CostCard(Card):
    """Mean cost of an example: by the answers, by the most probable label, by one action."""

    title = "Cost of decisions"
    words = (
        "Mean cost of a scored example, by the setting costs: of the actions that answers named "
        "(solid), of always the action of the most probable label (dashed), and of the single "
        "action that would have been cheapest so far (dotted). The solid line should be lowest."
    )
    section = "costs"

    def body(self) -> Sequence[UIElement]:
        """Make the plot."""
        self._source = source(*_COLUMNS)
        drawn = plot(self.axis, "cost an example")
        own = drawn.line("x", "answers", source=self._source, color=ACCURACY, width=3)
        label = drawn.line(
            "x", "by_label", source=self._source, color=ANNOUNCED, width=2, line_dash="dashed"
        )
        always = drawn.line(
            "x", "always", source=self._source, color=OTHER, width=2, line_dash="dotted"
        )
        named = [("answers", own), ("most probable label", label), ("always one action", always)]
        legend(drawn, [(name, [line]) for name, line in named])
        return [drawn]

    def fill(self, excerpt: Excerpt) -> str:
        """Draw the mean costs of the reports."""
        rows = [_costs(report) for report in excerpt.reports]
        if not any(np.isfinite(row[0]) for row in rows):
            return "Nothing is decided: the feed has no costs. See the setting costs."
        chosen = thinned(len(rows))
        values = np.array(rows)[chosen].T
        self._source.data = dict(zip(_COLUMNS, [excerpt.x()[chosen], *values], strict=True))
        return ""


def _costs(report: Report) -> tuple[float, float, float]:
    """Return the mean cost of the answers, of the most probable label, and of the best action."""
    told = as_dict(report.message.get("costs"))
    always = [number(mean) for mean in as_dict(told.get("always")).values()]
    return number(told.get("mean")), number(told.get("by_label")), min(always, default=np.nan)
