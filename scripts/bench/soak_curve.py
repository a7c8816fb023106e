"""Memory, key sizes and rate over a soak: a picture, or a table for any other program."""

from collections.abc import Iterator, Sequence
from dataclasses import astuple, fields
from pathlib import Path
from typing import TYPE_CHECKING

from scripts.bench.levels import Sample, rate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SMOOTHED = 8  # samples a point of the rate


def write(samples: Sequence[Sample], path: Path) -> None:
    """Write a picture to a .png, tab-separated columns to anything else."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".png":
        _draw(samples, path)
    else:
        path.write_text("\n".join(_table(samples)) + "\n")


def _table(samples: Sequence[Sample]) -> Iterator[str]:
    yield "\t".join(field.name for field in fields(Sample))
    for sample in samples:
        yield "\t".join(f"{value:g}" if value % 1 else f"{value:.0f}" for value in astuple(sample))


def _draw(samples: Sequence[Sample], path: Path) -> None:
    # Imported here: the checks alone need no picture.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 9.0), layout="constrained")
    FigureCanvasAgg(figure)
    memory, sizes, speed = figure.subplots(3, 1, sharex=True)
    seq = [sample.seq / 1e6 for sample in samples]
    _draw_memory(memory, seq, samples)
    for name in ("input", "out", "met"):
        values = [max(getattr(sample, name), 1) for sample in samples]
        sizes.plot(seq, values, label=f"entries of {'in' if name == 'input' else name}")
    sizes.set_yscale("log")
    points = range(_SMOOTHED, len(samples))
    rates = [rate(samples[i - _SMOOTHED : i + 1]) for i in points]
    speed.plot([seq[i] for i in points], rates, label="examples a second")
    speed.set_ylim(bottom=0.0)
    speed.set_xlabel("million examples answered")
    for axes in (memory, sizes, speed):
        axes.grid(alpha=0.25)
        axes.legend(loc="lower right", fontsize="small", frameon=False)
    figure.savefig(path, dpi=110)


def _draw_memory(axes: "Axes", seq: Sequence[float], samples: Sequence[Sample]) -> None:
    for name, label in (("worker", "worker"), ("refits", "refit process"), ("redis", "Redis")):
        axes.plot(seq, [getattr(sample, name) / 1e6 for sample in samples], label=f"{label}, MB")
    axes.set_yscale("log")
