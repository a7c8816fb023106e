"""The papers' plot of every method, a small panel each."""

from collections.abc import Sequence

from bokeh.models import Column, ColumnDataSource, UIElement

from workers.dashboard.card import Card, grid, markup, plot, source
from workers.dashboard.colours import ACCURACY, ANNOUNCED, BAND, BAND_ALPHA
from workers.dashboard.excerpt import Excerpt
from workers.dashboard.reports import cumulative, method_names
from workers.dashboard.text import safe
from workers.dashboard.validity_cards import COLUMNS, NO_REPORTS, curves

MOST_PANELS = 16
"""Methods that are drawn: more than a worker publishes."""


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
        names = method_names(excerpt.reports)[:MOST_PANELS]
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
