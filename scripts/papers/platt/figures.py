"""Figures 1 and 2 of Platt (1999): densities of the scores, and the posterior with its sigmoid."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.special import expit

from scripts.papers.drawing import BLUE, GREEN, GREY, RED, dress, legend, panels

Result = dict[str, Any]

COLOURS = {"three-fold": "black", "training scores": RED, "hold-out 30 %": GREEN}
FEWEST = 5  # examples a bin needs for its posterior to be drawn
LIMIT = 3.0


def figures(result: Result) -> dict[str, Figure]:
    """Return every figure of a result, by the names of their files."""
    return {
        "platt-densities": _grid(result["tasks"], _densities),
        "platt-sigmoid": _grid(result["tasks"], _posterior),
    }


def _grid(tasks: list[Result], panel: Any) -> Figure:
    rows = -(-len(tasks) // 2)
    figure, grid = panels(11.0, 4.0 * rows, rows, 2, sharex=True)
    axes = grid.ravel()
    for ax, task in zip(axes, tasks, strict=False):
        panel(ax, task)
        ax.set_xlim(-LIMIT, LIMIT)
        dress(ax, title=task["name"], x="score f")
    legend(axes[0])
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
