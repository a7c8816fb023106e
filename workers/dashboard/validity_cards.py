"""Cards of accuracy beside what was announced: recent and cumulative, its width, each map."""

from collections.abc import Sequence

from bokeh.models import Column, ColumnDataSource, UIElement

from online_svm.types import Floats
from workers.dashboard.card import (
    ACCURACY,
    ALARM,
    ANNOUNCED,
    BAND,
    BAND_ALPHA,
    COUNTS,
    HEIGHT,
    Card,
    grid,
    legend,
    mark_notes,
    markup,
    plot,
    source,
)
from workers.dashboard.excerpt import Excerpt, thinned
from workers.dashboard.reports import FIGURES, cumulative, recent, windowed
from workers.dashboard.text import safe

NO_REPORTS = (
    "No report yet. A report comes every metrics_every learned examples, once answers carry "
    "probabilities."
)

MOST_PANELS = 16
"""Methods that are drawn: more than a worker publishes."""

_LOWER, _UPPER = FIGURES.index("lower"), FIGURES.index("upper")
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
        "Share of right answers (0 to 1) over the last scored examples, beside the probability and "
        "interval that they announced. While all is well the two lines stay together. Vertical "
        "lines are alarms, and notes."
    )
    section = "recent-figures"

    def body(self) -> Sequence[UIElement]:
        """Make the plot."""
        self._window, self._all = source(*COLUMNS), source(*COLUMNS)
        self._alarms, self._notes = source("x"), source("x", "text")
        drawn = plot(self.axis, "share of examples", height=HEIGHT + COUNTS)
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


class WidthCard(Card):
    """Mean width of the announced intervals."""

    title = "Width of the intervals"
    words = (
        "Mean of upper minus lower probability over the last scored examples (solid) and "
        "over all (dashed), for the headline and the Venn predictor. Narrow is sharp; a width that "
        "grows says that the calibration set shrank or changed."
    )
    section = "the-live-page"

    def body(self) -> Sequence[UIElement]:
        """Make the plot."""
        self._source = source("x", "headline", "all", "venn")
        drawn = plot(self.axis, "probability")
        own = drawn.line("x", "headline", source=self._source, color=ANNOUNCED, width=2.5)
        every = drawn.line("x", "all", source=self._source, color=ANNOUNCED, line_dash="dashed")
        venn = drawn.line("x", "venn", source=self._source, color=ACCURACY, width=2)
        drawn.y_range.start = 0
        legend(
            drawn,
            [("headline, window", [own]), ("headline, all", [every]), ("Venn, window", [venn])],
        )
        return [drawn]

    def fill(self, excerpt: Excerpt) -> str:
        """Draw the widths."""
        if not any(r.scored for r in excerpt.reports):
            return NO_REPORTS
        chosen = thinned(len(excerpt.reports))
        figures = {
            "headline": recent(excerpt.reports),
            "all": cumulative(excerpt.reports, "headline"),
            "venn": windowed(excerpt.reports, "venn"),
        }
        widths = {k: (v[:, _UPPER] - v[:, _LOWER])[chosen] for k, v in figures.items()}
        self._source.data = {"x": excerpt.x()[chosen], **widths}
        return ""


class MapsCard(Card):
    """The papers' plot, a small panel for each method."""

    title = "Every map: cumulative accuracy inside its probability"
    words = (
        "For each method: the share of right answers so far (thick line) and the mean probability "
        "so far (thin line, with its interval where the method gives one), from 0 to 1. This is "
        "the plot of the papers. It looks fine under drift and is never the alarm."
    )
    section = "the-live-page"
    is_wide = True

    def body(self) -> Sequence[UIElement]:
        """Make the place where the panels go."""
        self._sources: dict[str, ColumnDataSource] = {}
        self._grid = grid("15rem", "0.5rem")
        return [self._grid]

    def fill(self, excerpt: Excerpt) -> str:
        """Draw each method of the newest report."""
        names = list(excerpt.reports[-1].methods)[:MOST_PANELS] if excerpt.reports else []
        if not any(r.scored for r in excerpt.reports):
            return NO_REPORTS
        if names != list(self._sources):
            self._make(names)
        for name, columns in self._sources.items():
            columns.data = curves(excerpt, cumulative(excerpt.reports, name))
        return ""

    def _make(self, names: list[str]) -> None:
        self._sources = {name: source(*COLUMNS) for name in names}
        self._grid.children = [self._panel(name) for name in names]

    def _panel(self, name: str) -> Column:
        columns = self._sources[name]
        drawn = plot(self.axis, "", height=170)
        drawn.xaxis.axis_label = ""
        drawn.xaxis.ticker.desired_num_ticks = 3
        drawn.varea("x", "lower", "upper", source=columns, color=BAND, alpha=BAND_ALPHA)
        drawn.line("x", "probability", source=columns, color=ANNOUNCED, width=1.5)
        drawn.line("x", "accuracy", source=columns, color=ACCURACY, width=3)
        return Column(
            children=[markup(f"<b>{safe(name, 30)}</b>"), drawn],
            sizing_mode="stretch_width",
            styles={"min-width": "0"},
        )
