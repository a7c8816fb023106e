"""What the figures of every reproduction share: their colours, and how they are saved."""

from collections.abc import Mapping
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

BLUE, RED, GREEN, GREY = "#1f5fa8", "#c03028", "#2e7d32", "#6b6b6b"


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
