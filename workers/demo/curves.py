"""Cumulative accuracy against cumulative probability, one panel a method (Lambrou et al. 2012)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

Report = Mapping[str, Any]

WITH_INTERVALS = {"headline": "headline", "venn": "Venn"}
"""Titles of the methods that stand beside the maps in a report."""

_ACCURACY, _PROBABILITY = "#c1440e", "#1f5f8b"


def draw_curves(feeds: Mapping[str, Sequence[Report]], path: Path) -> None:
    """Draw a row of panels for each feed and save a PNG.

    Parameters
    ----------
    feeds : mapping of str to sequence of report
        Title, and the messages of `met` in order.
    path : Path
        In a directory that exists.
    """
    rows = {title: _scored(reports) for title, reports in feeds.items()}
    maps = max((list(r[-1]["maps"]) for r in rows.values() if r), key=len, default=[])
    names = [*WITH_INTERVALS, *maps]
    figure = Figure(figsize=(3.3 * len(names), 2.9 * len(rows) + 0.4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(rows), len(names), squeeze=False, sharey="row")
    for line, (title, reports) in zip(axes, rows.items(), strict=True):
        for panel, name in zip(line, names, strict=True):
            _draw_panel(panel, name, reports)
        line[0].set_ylabel(f"{title}\ncumulative average")
    for panel in axes[0][1:3]:  # the lines of a method with intervals, and those of every map
        panel.legend(loc="lower right", fontsize="small", frameon=False)
    # In words too: what reads the file can tell which numbers it shows.
    figure.savefig(path, dpi=130, metadata={"Description": _description(rows, names)})


def _description(rows: Mapping[str, list[Report]], names: Sequence[str]) -> str:
    """Return the titles of all panels, a line a feed."""
    return "\n".join(
        f"{title}: {', '.join(_title(name, _methods(name, reports)) for name in names)}"
        for title, reports in rows.items()
    )


def _scored(reports: Sequence[Report]) -> list[Report]:
    return [report for report in reports if report["scored"]]


def _methods(name: str, reports: Sequence[Report]) -> list[Report]:
    return [report[name] if name in WITH_INTERVALS else report["maps"][name] for report in reports]


def _draw_panel(panel: Axes, name: str, reports: Sequence[Report]) -> None:
    methods = _methods(name, reports)
    chosen = [method["predicted"] for method in methods]
    n = [report["n"] for report in reports]
    if name in WITH_INTERVALS:
        low, high = [c["lower"] for c in chosen], [c["upper"] for c in chosen]
        panel.fill_between(n, low, high, color=_PROBABILITY, alpha=0.25, lw=0)
        panel.plot(n, low, color=_PROBABILITY, lw=0.8, label="mean lower and upper probability")
        panel.plot(n, high, color=_PROBABILITY, lw=0.8)
    else:
        means = [c["probability"] for c in chosen]
        panel.plot(n, means, color=_PROBABILITY, lw=1.4, ls="--", label="mean probability")
    panel.plot(n, [c["accuracy"] for c in chosen], color=_ACCURACY, lw=1.4, label="accuracy")
    panel.set_title(_title(name, methods))
    panel.set_xlabel("examples learned")
    panel.grid(alpha=0.25)


def _title(name: str, methods: Sequence[Report]) -> str:
    shown = WITH_INTERVALS.get(name, name)
    return f"{shown} (log loss {methods[-1]['log_loss']:.3f})" if methods else shown
