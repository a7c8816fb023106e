"""The figures of Nalbantov & Ivanov: fans of surfaces, vote strips, calibration steps, ROC."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from online_svm.calibration.estimators import IsotonicMap
from online_svm.types import Bools, Floats
from scripts.papers.drawing import BLUE, GREY, RED, blank, diagonal, dress, legend, panels

Result = dict[str, Any]

METHODS = {"raw": ("raw score", GREY), "platt": ("Platt", RED), "implied": ("implied", BLUE)}
BINS = 10  # of equal width, as in the paper's figure 12
REACH = 4.0  # of the toy plane


def figures(result: Result) -> dict[str, Figure]:
    """Return every figure of a result, by the names of their files."""
    return {
        "implied-fan": _fan(result["toy"]),
        "implied-votes": _german_votes(result["test"]),
        "implied-scores": _against_scores(result["test"]),
        "implied-calibration": _calibration(result["test"]),
        "implied-halves": _halves(result["splits"]),
    }


def _fan(toy: Result) -> Figure:
    """Figures 4 and 6-9: nine lines, a degenerate point and a plain one, and their votes."""
    figure = blank(11.0, 5.6)
    grid = figure.add_gridspec(2, 2, width_ratios=[1.25, 1.0])
    plane = figure.add_subplot(grid[:, 0])
    _lines(plane, toy)
    marks = ("*", "P")
    for row, (point, mark) in enumerate(zip(toy["points"], marks, strict=False)):
        plane.plot(*point["x"], mark, ms=15, color="gold", markeredgecolor="black", zorder=5)
        ax = figure.add_subplot(grid[row, 1])
        _strip(ax, np.array(point["scores"]), width=0.085)
        changes = point["crossings"]
        kind = "one change of vote" if changes == 1 else f"{changes} changes: degenerate"
        title = f"{'star' if mark == '*' else 'cross'}: {kind}, P = {point['share']:.3f}"
        dress(ax, title=title, x="z, the weight of the positive class" if row else None)
    if len(toy["points"]) < len(marks):
        rest = figure.add_subplot(grid[1, 1])
        rest.text(0.5, 0.5, "no such point with this seed", ha="center")
        rest.set_axis_off()
    return figure


def _lines(ax: Axes, toy: Result) -> None:
    X, positive = np.array(toy["X"]), np.array(toy["positive"])
    ends = np.array([-2.0 * REACH, 2.0 * REACH])
    for j, (u, v, b) in enumerate(toy["lines"], start=1):
        shade = _shade(j / (len(toy["lines"]) + 1))
        if abs(v) > abs(u):
            xs, ys = ends, -(u * ends + b) / v
        else:
            xs, ys = -(v * ends + b) / u, ends
        ax.plot(xs, ys, color=shade, lw=1.6, label=f"z = {j / 10:g}")
    for chosen, mark, colour in ((positive, "o", BLUE), (~positive, "s", RED)):
        ax.plot(*X[chosen].T, mark, ms=7, color=colour, markeredgecolor="white", zorder=4)
    ax.set_xlim(-REACH, REACH)
    ax.set_ylim(-REACH, REACH)
    ax.set_aspect("equal")
    ax.legend(fontsize=8, loc="upper left", framealpha=0.9)
    title = "nine machines: weight z on positives (round), 1 - z on negatives"
    dress(ax, title=title, grid=None)


def _shade(z: float) -> tuple[float, float, float]:
    """Return a colour between red (z = 0) and blue (z = 1)."""
    red, blue = np.array([0.85, 0.35, 0.20]), np.array([0.10, 0.35, 0.70])
    mixed = red + z * (blue - red)
    return float(mixed[0]), float(mixed[1]), float(mixed[2])


def _strip(ax: Axes, scores: Floats, width: float) -> None:
    """Scores of the machines along z; the band below shows their votes, the fictitious too."""
    m = len(scores)
    z = np.arange(1, m + 1) / (m + 1)
    low, high = min(scores.min(), 0.0), max(scores.max(), 0.0)
    band = 0.12 * (high - low)
    ax.plot(z, scores, "-" if m > 50 else "o-", color="black", lw=1.2, ms=4)
    ax.axhline(0.0, color=GREY, lw=0.8)
    votes = np.concatenate(([False], scores > 0.0, [True]))
    places = np.concatenate(([0.0], z, [1.0]))
    for vote, colour in ((True, BLUE), (False, RED)):
        chosen = places[votes == vote]
        ax.bar(chosen, band, width=width, bottom=low - 2.0 * band, color=colour, alpha=0.85)
    ax.set_ylim(low - 2.3 * band, high + band)
    ax.set_ylabel("score f(x)")


def _german_votes(test: Result) -> Figure:
    """Figure 10: the scores and votes of all machines at the first test example."""
    figure, ((ax,),) = panels(8.0, 3.8)
    scores = np.array(test["first"])
    _strip(ax, scores, width=1.0 / (len(scores) + 1))
    title = (
        f"first test example: {test['implied'][0]:.3f} of the machines say bad credit "
        f"({1.0 - test['implied'][0]:.3f} good)"
    )
    dress(ax, title=title, x="z, the weight of the positive class (bad credit)")
    return figure


def _against_scores(test: Result) -> Figure:
    """Figure 11: both estimates against the score of the single machine."""
    figure, (axes,) = panels(10.0, 4.2, 1, 2, sharex=True, sharey=True)
    scores, degenerate = np.array(test["score"]), np.array(test["crossings"]) > 1
    for ax, key in zip(axes, ("implied", "platt"), strict=True):
        name, colour = METHODS[key]
        values = np.array(test[key])
        ax.plot(scores, values, "o", ms=3, color=colour, alpha=0.6, label=f"{name} estimate")
        if key == "implied":
            ax.plot(
                scores[degenerate], values[degenerate], "o", ms=7, mfc="none", color="black",
                label=f"degenerate ({np.count_nonzero(degenerate)} of {len(values)})",
            )  # fmt: skip
        dress(ax, x="score of the single machine")
        legend(ax, loc="upper left")
    axes[0].set_ylabel("P(bad credit)")
    return figure


def _calibration(test: Result) -> Figure:
    """Figures 12-14: isotonic steps, bins of equal width, the diagonal, jittered labels; ROC."""
    figure, grid = panels(11.0, 9.0, 2, 2)
    axes = grid.ravel()
    positive = np.array(test["positive"])
    for ax, (key, (name, colour)) in zip(axes, METHODS.items(), strict=False):
        _steps(ax, np.array(test[key]), positive, colour)
        dress(ax, title=name, x="estimate", y="share of bad credit")
    roc = axes[3]
    for key in ("platt", "implied"):
        name, colour = METHODS[key]
        order = np.argsort(-np.array(test[key]), kind="stable")
        hits = np.concatenate(([0.0], np.cumsum(positive[order]) / positive.sum()))
        alarms = np.concatenate(([0.0], np.cumsum(~positive[order]) / (~positive).sum()))
        roc.plot(alarms, hits, color=colour, lw=1.4, ls="-" if key == "platt" else "--", label=name)
    diagonal(roc)
    dress(roc, title="ROC", x="false positive rate", y="true positive rate")
    legend(roc)
    return figure


def _steps(ax: Axes, p: Floats, positive: Bools, colour: str) -> None:
    fitted = IsotonicMap().fit(p, positive)
    at = np.sort(p)
    ax.step(at, fitted.predict(at), where="mid", color=colour, lw=1.8, label="isotonic fit")
    diagonal(ax, label="diagonal")
    places = np.minimum((p * BINS).astype(int), BINS - 1)
    filled = np.unique(places)
    counts = np.array([np.count_nonzero(places == k) for k in filled])
    means = np.array([positive[places == k].mean() for k in filled])
    ax.scatter((filled + 0.5) / BINS, means, s=8 + counts, color=colour, alpha=0.5, lw=0,
               label="bins, area as count")  # fmt: skip
    jitter = np.random.default_rng(0).uniform(-0.03, 0.03, len(p))
    ax.plot(p, np.where(positive, 1.05, -0.05) + jitter, "x", ms=2.5, color="black", alpha=0.35)
    ax.set_xlim(-0.02, 1.02)
    ax.set_ylim(-0.12, 1.12)
    legend(ax, loc="upper left", bbox_to_anchor=(0.0, 0.92))


def _halves(splits: list[Result]) -> Figure:
    """Calibration score, AUC and log loss over random halves."""
    figure, (axes,) = panels(11.0, 3.8, 1, 3)
    shown = (("calibration", "calibration score"), ("auc", "AUC"), ("log_loss", "log loss"))
    for ax, (key, title) in zip(axes, shown, strict=True):
        for place, (name, (label, colour)) in enumerate(METHODS.items()):
            values = np.array([split[name][key] for split in splits])
            spread = place + np.linspace(-0.2, 0.2, len(values))
            ax.plot(spread, values, "o", ms=4, color=colour, alpha=0.6, label=label)
            ax.plot([place - 0.3, place + 0.3], [values.mean()] * 2, color=colour, lw=2)
        ax.set_xticks(range(3), [label for label, _ in METHODS.values()])
        dress(ax, title=f"{title}, {len(splits)} random halves", grid="y")
    return figure
