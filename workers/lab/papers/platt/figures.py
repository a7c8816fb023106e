"""Figures 1 and 2 of Platt (1999): densities of the scores, and the posterior with its sigmoid."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.special import expit

from workers.lab.papers.figures import BLUE, GREEN, GREY, RED, save

Result = dict[str, Any]

COLOURS = {"three-fold": "black", "training scores": RED, "hold-out 30 %": GREEN}
FEWEST = 5  # examples a bin needs for its posterior to be drawn
LIMIT = 3.0


def draw(result: Result, out_dir: Path | str) -> list[Path]:
    """Draw every figure as PNG; see `workers.lab.papers.Reproduction.draw`."""
    figures = {
        "platt-densities": _grid(result["tasks"], _densities),
        "platt-sigmoid": _grid(result["tasks"], _posterior),
    }
    return save(figures, out_dir)


def _grid(tasks: list[Result], panel: Any) -> Figure:
    rows = -(-len(tasks) // 2)
    figure = Figure(figsize=(11.0, 4.0 * rows), layout="constrained")
    axes = np.ravel(figure.subplots(rows, 2, sharex=True, squeeze=False))
    for ax, task in zip(axes, tasks, strict=False):
        panel(ax, task)
        ax.set_xlim(-LIMIT, LIMIT)
        ax.set_title(task["name"], fontsize=10)
        ax.grid(alpha=0.25)
        ax.set_xlabel("score f")
    axes[0].legend(fontsize=8, frameon=False)
    for ax in axes[len(tasks) :]:
        ax.set_axis_off()
    return figure


def _densities(ax: Axes, task: Result) -> None:
    """Figure 1: the densities of both classes, from cross-validated scores."""
    edges = np.array(task["validated"]["edges"])
    for label, colour in (("positive", BLUE), ("negative", RED)):
        counts = np.array(task["validated"][label])
        density = counts / (counts.sum() * np.diff(edges))
        ax.stairs(density, edges, color=colour, lw=1.3, label=f"p(f | {label})")
    for margin in (-1.0, 1.0):
        ax.axvline(margin, color=GREY, lw=0.8, ls=":")
    ax.set_ylabel("density, three-fold scores")


def _posterior(ax: Axes, task: Result) -> None:
    """Figure 2: the share of positives in bins of a tenth, on the test set, and each sigmoid."""
    for name, marker, colour in (("test", "o", BLUE), ("validated", "+", GREY)):
        centres, shares = _shares(task[name])
        text = "test set" if name == "test" else "three-fold scores"
        ax.plot(centres, shares, marker, ms=4.5, color=colour, label=f"share of positives, {text}")
    line = np.linspace(-LIMIT, LIMIT, 301)
    for source, sigmoid in task["sigmoids"].items():
        probability = expit(-(sigmoid["A"] * line + sigmoid["B"]))
        style = "-" if source == "three-fold" else "--"
        ax.plot(line, probability, style, color=COLOURS[source], lw=1.3, label=f"sigmoid, {source}")
    ax.set_ylabel("P(positive | f)")
    ax.set_ylim(-0.02, 1.02)


def _shares(histogram: Result) -> tuple[np.ndarray, np.ndarray]:
    edges = np.array(histogram["edges"])
    positive, negative = np.array(histogram["positive"]), np.array(histogram["negative"])
    kept = positive + negative >= FEWEST
    centres = 0.5 * (edges[:-1] + edges[1:])
    return centres[kept], positive[kept] / (positive + negative)[kept]
