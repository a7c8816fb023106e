"""Cards with curves: accuracy against probability, interval width, costs, rate and lag."""

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
from bokeh.models import Column, ColumnDataSource, UIElement
from typing_extensions import override

from online_svm.types import Floats
from workers.dashboard.card import (
    COUNTS,
    HEIGHT,
    Card,
    band,
    grid,
    legend,
    mark_notes,
    markup,
    plot,
    source,
)
from workers.dashboard.reports import FIGURES, Report, cumulative, recent, windowed
from workers.dashboard.shown_feed import Excerpt, thinned
from workers.dashboard.text import ACCURACY, ALARM, ANNOUNCED, OTHER, safe
from workers.reading.answers import as_object, number

NO_REPORTS = (
    "No report yet. A report comes every metrics_every learned examples, once answers carry "
    "probabilities."
)

MAX_PANELS = 16  # methods that are drawn; a worker reports fewer

_LOWER, _UPPER = FIGURES.index("lower"), FIGURES.index("upper")
_COLUMNS = ("x", "accuracy", "lower", "probability", "upper")


def _curves(excerpt: Excerpt, values: Floats) -> dict[str, Floats]:
    """Return the columns of a plot, a row a report, thinned to `MAX_POINTS` points."""
    chosen = thinned(len(excerpt.reports))
    return dict(zip(_COLUMNS, [excerpt.x()[chosen], *values[chosen, :4].T], strict=True))


class AccuracyCard(Card):
    """Windowed and cumulative accuracy of the headline, with its probability and interval."""

    title = "Accuracy against what was announced"
    words = (
        "Share of right answers (0 to 1) over the last scored examples, beside the probability and "
        "interval that they announced. While all is well the two lines stay together. Vertical "
        "lines are alarms, and notes."
    )
    section = "facts"

    @override
    def body(self) -> Sequence[UIElement]:
        self._window, self._all = source(*_COLUMNS), source(*_COLUMNS)
        self._alarms, self._notes = source("x"), source("x", "text")
        drawn = plot(self.axis, "share of examples", height=HEIGHT + COUNTS)
        shown_band = band(drawn, "x", self._window)
        announced = drawn.line("x", "probability", source=self._window, color=ANNOUNCED, width=2)
        accuracy = drawn.line("x", "accuracy", source=self._window, color=ACCURACY, width=3)
        dashed = {"source": self._all, "line_dash": "dashed", "width": 1.5}
        all_announced = drawn.line("x", "probability", color=ANNOUNCED, **dashed)
        all_accuracy = drawn.line("x", "accuracy", color=ACCURACY, **dashed)
        alarm = drawn.vspan("x", source=self._alarms, color=ALARM, width=2, line_dash="dotdash")
        mark_notes(drawn, self._notes)
        legend(
            drawn,
            [
                ("accuracy, window", accuracy),
                ("accuracy, all", all_accuracy),
                ("announced, window", announced),
                ("announced, all", all_announced),
                ("interval, window", shown_band),
                ("alarm", alarm),
            ],
        )
        return [drawn]

    @override
    def fill(self, excerpt: Excerpt) -> str:
        if not excerpt.is_scored:
            return NO_REPORTS
        self._window.data = _curves(excerpt, recent(excerpt.reports))
        self._all.data = _curves(excerpt, cumulative(excerpt.reports, "headline"))
        self._alarms.data = {"x": excerpt.alarm_x()}
        self._notes.data = excerpt.notes()
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
        """Make the empty grid of panels."""
        self._sources: dict[str, ColumnDataSource] = {}
        self._grid = grid("15rem", "0.5rem")
        self._grid.children = [markup(visible=False)]  # Bokeh warns of a layout without children
        return [self._grid]

    def fill(self, excerpt: Excerpt) -> str:
        """Draw each method of the newest report."""
        if not excerpt.is_scored:
            return NO_REPORTS
        names = list(excerpt.reports[-1].methods)[:MAX_PANELS]
        if names != list(self._sources):
            self._sources = {name: source(*_COLUMNS) for name in names}
            self._grid.children = [self._panel(name) for name in names]
        for name, columns in self._sources.items():
            columns.data = _curves(excerpt, cumulative(excerpt.reports, name))
        return ""

    def _panel(self, name: str) -> Column:
        columns = self._sources[name]
        drawn = plot(self.axis, "", height=170)
        drawn.xaxis.axis_label = ""
        drawn.xaxis.ticker.desired_num_ticks = 3
        band(drawn, "x", columns)
        drawn.line("x", "probability", source=columns, color=ANNOUNCED, width=1.5)
        drawn.line("x", "accuracy", source=columns, color=ACCURACY, width=3)
        return Column(
            children=[markup(f"<b>{safe(name, 30)}</b>"), drawn],
            sizing_mode="stretch_width",
            styles={"min-width": "0"},
        )


class _LinesCard(Card):
    """Lines over the reports, with a legend."""

    y_label: str
    lines: dict[str, tuple[str, dict[str, object]]]  # by column: name in the legend, and style
    missing: str  # text of `fill` if there is nothing to draw

    @override
    def body(self) -> Sequence[UIElement]:
        self._source = source("x", *self.lines)
        self._plot = plot(self.axis, self.y_label)
        drawn = [
            (name, self._plot.line("x", column, source=self._source, **style))
            for column, (name, style) in self.lines.items()
        ]
        legend(self._plot, drawn)
        return [self._plot]

    @override
    def fill(self, excerpt: Excerpt) -> str:
        values = self.values(excerpt)
        if values is None:
            return self.missing
        chosen = thinned(len(excerpt.reports))
        columns = dict(zip(self.lines, values[chosen].T, strict=True))
        self._source.data = {"x": excerpt.x()[chosen], **columns}
        return ""

    @abstractmethod
    def values(self, excerpt: Excerpt) -> Floats | None:
        """Return a row of values for each report, or None."""


class WidthCard(_LinesCard):
    """Mean width of the announced intervals."""

    title = "Width of the intervals"
    words = (
        "Mean of upper minus lower probability over the last scored examples (solid) and "
        "over all (dashed), for the headline and the Venn predictor. Narrow is sharp; a width that "
        "grows says that the calibration set shrank or changed."
    )
    section = "the-live-page"
    y_label = "probability"
    lines = {  # noqa: RUF012
        "headline": ("headline, window", {"color": ANNOUNCED, "width": 2.5}),
        "all": ("headline, all", {"color": ANNOUNCED, "line_dash": "dashed"}),
        "venn": ("Venn, window", {"color": ACCURACY, "width": 2}),
    }
    missing = NO_REPORTS

    def body(self) -> Sequence[UIElement]:
        """Make the plot, from 0 on."""
        made = super().body()
        self._plot.y_range.start = 0
        return made

    @override
    def values(self, excerpt: Excerpt) -> Floats | None:
        if not excerpt.is_scored:
            return None
        reports = excerpt.reports
        found = (recent(reports), cumulative(reports, "headline"), windowed(reports, "venn"))
        return np.column_stack([each[:, _UPPER] - each[:, _LOWER] for each in found])


class CostCard(_LinesCard):
    """Mean cost of an example under the answers, the most probable label, and one action."""

    title = "Cost of decisions"
    words = (
        "Mean cost of a scored example, by the setting costs: of the actions that answers named "
        "(solid), of always the action of the most probable label (dashed), and of the single "
        "action that would have been cheapest so far (dotted). The solid line should be lowest."
    )
    section = "facts"
    y_label = "cost an example"
    lines = {  # noqa: RUF012
        "answers": ("answers", {"color": ACCURACY, "width": 3}),
        "by_label": (
            "most probable label", {"color": ANNOUNCED, "width": 2, "line_dash": "dashed"}
        ),
        "always": ("always one action", {"color": OTHER, "width": 2, "line_dash": "dotted"}),
    }  # fmt: skip
    missing = "The feed has no costs. See the setting costs."

    @override
    def values(self, excerpt: Excerpt) -> Floats | None:
        found = np.array([_costs(report) for report in excerpt.reports]).reshape(-1, 3)
        return found if np.isfinite(found[:, 0]).any() else None


def _costs(report: Report) -> tuple[float, float, float]:
    costs = report.part("costs")
    always = [number(mean) for mean in as_object(costs.get("always")).values()]
    return number(costs.get("mean")), number(costs.get("by_label")), min(always, default=np.nan)


class _FlowCard(Card):
    """A curve over the time since the page began to follow the feed."""

    section = "the-live-page"
    unit: str
    member: str  # attribute of `FlowPoint` to draw
    is_of_flow = True

    @override
    def body(self) -> Sequence[UIElement]:
        self._source = source("x", "y")
        drawn = plot("time", self.unit)
        drawn.varea("x", y1=0, y2="y", source=self._source, color=ANNOUNCED, alpha=0.2)
        drawn.line("x", "y", source=self._source, color=ANNOUNCED, width=2)
        drawn.y_range.start = 0
        return [drawn]

    @override
    def fill(self, excerpt: Excerpt) -> str:
        if not excerpt.flow:
            return "The feed has not been read yet."
        points = [(1000 * point.time, getattr(point, self.member)) for point in excerpt.flow]
        x, y = np.array(points, dtype=np.float64).T.copy()
        self._source.data = {"x": x, "y": y}
        return ""


class RateCard(_FlowCard):
    """Answers a second."""

    title = "Rate"
    words = (
        "Entries answered a second, a mean over ten seconds. It is measured while this page "
        "runs, for a quarter of an hour at most."
    )
    unit = "entries / s"
    member = "rate"


class LagCard(_FlowCard):
    """Entries that wait for an answer."""

    title = "Lag"
    words = (
        "Entries of the input that wait for an answer. A lag that grows means that the worker is "
        "too slow, or gone."
    )
    unit = "entries"
    member = "waiting"
