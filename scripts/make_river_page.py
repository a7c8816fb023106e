"""Write docs/river-benchmark.md from the stored figures of `bench river`; --check only compares."""

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import orjson

from scripts.bench.quality.river_models import HEAVY, LOGISTIC, MODELS, OURS, OURS_DECLARED
from scripts.bench.quality.river_track import GENERATED, STREAMS, Checkpoint, figures
from scripts.bench.report import Values
from scripts.generated_page import (
    OTHER_COLOUR,
    OURS_COLOUR,
    Picture,
    decimals,
    lines_of,
    write_or_check,
)

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "docs" / "river-benchmark.md"
STORED = ROOT / "tests" / "data" / "river-benchmark.jsonl"

PICTURE = ROOT / "docs" / "images" / "river-benchmark.svg"

_INTRODUCTION = """\
# River's benchmark

[River's own benchmark](https://riverml.xyz/latest/benchmarks/Binary%20classification/): its
progressive validation, metrics and models. Every model answers an example, then learns it.
`online-svm` is `online_svm.river.OnlineClassifier()`.

"""
_READING = """\
**Read with care.** `online-svm` also uses the labels just before an example; the other models,
except Last Class, use features alone. Few ensembles were run on most streams, so a stronger model
may be missing.

"""
_METHOD = """\
## How it was run

<!-- not run: hours -->

```sh
python scripts/bench river --streams Elec2 --heavy-examples 5000
python scripts/bench river --examples 5000 --streams \\
  Phishing,Bananas,ImageSegments,AGR_a,AGR_g,SEA,RTG,RBF_m,RBF_f,LED_a,LED_g
python -m scripts.make_river_page --all
```

The last command prints every stored figure (`tests/data/river-benchmark.jsonl`): each model on each
stream. The others continue where they stopped.

- **Machine**: 26 November 2026, two noisy cores shared with much other work, one run of each model.
  Cost is processor time of all threads, relative to river's logistic regression; it wavers by a
  third. Semantics 6, river 0.26.1, CapyMOA 0.15.1 on Java 17.
- **Log loss** takes probabilities of at least 1e-6; river's own counts a missing label as certain.
- **Models**: river's published settings without Torch and Vowpal Wabbit, with BOLE. CapyMOA's have
  its defaults: 100 trees, where river's forests have 10. Models for two classes know the labels,
  `online-svm` discovers them.
- **Streams**: Phishing, Bananas and ImageSegments come with river; Elec2 is without date and day.
  The others are MOA's generators with 5,000 examples, where papers use a million. `AGR` and `SEA`
  have four laws, with abrupt (`_a`, `SEA`) or gradual (`_g`) changes. `RBF` has 50 moving
  centroids, slow (`_m`) or fast (`_f`). `RTG` does not change.
- **Check**: logistic regression and ALMA have the accuracy that river publishes for Phishing
  (`tests/scripts/bench/quality/test_river_track.py`).
"""

Column = tuple[str, int]  # a stream and a number of its examples
Table = dict[Column, dict[str, Values]]
Write = Callable[[float], str]
Figure = tuple[str, Write, int]  # its name, how it is written, 1 if more is better

NEAR = 0.003  # a difference up to this counts as none
_FOREST = "river Adaptive Random Forest"
_SINGLE = ("river k-Nearest Neighbors", "river sklearn SGDClassifier")


def read(stored: Path = STORED) -> Table:
    """Return the figures of every model for each stream; the longest run of a model counts.

    A generated stream of another length is another stream.
    """
    runs: dict[Column, dict[str, list[Checkpoint]]] = {}
    for line in map(orjson.loads, stored.read_bytes().splitlines()):
        stream, method = line["stream"], line["method"]
        points = [Checkpoint(**point) for point in line["measured"]]
        of_stream = runs.setdefault((stream, line["examples"] * (stream in GENERATED)), {})
        of_stream[method] = max(points, of_stream.get(method, []), key=len)
    found: Table = {}
    for stream, length in sorted(runs, key=lambda one: (STREAMS.index(one[0]), one[1])):
        of_stream = runs[stream, length]
        for examples in sorted({points[-1].examples for points in of_stream.values()}):
            found[stream, examples] = {
                method: figures(point, of_stream.get(LOGISTIC, ()))
                for method in MODELS
                for point in of_stream.get(method, ())
                if point.examples == examples
            }
    return found


def _times(value: float) -> str:
    return f"{value:.1f}" if value < 10.0 else f"{value:,.0f}"


ACCURACY, KAPPA = ("accuracy", decimals, 1), ("kappa", decimals, 1)
LOG_LOSS, COST = ("log_loss", decimals, -1), ("cost", _times, 0)


def _table(found: Table, figure: Figure) -> Iterator[str]:
    """Yield the lines of a table: a row a model, a column a stream; the best is bold."""
    name, write, sign = figure
    columns = list(found)
    lines = []
    best = [
        found[column].get(_best(found[column], figure) or "", {}).get(name) for column in columns
    ]
    for method in MODELS:
        values = [found[column].get(method, {}).get(name) for column in columns]
        if any(value is not None for value in values):
            pairs = zip(values, best, strict=True)
            shown = [_cell(value, most, write, is_bold=sign != 0) for value, most in pairs]
            lines.append([method.removeprefix("river "), *shown])
    yield from lines_of(["", *(_heading(column) for column in columns)], lines)


def _cell(value: float | None, best: float | None, write: Write, *, is_bold: bool) -> str:
    """Return a figure, bold if it is written like the best."""
    if value is None or best is None:
        return "-"
    return f"**{write(value)}**" if is_bold and write(value) == write(best) else write(value)


def _best(of_column: dict[str, Values], figure: Figure, ours: bool = True) -> str | None:
    name, _, sign = figure
    known = {
        method: sign * values[name]
        for method, values in of_column.items()
        if values[name] is not None and (ours or method not in (OURS, OURS_DECLARED))
    }
    return max(known, key=known.__getitem__) if known else None


def _heading(column: Column) -> str:
    stream, examples = column
    return f"{stream}, {examples:,}"


FAMILIES = {
    "online-svm": (OURS,),
    "river, no model": ("river [baseline] Last Class",),
    "river, linear": (LOGISTIC, "river ALMA", "river sklearn SGDClassifier"),
    "river, Bayes and neighbours": ("river Naive Bayes", "river k-Nearest Neighbors"),
    "river, one tree": ("river Hoeffding Tree", "river Hoeffding Adaptive Tree"),
    "river, ensembles": tuple(
        name for name in HEAVY if name.startswith("river") and name not in _SINGLE
    ),
    "CapyMOA, ensembles": tuple(name for name in HEAVY if name.startswith("capymoa")),
}


def _by_family(found: Table) -> Iterator[str]:
    """Yield a table of the best model of each family by accuracy, of means over some streams."""
    lines = []
    for family, models in FAMILIES.items():
        ran = {
            model: [of_column[model] for of_column in found.values()]
            for model in models
            if all(model in of_column for of_column in found.values())
        }
        if ran:
            model = max(ran, key=lambda one: _mean(ran[one], ACCURACY) or 0.0)
            cells = [_mean(ran[model], figure) for figure in (ACCURACY, LOG_LOSS)]
            cost = _mean(ran[model], COST)
            shown = ["-" if cell is None else decimals(cell) for cell in cells]
            name = model.removeprefix("river ").removeprefix("capymoa ")
            lines.append([family, name, *shown, "-" if cost is None else _times(cost)])
    yield from lines_of(["", "best model", "accuracy", "log loss", "cost"], lines)


def _mean(values: Sequence[Values], figure: Figure) -> float | None:
    each = [one[figure[0]] for one in values]
    return None if None in each else float(np.mean(each))


def _wins(found: Table, figure: Figure) -> tuple[int, int]:
    """Return on how many streams ours is better, and is worse, than the best other model."""
    name, _, sign = figure
    ahead = []
    for of_column in found.values():
        best = _best(of_column, figure, ours=False)
        if OURS in of_column and best is not None:
            ahead.append(sign * (of_column[OURS][name] - of_column[best][name]))
    return sum(one > NEAR for one in ahead), sum(one < -NEAR for one in ahead)


def draw(found: Table) -> Any:
    """Return a picture: a line a stream, a dot a model, ours in colour."""
    whole, panels = plt.subplots(1, 2, figsize=(8.0, 3.4), sharey=True, layout="constrained")
    headings = [_heading(column) for column in found]
    for axes, (figure, title) in zip(panels, _PANELS.items(), strict=True):
        dots = [
            (values[figure], len(headings) - line, method == OURS)
            for line, of_column in enumerate(found.values(), 1)
            for method, values in of_column.items()
            if values[figure] is not None and method != OURS_DECLARED
        ]
        for is_ours, look in ((False, _OTHER_LOOK), (True, _OUR_LOOK)):
            points = [(value, y) for value, y, one in dots if one == is_ours]
            axes.plot(*zip(*points, strict=True), "o", **look)
        axes.set_xlabel(title)
        axes.grid(axis="y", linewidth=0.3)
    panels[0].set_yticks(range(len(headings)), headings[::-1])
    panels[1].set_xscale("log")
    panels[1].set_xticks(_LOSSES, map(str, _LOSSES))
    panels[1].set_xticks([], minor=True)
    whole.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return whole


_PANELS = {"accuracy": "accuracy (more is better)", "log_loss": "log loss (less is better)"}
_LOSSES = (0.2, 0.5, 1, 2)
_OTHER_LOOK: dict[str, Any] = {"color": OTHER_COLOUR, "markersize": 4, "label": "another model"}
_OUR_LOOK: dict[str, Any] = {"color": OURS_COLOUR, "markersize": 7, "label": "online-svm"}


def render(stored: Path = STORED) -> str:
    """Return the page."""
    found = read(stored)
    (first, of_first), *_ = found.items()
    # Streams on which a model of most families was run on the same examples.
    shared = {column: one for column, one in found.items() if _FOREST in one}
    (sharper, blunter), (better, worse) = (_wins(found, one) for one in (ACCURACY, LOG_LOSS))
    parts = [
        _INTRODUCTION,
        "![Accuracy and log loss of every model on each stream](images/river-benchmark.svg)\n\n",
        f"Against the best other model of each stream, `online-svm` has a higher accuracy on "
        f"{sharper} of {len(found)}\n(lower on {blunter}) and a lower log loss on {better} "
        f"(higher on {worse}). A difference of {NEAR} counts as none.\n\n",
        f"Best model of each family, means over {len(shared)} streams with the same examples:\n\n",
        *(f"{line}\n" for line in _by_family(shared)),
        f"\nThe same on {first[0]}, where all models were run:\n\n",
        *(f"{line}\n" for line in _by_family({first: of_first})),
        f"\n{_READING}{_METHOD}",
    ]
    return "".join(parts)


def tables(stored: Path = STORED) -> str:
    """Return every figure: a table for each metric, a row a model, a column a stream."""
    found = read(stored)
    return "\n\n".join(
        "\n".join([figure[0].replace("_", " "), "", *_table(found, figure)])
        for figure in (ACCURACY, KAPPA, LOG_LOSS, COST)
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page and its picture, or compare them."""
    picture = Picture(PICTURE, STORED, lambda: draw(read()))
    return write_or_check(TARGET, render, __doc__, arguments, picture, tables)


if __name__ == "__main__":
    sys.exit(main())
