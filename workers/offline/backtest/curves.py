"""Cumulative log loss of all configurations, and the reliability of each."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from workers.offline.backtest.prequential import HEADLINE
from workers.offline.backtest.run import Finished

_COLOURS = ("#1f5f8b", "#c1440e", "#3f7f3f", "#7b4b94", "#8c6d1f", "#555555")
SETTLED = 10  # points of a cumulative curve that the scale leaves out
_ACROSS = 3  # panels of reliability in a row


def draw_curves(finished: Sequence[Finished], path: Path) -> None:
    """Draw the headline of each configuration and save a PNG in a directory that exists."""
    rows = -(-len(finished) // _ACROSS)
    across = min(len(finished), _ACROSS)
    figure = Figure(figsize=(max(6.6, 3.3 * across), 3.2 + 3.1 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    top, below = figure.subfigures(2, 1, squeeze=False, height_ratios=(3.2, 3.1 * rows)).flat
    _draw_losses(top.subplots(), finished)
    panels = below.subplots(rows, across, squeeze=False, sharex=True, sharey=True).flat
    for place, panel in enumerate(panels):
        if place < len(finished):
            _draw_reliability(panel, finished[place], _colour(place))
        else:
            panel.set_axis_off()
    # In words too: what reads the file can tell which numbers it shows.
    words = {"Description": "\n".join(map(_title, finished))}
    figure.savefig(path, dpi=130, metadata=words, format="png")


def _title(one: Finished) -> str:
    headline = one.result.methods.get(HEADLINE)
    told = "nothing scored" if headline is None else f"log loss {headline.log_loss:.4f}"
    return f"{one.configuration.name}: {told}"


def _colour(place: int) -> str:
    return _COLOURS[place % len(_COLOURS)]


def _draw_losses(panel: Axes, finished: Sequence[Finished]) -> None:
    for place, one in enumerate(finished):
        loss = one.result.loss
        panel.plot(loss.learned, loss.log_loss, color=_colour(place), lw=1.4, label=_title(one))
    # The first few means jump; the scale is of what comes after them.
    settled = [v for one in finished for v in one.result.loss.log_loss[SETTLED:]]
    if settled:
        panel.set_ylim(0.9 * min(settled), 1.1 * max(settled))
    panel.set_xlabel("examples learned")
    panel.set_ylabel(f"cumulative log loss of {HEADLINE}")
    panel.grid(alpha=0.25)
    panel.legend(fontsize="small", frameon=False)


def _draw_reliability(panel: Axes, one: Finished, colour: str) -> None:
    found = one.result.reliability
    panel.plot((0, 1), (0, 1), color="#999999", lw=0.8)
    panel.plot(found.probability, found.frequency, color=colour, lw=1.0, marker="o", ms=3.5)
    panel.set_title(one.configuration.name)
    panel.set_xlabel("mean probability in the bin")
    panel.set_ylabel("frequency")
    panel.set_xlim(0, 1)
    panel.set_ylim(0, 1)
    panel.grid(alpha=0.25)
