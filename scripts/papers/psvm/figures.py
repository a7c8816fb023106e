"""The figures of Niaf et al.: probabilities along a line and over a plane, and noise sweeps."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.special import expit

from online_svm.types import Floats
from scripts.papers.drawing import BLUE, GREY, RED, dress, legend, panels
from scripts.papers.psvm.trials import PLANE_MEAN, PLANE_VARIANCE

Result = dict[str, Any]

NAMES = {"psvm": ("P-SVM", BLUE), "csvm": ("C-SVM with Platt", RED)}


def figures(result: Result) -> dict[str, Figure]:
    """Return every figure of a result, by the names of their files."""
    return {
        "psvm-line": _line(result["curves"]),
        "psvm-settings": _settings(result["line"]),
        "psvm-plane": _plane(result["grid"]),
        "psvm-noise": _noise(result["plane"]),
    }


def _line(curves: Result) -> Figure:
    """Figure 1: probability against truth, and their difference below."""
    figure, ((top,), (bottom,)) = panels(8.0, 6.0, 2, 1, sharex=True, height_ratios=[2, 1])
    x, truth = np.array(curves["x"]), expit(np.array(curves["truth"]))
    top.plot(x, truth, color="black", lw=4, alpha=0.25, label="true posterior")
    for key, (name, colour) in NAMES.items():
        estimate = expit(np.array(curves[key]))
        top.plot(x, estimate, color=colour, lw=1.5, label=name)
        bottom.plot(x, estimate - truth, color=colour, lw=1.5)
    points, labels = np.array(curves["points"]), np.array(curves["labels"])
    for label, height, colour in ((1.0, 1.0, BLUE), (-1.0, 0.0, BLUE), (0.0, 0.5, GREY)):
        chosen = points[labels == label]
        what = "given as a probability" if label == 0.0 else "given as a class"
        mark = what if label >= 0.0 else None
        top.plot(chosen, np.full(len(chosen), height), "|", color=colour, ms=9, label=mark)
    dress(top, y="P(y = +1 | x)")
    legend(top, loc="center right")
    dress(bottom, x="x", y="estimate - truth")
    bottom.set_xlim(x[0], x[-1])
    return figure


def _settings(line: list[Result]) -> Figure:
    """Two-sided divergence against sigma, a curve for each eta."""
    figure, ((ax,),) = panels(8.0, 4.8)
    sigmas = sorted({trial["sigma"] for trial in line})
    etas = list(line[0]["psvm"])
    for place, eta in enumerate(etas):
        means = [
            np.mean([t["psvm"][eta][1] for t in line if t["sigma"] == sigma]) for sigma in sigmas
        ]
        shade = 0.3 + 0.7 * (place + 1) / len(etas)
        ax.plot(sigmas, means, "o-", ms=3, color=BLUE, alpha=shade, label=f"P-SVM, eta {eta}")
    values = [[t["csvm"][1] for t in line if t["sigma"] == sigma] for sigma in sigmas]
    ax.plot(sigmas, [np.mean(v) for v in values], "s-", ms=4, color=RED, label="C-SVM with Platt")
    ax.fill_between(
        sigmas, [min(v) for v in values], [max(v) for v in values], color=RED, alpha=0.15, lw=0
    )
    for printed in (0.2, 11.3):
        ax.axhline(printed, color=GREY, lw=0.8, ls=":")
        ax.annotate(
            f"printed: {printed} (one-sided)", (sigmas[-1], printed), fontsize=7, color=GREY,
            va="bottom", ha="right",
        )  # fmt: skip
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xticks(sigmas, [f"{s:g}" for s in sigmas])
    ax.minorticks_off()
    dress(ax, x="sigma of the kernel", y="two-sided KL over 1000 points")
    legend(ax, ncols=2)
    return figure


def _plane(grid: Result) -> Figure:
    """Figure 2: the posterior over the plane; dashed f = -1 and 1, bold f = 0."""
    figure, (axes,) = panels(12.0, 4.1, 1, 3, sharex=True, sharey=True)
    axis = np.array(grid["axis"])
    X, Y = np.meshgrid(axis, axis)
    odds = 2.0 / PLANE_VARIANCE * (PLANE_MEAN[0] * X + PLANE_MEAN[1] * Y)
    shown: list[tuple[str, Floats, Floats | None]] = [("true posterior", odds, None)]
    shown += [
        (name, np.reshape(grid[key]["odds"], X.shape), np.reshape(grid[key]["scores"], X.shape))
        for key, (name, _) in NAMES.items()
    ]
    for ax, (title, values, scores) in zip(axes, shown, strict=True):
        image = ax.contourf(X, Y, expit(values), levels=np.linspace(0, 1, 21), cmap="RdBu")
        if scores is None:
            ax.contour(X, Y, values, levels=[0.0], colors="black", linewidths=1.8)
        else:
            ax.contour(
                X, Y, scores, levels=[-1.0, 0.0, 1.0], colors="black",
                linewidths=[0.9, 1.8, 0.9], linestyles=["--", "-", "--"],
            )  # fmt: skip
        _points(ax, grid)
        dress(ax, title=title, grid=None)
        ax.set_aspect("equal")
        ax.set_xlim(axis[0], axis[-1])  # a few points lie outside
        ax.set_ylim(axis[0], axis[-1])
    figure.colorbar(image, ax=axes, label="P(y = +1 | x)", ticks=np.linspace(0, 1, 6))
    return figure


def _points(ax: Axes, grid: Result) -> None:
    points, positive = np.array(grid["points"]), np.array(grid["positive"])
    for chosen, colour in ((positive, BLUE), (~positive, RED)):
        X = points[chosen].T
        ax.plot(*X, "o", ms=3.5, color=colour, markeredgecolor="white", markeredgewidth=0.4)


def _noise(on_plane: list[Result]) -> Figure:
    """Figure 3: accuracy and divergences against noise; bars are one standard deviation."""
    figure, (axes,) = panels(12.0, 4.0, 1, 3, sharex=True)
    noises = sorted({trial["noise"] for trial in on_plane})
    for ax, what, title in zip(
        axes,
        (None, 0, 1),
        ("agreement with the Bayes class", "KL as printed (one-sided)", "KL of both classes"),
        strict=True,
    ):
        for shift, (key, (name, colour)) in zip((-0.006, 0.006), NAMES.items(), strict=True):
            values = [
                [
                    t[key]["accuracy"] if what is None else t[key]["divergence"][what]
                    for t in on_plane
                    if t["noise"] == noise
                ]
                for noise in noises
            ]
            ax.errorbar(
                np.array(noises) + shift, [np.mean(v) for v in values], [np.std(v) for v in values],
                fmt="o-", ms=4, lw=1.3, capsize=2, color=colour, label=name,
            )  # fmt: skip
        dress(ax, title=title, x="noise amplitude")
    axes[1].set_yscale("symlog", linthresh=10.0)  # it is often negative
    axes[2].set_yscale("log")
    legend(axes[0])
    return figure
