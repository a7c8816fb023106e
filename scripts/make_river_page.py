"""Write docs/river-benchmark.md from the stored figures of its benchmark; --check compares."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from pandas import DataFrame

from scripts.bench.kept import stored_rows
from scripts.bench.quality.river_models import HEAVY, LOGISTIC, OURS
from scripts.bench.quality.river_track import NEAR, at_ends, beside_best, compared
from scripts.bench.quality.streams import RIVER
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
python scripts/bench quality --set river --streams Elec2 --heavy-examples 5000
python scripts/bench quality --set river --examples 5000 --streams \\
  Phishing,Bananas,ImageSegments,AGR_a,AGR_g,SEA,RTG,RBF_m,RBF_f,LED_a,LED_g
python -m scripts.make_river_page --all
```

The last command prints every stored figure (`tests/data/river-benchmark.jsonl`): each model on each
stream. The others continue where they stopped.

- **Machine**: 26 November 2026, two noisy cores shared with much other work, one run of each model.
  Cost is processor time of all threads, relative to river's logistic regression; it wavers by a
  third. river 0.26.1, CapyMOA 0.15.1 on Java 17.
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

_FOREST = "river Adaptive Random Forest"
_SINGLE = ("river k-Nearest Neighbors", "river sklearn SGDClassifier")


def read(stored: Path = STORED) -> DataFrame:
    """Return the figures of every model for each stream, at the ends of the runs of any model."""
    return at_ends(DataFrame(stored_rows(stored))).sort_values(
        ["stream", "examples"],
        key=lambda one: one.map([*RIVER].index) if one.name == "stream" else one,
        kind="stable",
    )


def _times(value: float) -> str:
    return f"{value:.1f}" if value < 10.0 else f"{value:,.0f}"


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


def _by_family(found: DataFrame) -> Iterator[str]:
    """Yield a table of the best model of each family by accuracy, of means over some streams."""
    models = found.groupby("method")
    columns = len(found.groupby(["stream", "examples"]))
    means = models[["accuracy", "log_loss", "cost"]].mean()[models.size() == columns]
    means[models[["log_loss", "cost"]].count() < columns] = float("nan")
    lines = []
    for family, names in FAMILIES.items():
        of_family = means.reindex(names).dropna(how="all")
        if not of_family.empty:
            best = of_family.sort_values("accuracy").iloc[-1]
            name = str(best.name).removeprefix("river ").removeprefix("capymoa ")
            figures = zip((decimals, decimals, _times), best, strict=True)
            lines.append([family, name, *("-" if v != v else write(v) for write, v in figures)])
    yield from lines_of(["", "best model", "accuracy", "log loss", "cost"], lines)


def draw(found: DataFrame) -> Any:
    """Return a picture: a line a stream, a dot a model, ours in colour."""
    whole, panels = plt.subplots(1, 2, figsize=(8.0, 3.4), sharey=True, layout="constrained")
    lines = found.groupby(["stream", "examples"], sort=False).ngroup(ascending=False)
    for axes, (figure, title) in zip(panels, _PANELS.items(), strict=True):
        for is_ours, look in ((False, _OTHER_LOOK), (True, _OUR_LOOK)):
            dots = ((found.method == OURS) == is_ours) & found[figure].notna()
            axes.plot(found[figure][dots], lines[dots], "o", **look)
        axes.set_xlabel(title)
        axes.grid(axis="y", linewidth=0.3)
    headings = {f"{one.stream}, {one.examples:,}": None for one in found.itertuples()}
    panels[0].set_yticks(range(len(headings)), [*headings][::-1])
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
    first = found[
        (found.stream == found.stream.iloc[0]) & (found.examples == found.examples.iloc[0])
    ]
    # Streams on which a model of most families was run on the same examples.
    has_forest = found.groupby(["stream", "examples"]).method.transform(
        lambda one: _FOREST in set(one)
    )
    accuracy, losses = (beside_best(found, figure).ahead for figure in ("accuracy", "log_loss"))
    shared = found[has_forest]
    n_shared = len(shared.groupby(["stream", "examples"]))
    parts = [
        _INTRODUCTION,
        "![Accuracy and log loss of every model on each stream](images/river-benchmark.svg)\n\n",
        f"Against the best other model of each stream, `online-svm` has a higher accuracy on "
        f"{sum(accuracy > NEAR)} of {len(accuracy)}\n(lower on {sum(accuracy < -NEAR)}) and a "
        f"lower log loss on {sum(losses > NEAR)} (higher on {sum(losses < -NEAR)}). "
        f"A difference of {NEAR} counts as none.\n\n",
        f"Best model of each family, means over {n_shared} streams with the same examples:\n\n",
        *(f"{line}\n" for line in _by_family(shared)),
        f"\nThe same on {first.stream.iloc[0]}, where all models were run:\n\n",
        *(f"{line}\n" for line in _by_family(first)),
        f"\n{_READING}{_METHOD}",
    ]
    return "".join(parts)


def tables(stored: Path = STORED) -> str:
    """Return every figure as the benchmark prints it."""
    return "\n\n".join(map(str, compared(read(stored))))


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page and its picture, or compare them."""
    picture = Picture(PICTURE, STORED, lambda: draw(read()))
    return write_or_check(TARGET, render, __doc__, arguments, picture, tables)


if __name__ == "__main__":
    sys.exit(main())
