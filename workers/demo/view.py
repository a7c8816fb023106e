"""The live terminal view: progress, rate, and each method's accuracy beside its probability."""

import time
from collections import deque

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from workers.demo.feeds import Drift, Progress, Report, alarm_sentence
from workers.printable import printable

LEGEND = "[yellow]◆[/] accuracy so far   [cyan]█[/] probability announced so far"
"""What the strips of the table show."""

_WIDTH = 40
_STRIP = 20  # characters of the strip that draws an interval between 0 and 1
_SECONDS = 3.0  # span over which the rate is measured


class Rate:
    """Examples a second over the last moments."""

    def __init__(self) -> None:
        self._points: deque[tuple[float, int]] = deque()

    def __call__(self, count: int) -> float:
        """Return the rate now that `count` have been answered in all."""
        now = time.monotonic()
        self._points.append((now, count))
        while now - self._points[0][0] > _SECONDS:
            self._points.popleft()
        then, before = self._points[0]
        return (count - before) / (now - then) if now > then else 0.0


def render(feeds: list[Progress], rates: dict[str, Rate]) -> RenderableType:
    """Return the whole view."""
    return Group(*(_panel(feed, rates[feed.plan.feed](feed.answered)) for feed in feeds))


def line(feed: Progress) -> str:
    """Return one plain line for where there is no terminal."""
    text = f"{feed.plan.feed}: {feed.answered} of {feed.total} answered"
    if feed.latest is None or feed.latest["headline"]["predicted"]["accuracy"] is None:
        return text
    own = feed.latest["headline"]["predicted"]
    announced = f"[{own['lower']:.3f}, {own['upper']:.3f}]"
    return f"{text}, accuracy {own['accuracy']:.3f}, announced {announced}"


def methods_table(report: Report | None, only: int | None = None) -> Table:
    """Return the table of methods: cumulative accuracy beside probability, and the scores.

    Parameters
    ----------
    report : Report or None
    only : int, optional
        Methods at most, the headline first. Default: all.
    """
    table = Table(box=None, pad_edge=False, expand=False)
    table.add_column("method", style="bold", min_width=10)
    for name in ("accuracy", "probability"):
        table.add_column(name, justify="right")
    table.add_column("0" + " " * (_STRIP - 2) + "1", no_wrap=True)
    for name in ("log loss", "Brier"):
        table.add_column(name, justify="right")
    for name, method in _methods(report)[:only]:
        table.add_row(Text(printable(name)), *_cells(method))  # of a text, rich reads markup
    return table


def _methods(report: Report | None) -> list[tuple[str, Report]]:
    if report is None:
        return []
    first = [(name, report[name]) for name in ("headline", "venn")]
    return [*first, *report["maps"].items()]


def _cells(method: Report) -> list[RenderableType]:
    chosen = method["predicted"]
    accuracy = chosen["accuracy"]
    if accuracy is None:
        return ["-"] * 5
    low, high = chosen["lower"], chosen["upper"]
    if low is None:
        probability = f"{chosen['probability']:.3f}"
        low = high = chosen["probability"]
    else:
        probability = f"[{low:.3f}, {high:.3f}]"
    losses = [f"{method['log_loss']:.3f}", f"{method['brier']:.3f}"]
    return [f"{accuracy:.3f}", probability, _strip(accuracy, low, high), *losses]


def _strip(accuracy: float, low: float, high: float) -> Text:
    """Draw the interval as a bar and the accuracy as a mark on it."""
    first, last, mark = (min(int(p * _STRIP), _STRIP - 1) for p in (low, high, accuracy))
    text = Text("·" * _STRIP, style="dim")
    text.stylize("bold cyan not dim", first, last + 1)
    plain = list("·" * _STRIP)
    plain[first : last + 1] = "█" * (last + 1 - first)
    plain[mark] = "◆"
    drawn = Text("".join(plain), style="dim")
    drawn.stylize("cyan not dim", first, last + 1)
    drawn.stylize("bold yellow not dim", mark, mark + 1)
    return drawn


def _panel(feed: Progress, rate: float) -> Panel:
    head = Table.grid(padding=(0, 2))
    bar = ProgressBar(total=feed.total, completed=feed.answered, width=_WIDTH)
    state = "done" if feed.is_done else f"{rate:,.0f}/s"
    if feed.latest is None:  # answers wait for it, while its process loads the solver
        state = "first refit ..."
    head.add_row(bar, f"{feed.answered:,} of {feed.total:,} answered", state)
    # Where something goes wrong, one method and what happens to it: all must fit 24 lines.
    return Panel(
        Group(head, methods_table(feed.latest, only=None if feed.plan.drift is None else 1)),
        title=f"[bold]{feed.plan.title}[/]",
        title_align="left",
        subtitle=LEGEND if feed.plan.drift is None else _news(feed, feed.plan.drift),
        subtitle_align="right",
    )


def _news(feed: Progress, drift: Drift) -> Text:
    """Return what goes wrong on purpose, or the first alarm after it."""
    alarms = [raised for raised in feed.alarms if raised.seq >= drift.at]
    if alarms:
        return Text(printable(alarm_sentence(alarms[0], drift)), style="bold red")
    return Text(drift.sentence, style="yellow" if feed.answered >= drift.at else "dim")
