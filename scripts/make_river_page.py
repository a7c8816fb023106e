"""Write docs/river-benchmark.md from the stored figures of `bench river`; --check only compares."""

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import orjson

from scripts.bench.quality.river_models import LOGISTIC, MODELS, OURS, OURS_DECLARED
from scripts.bench.quality.river_track import GENERATED, RECORDED, STREAMS, Checkpoint, figures
from scripts.bench.report import Values
from scripts.generated_page import decimals, sections, table, write_or_check

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "docs" / "river-benchmark.md"
STORED = ROOT / "tests" / "data" / "river-benchmark.jsonl"

_INTRODUCTION = """\
# River's benchmark

Made by `scripts/make_river_page.py` from stored runs, `tests/data/river-benchmark.jsonl`, of

<!-- not run: hours -->

```sh
python scripts/bench river --streams Elec2 --heavy-examples 5000
python scripts/bench river --examples 5000 --streams \\
  Phishing,Bananas,ImageSegments,AGR_a,AGR_g,SEA,RTG,RBF_m,RBF_f,LED_a,LED_g
```

The command continues where it stopped. A dash is a run that was not made, or a figure that a model
does not have. Measured on 26 November 2026: two noisy cores shared with much other work, at a low
priority (`nice -n 10`), one run of each model, semantics 6; river is 0.26.1,
CapyMOA 0.15.1 on Java 17.

**How.** [River's own benchmark](https://riverml.xyz/latest/benchmarks/Binary%20classification/):
its progressive validation (`evaluate.iter_progressive_val_score`) with the metrics of its tracks
for binary and multiclass classification, in the order of the file. Every model answers an example,
then learns it. An empty answer is not scored, as river has it. Kappa is river's `CohenKappa`. Log
loss takes probabilities of at least 1e-6; river's own counts a label that an answer leaves out as
predicted with certainty. `python scripts/bench river` also prints F1, and with `--json` all
figures.

**Models.** Those of river's published table with its settings, and BOLE on Hoeffding trees. Left
out are Torch and Vowpal Wabbit. Its logistic regression is for two classes; for more it is one
against the rest here. Streaming Random Patches has a seed, which river does not give. `online-svm`
is `online_svm.river.OnlineClassifier()`; it discovers its labels as most models do. The models for
two classes know theirs, so a second row declares them. CapyMOA's models have its defaults: 100
trees, where river's forests have 10.

**Streams.** Phishing, Bananas and ImageSegments come with river. Elec2 is the same file without
date and day, six columns of eight, so that its figures are not those of river's table. SMTP,
Insects and Keystroke need a download, and were not run. The generated streams are MOA's generators
as river has them, 5,000 examples, where papers use a million: their figures are no comparison with
papers. `AGR` (functions 0 to 3, perturbation .05), `SEA` (variants 0 to 3, noise .1) and `LED`
(noise .1, 17 irrelevant features; 1, 3, 5, 7 that change places) have four laws, a quarter of the
stream each: abrupt (`_a`, `SEA`) or over 5 % of the stream (`_g`). `RBF` has 50 moving centroids
and five classes, at a speed of .0001 (`_m`) or .001 (`_f`). `RTG` is a random tree and does not
change.

**Published by river**, the best accuracy of its table: Phishing .9135 (Streaming Random Patches),
Bananas .8894 and ImageSegments .9017 (Aggregated Mondrian Forest), Elec2 with all eight columns
.9064 (ALMA). Models without chance reach their published accuracy here: logistic regression and
ALMA have .8872 and .8256 on Phishing (`tests/scripts/bench/quality/test_river_track.py`). Forests
differ, since the published table is of an earlier version: the Mondrian forest has .7045 here on
Bananas, and .9420 on ImageSegments.

A heading has the stream and the number of examples; bold is the best.

"""

Column = tuple[str, int]  # a stream and a number of its examples
Table = dict[Column, dict[str, Values]]
Write = Callable[[float], str]
Figure = tuple[str, Write, int]  # its name, how it is written, 1 if more is better

NEAR = 0.003  # a difference up to this counts as none


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


def _decimals(value: float) -> str:
    return decimals(value) if value < 1.0 else f"{value:.3f}"


def _times(value: float) -> str:
    return f"{value:.1f}" if value < 10.0 else f"{value:,.0f}"


ACCURACY, KAPPA = ("accuracy", _decimals, 1), ("kappa", _decimals, 1)
LOG_LOSS, COST = ("log_loss", _decimals, -1), ("cost", _times, 0)


def _table(found: Table, figure: Figure) -> Iterator[str]:
    """Yield the lines of a table: a row a model, a column a stream; the best is bold."""
    name, write, sign = figure
    columns, rows = list(found), []
    best = [
        found[column].get(_best(found[column], figure) or "", {}).get(name) for column in columns
    ]
    for method in MODELS:
        values = [found[column].get(method, {}).get(name) for column in columns]
        if any(value is not None for value in values):
            pairs = zip(values, best, strict=True)
            shown = [_cell(value, most, write, is_bold=sign != 0) for value, most in pairs]
            rows.append([method.removeprefix("river "), *shown])
    yield from table(["", *map(_heading, columns)], rows)


def _cell(value: float | None, best: float | None, write: Write, *, is_bold: bool) -> str:
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


def _verdicts(found: Table) -> Iterator[str]:
    """Yield a table of ours beside the best other model of each stream."""
    rows = [
        [_heading(column), *_beside(of_column, ACCURACY), *_beside(of_column, LOG_LOSS)]
        for column, of_column in found.items()
        if OURS in of_column
    ]
    yield from table(["", "accuracy", "best other", "", "log loss", "best other", ""], rows)


def _beside(of_column: dict[str, Values], figure: Figure) -> list[str]:
    name, write, sign = figure
    best = _best(of_column, figure, ours=False)
    if best is None:
        return ["-"] * 3
    ours, other = of_column[OURS][name], of_column[best][name]
    ahead = sign * (ours - other)
    verdict = "**better**" if ahead > NEAR else "**worse**" if ahead < -NEAR else "near"
    return [write(ours), f"{write(other)} ({best.removeprefix('river ')})", verdict]


def render(stored: Path = STORED) -> str:
    """Return the page."""
    found = read(stored)
    recorded = {column: one for column, one in found.items() if column[0] in RECORDED}
    generated = {column: one for column, one in found.items() if column[0] in GENERATED}
    texts = {
        "Beside the best other model": [_BESIDE, "", *_verdicts(found)],
        "River's streams: accuracy": [*_table(recorded, ACCURACY)],
        "River's streams: kappa": [*_table(recorded, KAPPA)],
        "River's streams: log loss": [*_table(recorded, LOG_LOSS)],
        "Generated streams: accuracy": [*_table(generated, ACCURACY)],
        "Generated streams: kappa": [*_table(generated, KAPPA)],
        "Generated streams: log loss": [*_table(generated, LOG_LOSS)],
        "Cost": [_COST, "", *_table(found, COST)],
    }
    missing = ", ".join(one for one in STREAMS if one not in dict(found.keys()))
    return _INTRODUCTION + (f"Not run yet: {missing}.\n\n" if missing else "") + sections(texts)


_BESIDE = """\
`online-svm` with its defaults beside the best of the other models that were run on the same
examples; a difference of at most .003 is "near". **Where the tables below have dashes, stronger
models are missing**: on Elec2 and the generated streams few ensembles were run. The headline also
uses the labels just before an example; the other models, except Last Class, use features alone."""

_COST = """\
Processor time relative to river's logistic regression on the same examples, of all threads
(CapyMOA: with those of Java, which compiles while it runs). On a machine that does other work it
wavers by a third or more."""


main = partial(write_or_check, TARGET, render, __doc__)


if __name__ == "__main__":
    sys.exit(main())
