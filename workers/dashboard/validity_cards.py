"""Accuracy beside what was announced: over a window, over all, and by each map."""

from collections.abc import Sequence

from bokeh.models import UIElement

from online_svm.types import Floats
from workers.dashboard.card import Card, legend, mark_notes, plot, source
from workers.dashboard.colours import ACCURACY, ALARM, ANNOUNCED, BAND, BAND_ALPHA
from workers.dashboard.excerpt import Excerpt, thinned
from workers.dashboard.reports import cumulative, recent

NO_REPORTS = (
    "No report yet. A report comes every metrics_every learned examples, once answers carry "
    "probabilities."
)

COLUMNS = ("x", "accuracy", "lower", "probability", "upper")


def curves(excerpt: Excerpt, values: Floats) -> dict[str, Floats]:
    """Return the columns of a plot: a row a report, and no more of them than can be seen."""
    chosen = thinned(len(excerpt.reports))
    columns = dict(zip(COLUMNS[1:], values[chosen, :4].T, strict=True))
    return {"x": excerpt.x()[chosen], **columns}


class AccuracyCard(Card):
    """Windowed and cumulative accuracy inside what the headline announced."""

    title = "Accuracy against what was announced"
    words = (
        "Share of right answers (0 to 1) over the last scored examples (metrics_window, or 500), "
        "beside the mean probability and interval that the answers announced. A calibrated feed "
        "keeps the two lines together; the dashed means over all examples hide a drift. Vertical "
        "lines are alarms, and notes: online-svm note FEED TEXT."
    )
    section = "recent-figures"
    is_wide = True

    def body(self) -> Sequence[UIElement]:
        """Make the plot."""
        self._window, self._all = source(*COLUMNS), source(*COLUMNS)
        self._alarms, self._notes = source("x"), source("x", "text")
        drawn = plot(self.axis, "share of examples", height=320)
        band = drawn.varea("x", "lower", "upper", source=self._window, color=BAND, alpha=BAND_ALPHA)
        said = drawn.line("x", "probability", source=self._window, color=ANNOUNCED, width=2)
        right = drawn.line("x", "accuracy", source=self._window, color=ACCURACY, width=3)
        dashed = {"source": self._all, "line_dash": "dashed", "width": 1.5}
        all_said = drawn.line("x", "probability", color=ANNOUNCED, **dashed)
        all_right = drawn.line("x", "accuracy", color=ACCURACY, **dashed)
        alarm = drawn.vspan("x", source=self._alarms, color=ALARM, width=2, line_dash="dotdash")
        mark_notes(drawn, self._notes)
        legend(
            drawn,
            [
                ("accuracy, window", [right]),
                ("accuracy, all", [all_right]),
                ("announced, window", [said]),
                ("announced, all", [all_said]),
                ("interval, window", [band]),
                ("alarm", [alarm]),
            ],
        )
        return [drawn]

    def fill(self, excerpt: Excerpt) -> str:
        """Draw the headline."""
        if not any(r.scored for r in excerpt.reports):
            return NO_REPORTS
        self._window.data = curves(excerpt, recent(excerpt.reports))
        self._all.data = curves(excerpt, cumulative(excerpt.reports, "headline"))
        self._alarms.data = {"x": excerpt.alarm_x()}
        self._notes.data = excerpt.notes()
        return ""
