"""Write docs/own-score-benchmark.md from the stored run of its benchmark, or --check it."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from pandas import DataFrame

from scripts.bench.kept import stored_rows
from scripts.bench.quality.own_score import (
    GOAL_COVERAGE,
    GOAL_NEAR,
    GOAL_SPEED,
    LATE,
    beside,
    compared,
    means,
    reached,
    speed,
    with_calibration_error,
)
from scripts.bench.quality.score_methods import LOOP
from scripts.generated_page import (
    OTHER_COLOUR,
    OURS_COLOUR,
    Picture,
    decimals,
    lines_of,
    write_or_check,
)

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "docs" / "own-score-benchmark.md"
STORED = ROOT / "tests" / "data" / "own-score-benchmark.jsonl"

PICTURE = ROOT / "docs" / "images" / "own-score-benchmark.svg"

_INTRODUCTION = """\
# Calibration of another model's score, compared

A feed with `scores=probability` next to other ways to calibrate the probabilities of a frozen model
as labels come: 3 models on 8 streams, labels 0, 250 or 2,000 examples late.

![Log loss of ours and of the best other method, for each pair](images/own-score-benchmark.svg)

Each dot is a pair of model and stream; below the line ours is better. The best other method of a
pair is a choice after the fact.

"""
_READING = """\
**Why it leads without delay**: a feed also uses the labels just before an example, the others its
score alone. So the gain is large where labels resemble the ones before (`elec2`, `2cdt`,
`mixed-drift`). Elsewhere the best other method is within .01, except on `bananas` with logistic
regression, where the probability is not monotone in the score.

**With late labels others are sometimes better**, because the weights of the experts are as old as
the labels: by up to .07 on `mixed-drift`, .05 on `adult-by-age`, .04 on `elec2`. Before the first
label a feed says nearly what the score states, with a tenth of the base rate, which costs .015
where the score was right. `OnlineCalibrator` in a loop takes late labels for recent ones: use a
feed with a horizon.

## How it was run

<!-- not run: six minutes -->

```sh
python scripts/bench quality --set score --jobs 2
python -m scripts.make_own_score_page --all
```

The last command prints every stored figure (`tests/data/own-score-benchmark.jsonl`).

- **Machine**: 29 November 2026, two noisy cores shared with much other work, one run,
  default settings, scikit-learn 1.9.1, venn-abers 1.5.4.
- **Models**: `HistGradientBoostingClassifier`, `LogisticRegression` and `MLPClassifier`, fitted on
  the first fifth of a stream, then frozen. 250 answers are not scored.
- **Streams**, at most 8,000 examples, fixed before any result: `elec2`, `elec2-late` (from its
  30,000th example), `2cdt`, `hyperplane`, `mixed-drift`, `agrawal-gradual`, `adult-by-age` (the
  youngest first) and `bananas`, which does not drift. The first weights of the ensemble were chosen
  on most of them without a score, that of the score on all of them, with late labels.
- **Methods**: all but online Platt scaling and calibeating ([Gupta and Ramdas,
  2023](https://arxiv.org/abs/2305.00070)) are fitted every 50 examples to the last n labels, and
  answer at least 1 / (n + 2).
- **Coverage** of the interval, nominal 90 %: share of examples in bins whose frequency lies within
  the mean interval, for the range of p with the least; by chance perfect ones have 84 to 97 % below
  .03 and above .97. On [simulated streams](measured.md#intervals) the truth is known.
"""


def read(stored: Path = STORED) -> DataFrame:
    """Return a row for each method of each stored cell."""
    return with_calibration_error(DataFrame(stored_rows(stored)))


def _per_cent(value: float) -> str:
    return f"{100.0 * value:.0f} %"


def _goals(whole: DataFrame) -> Iterator[str]:
    lines = []
    for late in LATE:
        n_pairs, n_near, least = reached(whole, late)
        is_near, is_covered = n_near >= GOAL_NEAR, least >= GOAL_COVERAGE
        lines.append(
            [f"{late:,} late", f"{n_near} of {n_pairs}{_missed(is_near)}",
             f"{_per_cent(least)}{_missed(is_covered)}"]
        )  # fmt: skip
    heading = ["labels", f"best or within .002 (goal {GOAL_NEAR})",
               f"least coverage (goal {_per_cent(GOAL_COVERAGE)})"]  # fmt: skip
    yield from lines_of(heading, lines)
    rate = speed(whole)
    yield (
        f"\nIn batches of 1,000 it takes {rate:,.0f} examples a second (goal {GOAL_SPEED:,}"
        f"{_missed(rate >= GOAL_SPEED)})."
    )


def _missed(is_reached: bool) -> str:
    return "" if is_reached else ", **missed**"


FAMILIES = ("online-svm", "online Platt", "isotonic", "Venn-Abers", "Platt", "beta", "temperature",
            "score")  # fmt: skip
"""The first words of the names of methods; a family has its best one on the page."""


def _best_means(whole: DataFrame) -> Iterator[str]:
    """Yield the means of the method of each family that has the lowest one over all labels."""
    by_late = {late: means(whole, late) for late in LATE}
    of_all = sum(one.log_loss for one in by_late.values()).drop(LOOP)
    lines = []
    for family in FAMILIES:
        name = of_all[[one for one in of_all.index if one.startswith(family)]].idxmin()
        losses = [decimals(one.log_loss[name]) for one in by_late.values()]
        now = by_late[0].loc[name]
        lines.append([name, *losses, decimals(now.calibration_error)])
    heading = ["log loss", *(f"{late:,} late" for late in LATE), "calibration error, 0 late"]
    yield from lines_of(heading, lines)


def draw(whole: DataFrame) -> Any:
    """Return a picture: for each lateness the log loss of ours over the best other method's."""
    made, panels = plt.subplots(
        1, len(LATE), figsize=(8.0, 2.9), sharex=True, sharey=True, layout="constrained"
    )
    for axes, late in zip(panels, LATE, strict=True):
        pairs = beside(whole, late)
        axes.plot([0, 1.5], [0, 1.5], color=OTHER_COLOUR, linewidth=0.8)
        axes.plot(pairs.best, pairs.ours, "o", color=OURS_COLOUR, markersize=4)
        axes.set_title(f"labels {late:,} late", fontsize=9)
        axes.set_xlabel("best other method")
    panels[0].set_ylabel("log loss of ours")
    return made


def render(stored: Path = STORED) -> str:
    """Return the page."""
    whole = read(stored)
    best = "Means of the best method of each kind:"
    lines = [*_goals(whole), "", best, "", *_best_means(whole), ""]
    return _INTRODUCTION + "\n".join(lines) + "\n" + _READING


def tables(stored: Path = STORED) -> str:
    """Return every figure as the benchmark prints it."""
    return "\n\n".join(map(str, compared(read(stored))))


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page and its picture, or compare them."""
    picture = Picture(PICTURE, STORED, lambda: draw(read()))
    return write_or_check(TARGET, render, __doc__, arguments, picture, tables)


if __name__ == "__main__":
    sys.exit(main())
