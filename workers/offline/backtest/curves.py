"""Draw the cumulative log loss of all configurations, and a reliability diagram of each."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from workers.offline.backtest.prequential import HEADLINE
from workers.offline.backtest.run import Finished

_COLOURS = ("#1f5f8b", "#c1440e", "#3f7f3f", "#7b4b94", "#8c6d1f", "#555555")
SKIPPED_POINTS = 10  # first points of a cumulative curve, which do not count for the scale
_PANELS_PER_ROW = 3  # of the reliability diagrams


def draw_curves(finished: Sequence[Finished], path: Path) -> None:
    """Save a PNG of the headline of each configuration; the directory must exist."""
    rows = -(-len(finished) // _PANELS_PER_ROW)
    columns = min(len(finished), _PANELS_PER_ROW)
    figure = Figure(figsize=(max(6.6, 3.3 * columns), 3.2 + 3.1 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    top, below = figure.subfigures(2, 1, squeeze=False, height_ratios=(3.2, 3.1 * rows)).flat
    _draw_losses(top.subplots(), finished)
    panels = below.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).flat
    for index, panel in enumerate(panels):
        if index < len(finished):
            _draw_reliability(panel, finished[index], _colour(index))
        else:
            panel.set_axis_off()
    # A description in words, for readers of the file that do not see the picture.
    words = {"Description": "\n".join(map(_title, finished))}
    figure.savefig(path, dpi=130, metadata=words, format="png")


def _title(finished: Finished) -> str:
    headline = finished.result.methods.get(HEADLINE)
    text = "nothing scored" if headline is None else f"log loss {headline.log_loss:.4f}"
    return f"{finished.configuration.name}: {text}"


def _colour(index: int) -> str:
    return _COLOURS[index % len(_COLOURS)]


def _draw_losses(panel: Axes, finished: Sequence[Finished]) -> None:
    for index, each in enumerate(finished):
        loss = each.result.loss
        panel.plot(loss.learned, loss.log_loss, color=_colour(index), lw=1.4, label=_title(each))
    # The first few means jump, so the scale is chosen without them.
    later = [v for each in finished for v in each.result.loss.log_loss[SKIPPED_POINTS:]]
    if later:
        panel.set_ylim(0.9 * min(later), 1.1 * max(later))
    panel.set_xlabel("examples learned")
    panel.set_ylabel(f"cumulative log loss of {HEADLINE}")
    panel.grid(alpha=0.25)
    panel.legend(fontsize="small", frameon=False)


def _draw_reliability(panel: Axes, finished: Finished, colour: str) -> None:
    bins = finished.result.reliability
    panel.plot((0, 1), (0, 1), color="#999999", lw=0.8)
    given = finished.result.score_reliability
    if given is not None:
        dashed = panel.plot(given.probability, given.frequency, label="score as it came")
        dashed[0].set(color="#555555", linewidth=1.0, linestyle="--", marker="s", markersize=3.0)
    panel.plot(
        bins.probability, bins.frequency, color=colour, lw=1.0, marker="o", ms=3.5, label=HEADLINE
    )
    if given is not None:
        panel.legend(fontsize="small", frameon=False)
    panel.set_title(finished.configuration.name)
    panel.set_xlabel("mean probability in the bin")
    panel.set_ylabel("frequency")
    panel.set_xlim(0, 1)
    panel.set_ylim(0, 1)
    panel.grid(alpha=0.25)
