"""The figures of Xu et al. (2016)."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from online_svm.calibration.estimators import IsotonicMap, PlattScaling, ScoreBinning
from online_svm.calibration.evidential import (
    EvidentialBinning,
    EvidentialIsotonic,
    EvidentialLogistic,
    belief_plausibility,
)
from online_svm.calibration.evidential.binomial import (
    BINOMIAL_MODELS,
    BinomialModel,
    binomial_mass,
)
from online_svm.calibration.evidential.evidential_map import EvidentialMap
from online_svm.calibration.evidential.logistic import LOGISTIC_MODELS
from online_svm.calibration.score_map import ScoreMap
from online_svm.types import Floats
from scripts.papers.drawing import BLUE, GREEN, GREY, RED, diagonal, dress, legend, panels

Result = dict[str, Any]

MODEL_COLOURS = {"likelihood": BLUE, "confidence": RED, "dempster": GREEN}
METHOD_COLOURS = {"logistic": BLUE, "isotonic": RED, "binning": GREEN}
N_BINS = 6  # about as many as the paper's figures have
LEVELS = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.95)
SCORE = 0.5  # the score of figure 6


def figures(result: Result) -> dict[str, Figure]:
    """Return every figure of a result, by the names of their files."""
    scores = np.array(result["example"]["scores"])
    labels = np.array(result["example"]["labels"])
    return {
        "evidential-calibration": _calibration(scores, labels),
        "evidential-contour": _contour(scores[:50], labels[:50]),
        "evidential-binomial": _binomial(),
        "evidential-table-2": _table_2(result["table_2"]),
        "evidential-three-classifiers": _three_classifiers(result["three_classifiers"]),
    }


def _calibration(scores: Floats, labels: Floats) -> Figure:
    """Figures 1, 2, 5 and 7: each method under each model; last, logistic on 20 examples."""
    figure, grid = panels(12.0, 9.0, 3, 3)
    axes = grid.ravel()
    binned = ScoreBinning(N_BINS)
    cells: list[tuple[str, EvidentialMap, ScoreMap]] = [
        *((f"binning, {m}", EvidentialBinning(m, N_BINS), binned) for m in BINOMIAL_MODELS),
        *((f"isotonic, {m}", EvidentialIsotonic(m), IsotonicMap()) for m in BINOMIAL_MODELS),
        *((f"logistic, {m}", EvidentialLogistic(m), PlattScaling()) for m in LOGISTIC_MODELS),
    ]
    for ax, (title, evidence, point) in zip(axes, cells, strict=False):
        _envelope(ax, scores, labels, evidence, point)
        dress(ax, title=f"{title}, {len(scores)} examples", grid=None)
    _envelope(axes[-1], scores[:20], labels[:20], EvidentialLogistic(), PlattScaling())
    dress(axes[-1], title="logistic, likelihood, 20 examples", grid=None)
    legend(axes[0], loc="upper left")
    return figure


def _envelope(
    ax: Axes, scores: Floats, labels: Floats, evidence: EvidentialMap, point: ScoreMap
) -> None:
    """Draw Bel, Pl and the usual probability over the scores, and the examples as ticks."""
    line = np.linspace(-3.0, 3.0, 601)
    belief, plausibility = evidence.fit(scores, labels).predict_interval(line).T
    ax.fill_between(line, belief, plausibility, color=BLUE, alpha=0.18, lw=0, label="Bel to Pl")
    ax.plot(line, belief, color=BLUE, lw=1.0)
    ax.plot(line, plausibility, color=BLUE, lw=1.0)
    ax.plot(line, point.fit(scores, labels).predict(line), color="black", lw=1.2, label="P")
    for label, height in ((0, -0.035), (1, 1.035)):
        inside = scores[labels == label]
        ax.plot(inside, np.full(len(inside), height), "|", color=GREY, ms=5, alpha=0.7)
    ax.set(xlim=(-3, 3), ylim=(-0.07, 1.07), xlabel="score", ylabel="P(1 | score)")


def _contour(scores: Floats, labels: Floats) -> Figure:
    """Figure 6: level sets of the likelihood of the line; the contour at one score, its masses."""
    figure, ((left, right),) = panels(11.0, 4.6, 1, 2)
    fitted = EvidentialLogistic().fit(scores, labels)
    line = fitted.line_
    assert line is not None
    theta1 = -line.slope / line.width
    theta0 = -line.offset - theta1 * line.centre
    _level_sets(left, fitted, theta0, theta1)
    _areas(right, fitted, 1.0 / (1.0 + np.exp(theta0 + theta1 * SCORE)))
    return figure


def _level_sets(ax: Axes, fitted: EvidentialLogistic, theta0: float, theta1: float) -> None:
    grid0 = theta0 + np.linspace(-1.8, 1.8, 121)
    grid1 = theta1 + np.linspace(-2.6, 1.8, 121)
    heights = [[fitted.parameter_contour(a, b) for a in grid0] for b in grid1]
    sets = ax.contour(grid0, grid1, heights, levels=LEVELS, cmap="viridis")
    ax.clabel(sets, fontsize=7)
    ax.plot([theta0], [theta1], "+", color=RED, ms=10, label="maximum likelihood")
    tau = 0.5
    same = np.log(1.0 / tau - 1.0) - grid1 * SCORE
    ax.plot(same, grid1, "--", color=GREY, label=f"lines with P(1 | {SCORE}) = {tau}")
    ax.set(xlim=grid0[[0, -1]], ylim=grid1[[0, -1]], xlabel="θ0", ylabel="θ1")
    dress(ax, title="relative likelihood of the sigmoid, 50 examples", grid=None)
    legend(ax)


def _areas(ax: Axes, fitted: EvidentialLogistic, best: float) -> None:
    """Figure 3: m({1}) lies above the contour left of the best proportion, m({0}) right of it."""
    tau = np.linspace(0.0, 1.0, 401)
    contour = fitted.contour(SCORE, tau)
    m1, m0, both = fitted.mass([SCORE])[0]
    low = tau <= best
    for side, colour, label in (
        (low, BLUE, f"m({{1}}) = {m1:.3f}"),
        (~low, RED, f"m({{0}}) = {m0:.3f}"),
    ):
        ax.fill_between(tau[side], contour[side], 1.0, color=colour, alpha=0.3, label=label)
    ax.fill_between(tau, 0.0, contour, color=GREY, alpha=0.3, label=f"m({{0, 1}}) = {both:.3f}")
    ax.plot(tau, contour, color="black", lw=1.2)
    ax.axvline(best, color="black", lw=0.8, ls=":")
    ax.set(xlim=(0, 1), ylim=(0, 1.3), xlabel="τ = P(1 | s)", ylabel="plausibility of τ")
    dress(ax, title=f"contour at s = {SCORE}", grid=None)
    legend(ax, loc="upper left", ncols=3)


def _binomial() -> Figure:
    """Figure 4: Bel and Pl of a bin, by its size at 2/3 positive, and by its positives of 10."""
    figure, ((left, right),) = panels(11.0, 4.2, 1, 2)
    sizes, positives = np.arange(3, 100, 3), np.arange(11)
    for model in BINOMIAL_MODELS:
        _bounds(left, sizes, 2 * sizes // 3, sizes, model)
        _bounds(right, positives / 10, positives, np.full(11, 10), model)
    left.axhline(2 / 3, color=GREY, lw=0.8, ls=":")
    left.set(xlabel="examples, 2/3 of them positive", ylabel="Bel and Pl", ylim=(0, 1))
    diagonal(right)
    right.set(xlabel="share of positives among 10 examples", ylabel="Bel and Pl", ylim=(0, 1))
    legend(right)
    return figure


def _bounds(ax: Axes, x: ArrayLike, k: ArrayLike, n: ArrayLike, model: BinomialModel) -> None:
    belief, plausibility = belief_plausibility(binomial_mass(model, k, n)).T
    ax.plot(x, belief, color=MODEL_COLOURS[model], lw=1.3, label=model)
    ax.plot(x, plausibility, color=MODEL_COLOURS[model], lw=1.3)


def _table_2(entries: list[Result]) -> Figure:
    """Table 2 as dots: printed values and the measured means of both splits."""
    names = list(dict.fromkeys(e["data"] for e in entries))
    models = {"bayesian": GREY, "inverse pignistic": GREEN, "likelihood": BLUE, "confidence": RED}
    figure, (axes,) = panels(12.0, 4.8, 1, len(names))
    for ax, name in zip(axes, names, strict=True):
        for number, (model, colour) in enumerate(models.items()):
            chosen = [e for e in entries if (e["data"], e["model"]) == (name, model)]
            _dots(ax, chosen, 0.18 * (number - 1.5), colour, model)
        ax.set_xticks(range(3), ["(a)", "(b)", "(c)"])
        ax.set(title=name, xlabel="scenario", ylabel="error, %")
    axes[0].plot([], [], "_", color="black", ms=11, mew=2, label="printed")
    axes[0].plot([], [], "o", color="black", mfc="none", ms=5, label="measured, halves")
    figure.legend(
        *axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=6, fontsize=8
    )
    return figure


def _dots(ax: Axes, entries: list[Result], shift: float, colour: str, model: str) -> None:
    for split, face in (("shared", colour), ("halves", "none")):
        chosen = [e for e in entries if e["split"] == split]
        ax.errorbar(
            ["abc".index(e["scenario"]) + shift for e in chosen],
            [e["error"] for e in chosen],
            yerr=[e["standard_error"] for e in chosen],
            fmt="o",
            ms=5,
            lw=1,
            color=colour,
            mfc=face,
            label=f"{model}, shared" if split == "shared" else None,
        )
    printed = [e for e in entries if e["split"] == "shared" and e["printed"] is not None]
    x = ["abc".index(e["scenario"]) + shift for e in printed]
    ax.plot(x, [e["printed"] for e in printed], "_", color=colour, ms=11, mew=2)


def _three_classifiers(entries: list[Result]) -> Figure:
    """Figure 11: the three calibrations under the likelihood model, by the third subset's size."""
    names = list(dict.fromkeys(e["data"] for e in entries))
    figure, grid = panels(12.0, 6.6, 2, 3)
    axes = grid.ravel()
    for ax, name in zip(axes, names, strict=False):
        for method, colour in METHOD_COLOURS.items():
            shown = (name, method, "likelihood")
            chosen = [e for e in entries if (e["data"], e["method"], e["model"]) == shown]
            bars = [1.96 * e["standard_error"] for e in chosen]
            x, y = [e["third"] for e in chosen], [e["error"] for e in chosen]
            ax.errorbar(x, y, yerr=bars, color=colour, lw=1.2, capsize=2, label=method)
        ax.set(title=name, xlabel="examples of the third classifier", ylabel="error, %")
    legend(axes[0])
    return figure
