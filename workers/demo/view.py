"""The live terminal view of the feeds, and the picture of their curves."""

import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from workers.demo.feeds import Drift, Progress, Report, alarm_sentence
from workers.text import printable

LEGEND = "[yellow]◆[/] accuracy so far   [cyan]█[/] probability announced so far"
"""Legend of the strips in the table."""

_BAR_WIDTH = 40
_STRIP = 20  # characters of the strip that draws an interval in [0, 1]
_RATE_SECONDS = 3.0  # time over which the rate is measured

WITH_INTERVALS = {"headline": "headline", "venn": "Venn"}
"""Titles of the methods that have intervals; the other methods of a report are its maps."""


class Rate:
    """Measures examples a second over the last `_RATE_SECONDS`."""

    def __init__(self) -> None:
        self._points: deque[tuple[float, int]] = deque()

    def __call__(self, count: int) -> float:
        """Return the rate, given the number of answers so far."""
        now = time.monotonic()
        self._points.append((now, count))
        while now - self._points[0][0] > _RATE_SECONDS:
            self._points.popleft()
        then, before = self._points[0]
        return (count - before) / (now - then) if now > then else 0.0


def render(feeds: list[Progress], rates: dict[str, Rate]) -> RenderableType:
    """Return the whole view."""
    return Group(*(_panel(feed, rates[feed.plan.feed](feed.answered)) for feed in feeds))


def line(feed: Progress) -> str:
    """Return the progress of a feed as a plain line."""
    text = f"{feed.plan.feed}: {feed.answered} of {feed.total} answered"
    if feed.latest is None or feed.latest["headline"]["predicted"]["accuracy"] is None:
        return text
    own = feed.latest["headline"]["predicted"]
    announced = f"[{own['lower']:.3f}, {own['upper']:.3f}]"
    return f"{text}, accuracy {own['accuracy']:.3f}, announced {announced}"


def methods_table(report: Report | None, only: int | None = None) -> Table:
    """Return a table of accuracy, probability and scores by method, at most `only` rows."""
    table = Table(box=None, pad_edge=False, expand=False)
    table.add_column("method", style="bold", min_width=10)
    for name in ("accuracy", "probability"):
        table.add_column(name, justify="right")
    table.add_column("0" + " " * (_STRIP - 2) + "1", no_wrap=True)
    for name in ("log loss", "Brier"):
        table.add_column(name, justify="right")
    for name, method in _methods(report)[:only]:
        table.add_row(Text(printable(name)), *_cells(method))  # rich would parse markup in a str
    return table


def _methods(report: Report | None) -> list[tuple[str, Report]]:
    if report is None:
        return []
    first = [(name, report[name]) for name in ("headline", "venn")]
    return [*first, *report["maps"].items()]


def _cells(method: Report) -> list[RenderableType]:
    predicted = method["predicted"]
    accuracy = predicted["accuracy"]
    if accuracy is None:
        return ["-"] * 5
    low, high = predicted["lower"], predicted["upper"]
    if low is None:
        probability = f"{predicted['probability']:.3f}"
        low = high = predicted["probability"]
    else:
        probability = f"[{low:.3f}, {high:.3f}]"
    losses = [f"{method['log_loss']:.3f}", f"{method['brier']:.3f}"]
    return [f"{accuracy:.3f}", probability, _strip(accuracy, low, high), *losses]


def _strip(accuracy: float, low: float, high: float) -> Text:
    """Draw the interval as a bar and the accuracy as a mark."""
    first, last, mark = (min(int(p * _STRIP), _STRIP - 1) for p in (low, high, accuracy))
    plain = list("·" * _STRIP)
    plain[first : last + 1] = "█" * (last + 1 - first)
    plain[mark] = "◆"
    drawn = Text("".join(plain), style="dim")
    drawn.stylize("cyan not dim", first, last + 1)
    drawn.stylize("bold yellow not dim", mark, mark + 1)
    return drawn


def _panel(feed: Progress, rate: float) -> Panel:
    head = Table.grid(padding=(0, 2))
    bar = ProgressBar(total=feed.total, completed=feed.answered, width=_BAR_WIDTH)
    state = "done" if feed.is_done else f"{rate:,.0f}/s"
    if feed.latest is None:  # the answers wait while the refit process loads the solver
        state = "first refit ..."
    head.add_row(bar, f"{feed.answered:,} of {feed.total:,} answered", state)
    # Only one method of the feed that drifts, so that the view fits 24 lines.
    return Panel(
        Group(head, methods_table(feed.latest, only=None if feed.plan.drift is None else 1)),
        title=f"[bold]{feed.plan.title}[/]",
        title_align="left",
        subtitle=LEGEND if feed.plan.drift is None else _news(feed, feed.plan.drift),
        subtitle_align="right",
    )


def _news(feed: Progress, drift: Drift) -> Text:
    """Return the sentence of the drift, or of the first alarm after it."""
    alarms = [raised for raised in feed.alarms if raised.seq >= drift.at]
    if alarms:
        return Text(printable(alarm_sentence(alarms[0], drift)), style="bold red")
    return Text(drift.sentence, style="yellow" if feed.answered >= drift.at else "dim")


_ACCURACY, _PROBABILITY = "#c1440e", "#1f5f8b"


def draw_curves(feeds: Mapping[str, Sequence[Report]], path: Path) -> None:
    """Save a PNG with a row of panels for each feed, a panel a method (Lambrou et al. 2012).

    `feeds` has the messages of `met` by title. The directory of `path` must exist.
    """
    rows = {title: [r for r in reports if r["scored"]] for title, reports in feeds.items()}
    maps = max((list(r[-1]["maps"]) for r in rows.values() if r), key=len, default=[])
    names = [*WITH_INTERVALS, *maps]
    figure = Figure(figsize=(3.3 * len(names), 2.9 * len(rows) + 0.4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(rows), len(names), squeeze=False, sharey="row")
    for panels, (title, reports) in zip(axes, rows.items(), strict=True):
        for panel, name in zip(panels, names, strict=True):
            _draw_panel(panel, name, reports)
        panels[0].set_ylabel(f"{title}\ncumulative average")
    for panel in axes[0][1:3]:  # the last method with intervals and the first map: all line styles
        panel.legend(loc="lower right", fontsize="small", frameon=False)
    # A description in words, for readers of the file that do not see the picture.
    figure.savefig(path, dpi=130, metadata={"Description": _description(rows, names)})


def _description(rows: Mapping[str, list[Report]], names: Sequence[str]) -> str:
    return "\n".join(
        f"{title}: {', '.join(_title(name, _series(name, reports)) for name in names)}"
        for title, reports in rows.items()
    )


def _series(name: str, reports: Sequence[Report]) -> list[Report]:
    return [report[name] if name in WITH_INTERVALS else report["maps"][name] for report in reports]


def _draw_panel(panel: Axes, name: str, reports: Sequence[Report]) -> None:
    methods = _series(name, reports)
    predicted = [method["predicted"] for method in methods]
    n = [report["n"] for report in reports]
    if name in WITH_INTERVALS:
        low, high = [p["lower"] for p in predicted], [p["upper"] for p in predicted]
        panel.fill_between(n, low, high, color=_PROBABILITY, alpha=0.25, lw=0)
        panel.plot(n, low, color=_PROBABILITY, lw=0.8, label="mean lower and upper probability")
        panel.plot(n, high, color=_PROBABILITY, lw=0.8)
    else:
        means = [p["probability"] for p in predicted]
        panel.plot(n, means, color=_PROBABILITY, lw=1.4, ls="--", label="mean probability")
    panel.plot(n, [p["accuracy"] for p in predicted], color=_ACCURACY, lw=1.4, label="accuracy")
    panel.set_title(_title(name, methods))
    panel.set_xlabel("examples learned")
    panel.grid(alpha=0.25)


def _title(name: str, methods: Sequence[Report]) -> str:
    title = WITH_INTERVALS.get(name, name)
    return f"{title} (log loss {methods[-1]['log_loss']:.3f})" if methods else title
