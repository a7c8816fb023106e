"""Write docs/own-score-benchmark.md from the stored run of `bench calibration`, or --check it."""

import sys
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path

import orjson
from pandas import DataFrame

from scripts.bench.quality.own_score import (
    FIGURES,
    GOAL_COVERAGE,
    GOAL_NEAR,
    GOAL_SPEED,
    LATE,
    RANGES,
    Goals,
    MethodFigures,
    ScoreCell,
    beside,
    coverage,
    means,
    speed,
    table,
)
from scripts.bench.quality.score_methods import OURS
from scripts.generated_page import decimals, write_or_check
from scripts.generated_page import sections as text_of
from scripts.generated_page import table as lines_of

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "docs" / "own-score-benchmark.md"
STORED = ROOT / "tests" / "data" / "own-score-benchmark.jsonl"

_INTRODUCTION = """\
# Calibration of another model's score, compared

Made by `scripts/make_own_score_page.py` from a stored run, `tests/data/own-score-benchmark.jsonl`,
of

<!-- not run: six minutes -->

```sh
python scripts/bench calibration --jobs 2
```

Measured on 26 November 2026: two noisy cores shared with much other work, at a lowered priority
(`nice -n 10`), one run. Semantics 6, default settings; scikit-learn 1.9.1, venn-abers 1.5.4. After
a first run one rule was changed, and ours was measured again: before there is a model, the stated
probability stands in its place; it had been the base rate.

**How.** Three models of scikit-learn (`HistGradientBoostingClassifier`, `LogisticRegression`,
`MLPClassifier`, on scaled features) are fitted on the first 20 % of each stream, then frozen. Each
method gets their probabilities of the rest, and each label 0, 250 or 2,000 answers after the
example's own. Log loss (p at least 1e-6), Brier score, the root of the debiased squared calibration
error, and microseconds of processor time an example. The first 250 answers are not scored. Until
labels come a method answers the score as it is, or what it begins with.

**Streams**, at most 8,000 examples each, fixed before any result: `elec2` from its first and
`elec2-late` from its 30,000th example, `2cdt` (both in time order); `hyperplane`, `mixed-drift`
(two classes change places every 800 examples) and `agrawal-gradual` (four laws), generated;
`adult-by-age`, every fourth row, the youngest first: adult has no time, so the model knows young
people alone; `bananas` in a random order, which does not drift. Phishing is left out: of its 1,250
examples no label comes 2,000 late. **Not all of them are unseen**: the first weights of the
ensemble were compared on the [28
streams](measured.md#probability-quality-python-scriptsbench-quality) of another benchmark, with
features and no score. `elec2`, `elec2-late`, `bananas`, `2cdt`, `hyperplane` and `mixed-drift` are
among them, and so is adult in a random order; `agrawal-gradual` is not.

**Methods.** Isotonic regression, Platt's sigmoid, temperature, beta calibration (logistic
regression on log p and log(1 - p), without a constraint of sign) and inductive Venn-Abers
prediction (venn-abers) are fitted every 50 examples to a window of the newest labels, and answer
from 1 / (n + 2) to (n + 1) / (n + 2) for n labels, so that isotonic regression has no infinite
loss. Online Platt scaling by online Newton steps, and calibeating in ten bins, are those of [Gupta
and Ramdas (2023)](https://arxiv.org/abs/2305.00070). `online-svm` is a feed with
`scores=probability`: `OnlineCalibrator` gives the same answers if labels come at once; else the
feed has a horizon. "OnlineCalibrator in a loop" learns in batches: of 1,000 that are answered, then
learned; or of 50 that are asked, while those are learned whose labels came. It does not know that
its labels are late.

**Not compared**: river 0.26.1 has no online calibration. MAPIE's calibrators are fitted once, and
its package is none of this project's. The page has no figures of the service.

"""


def read(stored: Path = STORED) -> DataFrame:
    """Return a row for each method of each stored cell."""
    found = {}
    for line in map(orjson.loads, stored.read_bytes().splitlines()):
        cell = ScoreCell(*(line[name] for name in ("stream", "model", "late", "examples")))
        found[cell] = {name: MethodFigures(**one) for name, one in line["measured"].items()}
    return table(dict(sorted(found.items(), key=lambda one: str(one[0]))))


def _per_cent(value: float) -> str:
    return f"{100.0 * value:.0f} %"


def _verdict(reached: bool) -> str:
    return "yes" if reached else "**missed**"


def _goals(whole: DataFrame) -> Iterator[str]:
    lines = []
    for late in LATE:
        found = Goals.of(whole, late)
        lines += [
            [f"{late:,} late: lowest mean log loss", f"{decimals(found.ours)}, best other "
             f"{decimals(found.best_other)}", _verdict(found.ours <= found.best_other)],
            [f"{late:,} late: best or within .002 on {GOAL_NEAR} of 24 pairs",
             f"{found.n_near} of {found.n_pairs}", _verdict(found.n_near >= GOAL_NEAR)],
            [f"{late:,} late: coverage at least {_per_cent(GOAL_COVERAGE)} in each range",
             f"{_per_cent(found.least_coverage)} at least",
             _verdict(found.least_coverage >= GOAL_COVERAGE)],
        ]  # fmt: skip
    rate = speed(whole)
    lines.append([f"{GOAL_SPEED:,} examples a second of processor time, in batches of 1,000",
                  f"{rate:,.0f}", _verdict(rate >= GOAL_SPEED)])  # fmt: skip
    yield from lines_of(["goal", "measured", "reached"], lines)


def _means(whole: DataFrame, late: int) -> Iterator[str]:
    lines = [
        [str(name), *map(decimals, one[FIGURES[:-1]]), f"{one.microseconds:,.0f}"]
        for name, one in means(whole, late).iterrows()
    ]
    yield from lines_of(["", "log loss", "Brier", "calibration error", "us"], lines)


def _pairs(whole: DataFrame, late: int) -> Iterator[str]:
    lines = [
        [f"{stream}, {model}", decimals(one.raw), decimals(one.ours),
         f"{decimals(one.other)} ({one.best})", "yes" if one.near else "**no**"]
        for (stream, model), one in beside(whole, late).iterrows()
    ]  # fmt: skip
    yield from lines_of(["", "score", "ours", "best other", "best or near"], lines)


def _covered(whole: DataFrame) -> Iterator[str]:
    columns = [coverage(whole, late) for late in LATE]
    ranges = pairwise(RANGES)
    ours = whole[whole.method == OURS]
    widths = [decimals(ours[ours.late == late].width.mean()) for late in LATE]
    lines = [
        [
            f"{low:g} to {high:g}",
            *(f"{_per_cent(h)}, {_per_cent(f)} ({n:,.0f})" if n else "-" for n, h, f in of),
        ]
        for (low, high), of in zip(ranges, zip(*columns, strict=True), strict=True)
    ]
    lines.append(["mean width", *widths])
    yield from lines_of(["p", *(f"{late:,} late" for late in LATE)], lines)


_GOALS = """\
**Why it is ahead without delay**: a feed also uses the labels just before an example, the others
its score alone. So the gain is large where labels resemble the ones before: `elec2`, `elec2-late`,
`2cdt`, `mixed-drift`. On the others the best other method is within .01, except on `bananas` with
logistic regression: no straight line separates its classes, so the probability is no monotone
function of the score. The map of a feed need not be monotone.

**With late labels others are often better.** The weights of the experts are as old as the labels,
and move slowly, so the interval holds less, too. Without `2cdt`, isotonic regression on the last
5,000 has the lowest mean at 250 (.546, ours .549). "OnlineCalibrator in a loop" takes late labels
for recent ones, and is worse than the feed: with late labels, use a feed with a horizon."""
_BESIDE = "The best of all other methods on one pair is a choice after the fact, so a hard rival."
_COVERED = """\
Nominal 90 %. The answers of a pair are in 15 bins of equal count by p; a bin counts as covered if
its frequency is between the means of its intervals' ends, and belongs to the range of its mean p.
First the share of examples in covered bins, then that of perfect probabilities, which chance keeps
below 1, in brackets the examples. The truth of a single example is unknown here: the [simulated
streams](measured.md#intervals) know it."""


def render(stored: Path = STORED) -> str:
    """Return the page."""
    whole = read(stored)
    sections = {"Goals": iter([*_goals(whole), "", _GOALS])}
    for late in LATE:
        sections[f"Labels {late:,} late: means over the pairs"] = _means(whole, late)
    sections["Coverage of the interval"] = iter([_COVERED, "", *_covered(whole)])
    for late in LATE:
        lines = [_BESIDE, "", *_pairs(whole, late)]
        sections[f"Labels {late:,} late: log loss of each pair"] = iter(lines)
    return _INTRODUCTION + text_of(sections)


main = partial(write_or_check, TARGET, render, __doc__)


if __name__ == "__main__":
    sys.exit(main())
