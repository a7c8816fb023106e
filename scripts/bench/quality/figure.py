"""The picture: log loss against processor time an example, every row of the table."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scripts.bench.quality.report import GROUPS, Mean, means
from scripts.bench.quality.rows import OURS
from scripts.bench.quality.run import Quality

BLUE, GREY = "#2660a4", "#888888"


def draw(found: Sequence[Quality], path: Path) -> None:
    """Draw the means of each group of streams, ours in blue, and the front as a line.

    Parameters
    ----------
    found : sequence of Quality
    path : Path
        Its ending says the format.
    """
    from matplotlib.figure import Figure

    groups = {group: rows for group in GROUPS if (rows := means(found, group))}
    figure = Figure(figsize=(7.5 * max(1, len(groups)), 6.0), layout="constrained")
    for place, (group, rows) in enumerate(groups.items(), start=1):
        axes = figure.add_subplot(1, len(groups), place)
        _panel(axes, rows)
        axes.set_title(f"{group}: means over {rows[0].streams} streams")
    figure.savefig(path, dpi=150)


def _panel(axes: Any, rows: Sequence[Mean]) -> None:
    front = _front(rows)
    axes.plot(
        [one.microseconds for one in front],
        [one.log_loss for one in front],
        color=GREY,
        linewidth=1,
        zorder=1,
    )
    for one in rows:
        colour = BLUE if _is_ours(one.row) else GREY
        axes.scatter(one.microseconds, one.log_loss, color=colour, s=18, zorder=2)
        axes.annotate(
            one.row,
            (one.microseconds, one.log_loss),
            xytext=(4, 3),
            textcoords="offset points",
            fontsize=7,
            color=colour,
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter("{x:.2g}" if axis is axes.yaxis else "")
    axes.margins(x=0.2)
    axes.set_xlabel("processor time an example, microseconds")
    axes.set_ylabel("log loss")


def _front(rows: Sequence[Mean]) -> list[Mean]:
    """Return the rows that are better than every cheaper one, the cheapest first."""
    front: list[Mean] = []
    for one in sorted(rows, key=lambda one: (one.microseconds, one.log_loss)):
        if not front or one.log_loss < front[-1].log_loss:
            front.append(one)
    return front


def _is_ours(row: str) -> bool:
    return row.partition(":")[0] in OURS
