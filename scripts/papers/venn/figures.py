"""The figures of Lambrou et al. (2012), and what finer taxonomies buy."""

from statistics import fmean
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from scripts.papers.drawing import BLUE, GREY, RED, dress, legend, panels
from scripts.papers.venn.protocol import MAPS, VENN

Result = dict[str, Any]

FLOOR = 1e-12  # smaller p-values are drawn here


def figures(result: Result) -> dict[str, Figure]:
    """Return every figure of a result, by the names of their files."""
    runs, adult = result["runs"], result["adult"]
    drawn = {
        "venn-car": _cumulative(runs, "car", "sigma"),
        "venn-wine": _cumulative(runs, "wine", "sigma"),
        "venn-p-values": _p_values(runs),
        "venn-taxonomies": _taxonomies(runs, adult),
    }
    if any(run["reading"] == "gamma" for run in runs):
        drawn["venn-car-gamma"] = _cumulative(runs, "car", "gamma")
        drawn["venn-wine-gamma"] = _cumulative(runs, "wine", "gamma")
    return drawn


def _cumulative(runs: list[Result], data: str, reading: str) -> Figure:
    """Figures 1 and 2: a row a method, a column a parameter, the smaller on the left."""
    chosen = [r for r in runs if r["curves"] and (r["data"], r["reading"]) == (data, reading)]
    chosen.sort(key=lambda run: float(run["value"]))
    figure, axes = panels(10.0, 10.0, len(MAPS) + 1, len(chosen), sharex=True, sharey=True)
    for column, run in enumerate(chosen):
        for ax, name in zip(axes[:, column], MAPS, strict=False):
            _map_panel(ax, run["curves"], name)
        _venn_panel(axes[-1, column], run["curves"]["class"])
        dress(axes[0, column], title=f"{data}, {reading} = {run['value']:g}", grid=None)
        dress(axes[-1, column], x="examples seen", grid=None)
    dress(*axes.flat)
    for ax, name in zip(axes[:, 0], [*MAPS, "IVP"], strict=True):
        ax.set_ylabel(name)
        ax.set_ylim(0.0, 1.02)
    for ax in (axes[0, 0], axes[-1, 0]):
        legend(ax, loc="lower right", ncols=2)
    return figure


def _map_panel(ax: Axes, curves: Result, name: str) -> None:
    for source, colour in (("training", RED), ("calibration", BLUE)):
        curve = curves[f"{name}, {source}"]
        ax.plot(curve["n"], curve["accuracy"], color=colour, lw=1.3, label=f"accuracy, {source}")
        said = f"probability, {source}"
        ax.plot(curve["n"], curve["probability"], color=colour, lw=1.3, ls=":", label=said)


def _venn_panel(ax: Axes, curve: Result) -> None:
    ax.fill_between(
        curve["n"], curve["lower"], curve["upper"], color=BLUE, alpha=0.25, lw=0, label="interval"
    )
    ax.plot(curve["n"], curve["probability"], color=BLUE, lw=1.3, ls=":", label="probability")
    ax.plot(curve["n"], curve["accuracy"], color="black", lw=1.3, label="accuracy")


def _p_values(runs: list[Result]) -> Figure:
    """Every shuffle's p-value at sigma 0.6, by method."""
    figure, (axes,) = panels(10.0, 4.2, 1, 2, sharey=True)
    names = ["class", *(f"{name}, {s}" for name in MAPS for s in ("training", "calibration"))]
    for ax, data in zip(axes, ("car", "wine"), strict=True):
        parts = [run for run in runs if run["stride"] > 1 and run["data"] == data]
        for place, name in enumerate(reversed(names)):
            p_values = np.array([part["methods"][name]["paper_p"] for part in parts])
            spread = place + np.linspace(-0.25, 0.25, len(parts))
            colour = RED if name.endswith("training") else BLUE
            ax.plot(np.maximum(p_values, FLOOR), spread, "o", ms=3.5, color=colour, alpha=0.75)
        ax.set_xscale("log")
        ax.set_xlim(0.5 * FLOOR, 2.0)
        ax.axvline(0.05, color=GREY, lw=0.8, ls="--")
        title = f"{data}, sigma = 0.6, {len(parts)} shuffles"
        dress(ax, title=title, x="p-value (dashed: .05)", grid="x")
    axes[0].set_yticks(range(len(names)), ["IVP" if n == "class" else n for n in reversed(names)])
    return figure


def _taxonomies(runs: list[Result], adult: list[Result]) -> Figure:
    """Log loss and interval width of each taxonomy, with the maps as reference lines."""
    figure, axes = panels(11.0, 6.0, 2, 3, sharex=True)
    for column, data in enumerate(("car", "wine", "adult")):
        parts = adult if data == "adult" else [
            run for run in runs if run["stride"] > 1 and run["data"] == data
        ]  # fmt: skip
        for ax, quantity in zip(axes[:, column], ("log_loss", "width"), strict=True):
            for place, name in enumerate(VENN):
                values = [part["methods"][name][quantity] for part in parts]
                ax.plot(np.full(len(values), place), values, "o", ms=3, color=BLUE, alpha=0.35)
                ax.plot([place - 0.3, place + 0.3], [fmean(values)] * 2, color=BLUE, lw=2)
            dress(ax, grid="y")
        platt = fmean(part["methods"]["Platt, calibration"]["log_loss"] for part in parts)
        axes[0, column].axhline(platt, color=RED, lw=1.0, ls="--", label="Platt, calibration")
        dress(axes[0, column], title=data, grid=None)
        axes[1, column].set_xticks(range(len(VENN)), VENN, rotation=40, ha="right", fontsize=8)
    axes[0, 0].set_ylabel("log loss")
    axes[1, 0].set_ylabel("interval width")
    legend(axes[0, 0])
    return figure
