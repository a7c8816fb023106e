"""What the figures of every reproduction share: colours, panels, and how they are saved."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

BLUE, RED, GREEN, GREY = "#1f5fa8", "#c03028", "#2e7d32", "#6b6b6b"


def blank(width: float, height: float) -> Figure:
    """Return an empty figure of that many inches, whose panels never overlap."""
    return Figure(figsize=(width, height), layout="constrained")


def panels(
    width: float, height: float, rows: int = 1, columns: int = 1, **shared: Any
) -> tuple[Figure, Any]:
    """Return a figure and its panels, as an array of shape (rows, columns).

    Parameters
    ----------
    width, height : float
        Inches.
    rows, columns : int
    **shared
        As `Figure.subplots` takes them, such as sharex.

    Examples
    --------
    >>> panels(8.0, 4.0, 1, 2, sharey=True)[1].shape
    (1, 2)
    """
    figure = blank(width, height)
    return figure, figure.subplots(rows, columns, squeeze=False, **shared)


def dress(
    *axes: Axes,
    title: str | None = None,
    x: str | None = None,
    y: str | None = None,
    grid: str | None = "both",
) -> None:
    """Give panels a title, names of their axes and a grid.

    Parameters
    ----------
    *axes : Axes
    title, x, y : str, optional
    grid : {"both", "x", "y"}, optional
    """
    for ax in axes:
        if title is not None:
            ax.set_title(title, fontsize=10)
        if x is not None:
            ax.set_xlabel(x)
        if y is not None:
            ax.set_ylabel(y)
        if grid is not None:
            ax.grid(alpha=0.25, axis=grid)  # type: ignore[arg-type]  # a literal of matplotlib's


def legend(ax: Axes, **where: Any) -> None:
    """Add a small legend without a frame; `where` is as for `Axes.legend`."""
    ax.legend(fontsize=8, frameon=False, **where)


def diagonal(ax: Axes, **options: Any) -> None:
    """Draw the line on which both axes agree, over [0, 1]."""
    ax.plot([0, 1], [0, 1], color=GREY, lw=0.8, ls=":", **options)


def save(figures: Mapping[str, Figure], out_dir: Path | str) -> list[Path]:
    """Save figures as PNG under their names; return the files.

    Parameters
    ----------
    figures : mapping of str to Figure
    out_dir : path
        Made if it is not there.
    """
    directory = Path(out_dir)
    directory.mkdir(parents=True, exist_ok=True)
    return [_save(figure, directory / f"{name}.png") for name, figure in figures.items()]


def _save(figure: Figure, path: Path) -> Path:
    FigureCanvasAgg(figure)
    # A software field would differ between installations of matplotlib.
    figure.savefig(path, dpi=110, metadata={"Software": None})
    return path
