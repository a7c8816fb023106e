"""River's benchmark as river runs it: its tracks and metrics, in the order of the file."""

# mypy: allow-untyped-calls
import math
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from pandas import DataFrame
from river import evaluate, metrics
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # ships no types

from online_svm.metrics.scores import MIN_SCORED_PROBABILITY
from scripts.bench import kept
from scripts.bench.kept import Cell
from scripts.bench.quality.compared import best_others, records
from scripts.bench.quality.river_models import (
    HEAVY,
    LOGISTIC,
    MODELS,
    OURS,
    WITHOUT_PROBABILITIES,
)
from scripts.bench.quality.streams import RIVER, Pairs, pairs
from scripts.bench.report import Result, Values
from scripts.command_line import DataDir, chosen, tell

CHECKPOINT_EXAMPLES = 2500  # examples between two checkpoints
NEAR = 0.003  # a difference up to this counts as none

FIGURES = {
    "accuracy": ("Accuracy", 1),
    "log_loss": ("ClippedLogLoss", -1),
}
"""Figures by river's names, and 1 if more is better."""


def run(
    streams: kept.Names = None,
    rows: kept.NamesWithCommas = None,
    examples: Annotated[int, typer.Option(min=100, help="Of each generated stream.")] = 20_000,
    heavy_examples: Annotated[
        int | None,
        typer.Option(min=100, help="Of each recorded stream, for models of over .5 ms."),
    ] = None,
    jobs: kept.Jobs = 1,
    results: kept.ResultsFile = Path("river.jsonl"),
    data_dir: DataDir = None,
) -> Iterator[Result]:
    """Run the models of river's published benchmark, three of CapyMOA and ours in river's tracks.

    Streams in the order of the file, each example answered before it is learned, by river's
    progressive validation: accuracy, F1, kappa, log loss, and processor time relative to river's
    logistic regression on the same examples. Elec2 has no date and day.
    """
    names = chosen("--streams", streams, ",", tuple(RIVER))
    methods = chosen("--rows", rows, ";", tuple(MODELS))

    def limit(name: str, method: str) -> int:
        if RIVER[name].order == "drawn":
            return examples
        whole = RIVER[name].limit
        return min(whole, heavy_examples or whole) if method in HEAVY else whole

    cells = [
        Cell(stream=name, method=method, examples=limit(name, method), data_dir=data_dir)
        for name in names
        for method in methods
    ]
    found = kept.measured_cells(cells, measure, results, jobs)
    if not found.empty:
        yield from compared(at_ends(found))


def at_ends(found: DataFrame) -> DataFrame:
    """Return the figures where the run of a model ends, of every model of the stream.

    The cost is relative to logistic regression on the same examples.
    """
    same = ["stream", "examples"]
    logistic = found[found.method == LOGISTIC].drop_duplicates(same).set_index(same).seconds
    peers = logistic.reindex(found.set_index(same).index).to_numpy()
    lengths = found.groupby(["stream", "method"]).examples.max().reset_index()[same]
    found = found.assign(cost=found.seconds / peers, us=1e6 * found.seconds / found.examples)
    return found.merge(lengths.drop_duplicates())


def compared(whole: DataFrame) -> Iterator[Result]:
    """Yield the figures; and ours beside the best other model of each stream."""
    yield Result(records(whole[["stream", "method", "examples", *FIGURES, "us", "cost"]]))
    for figure in FIGURES:
        beside = beside_best(whole, figure).reset_index()
        yield Result(records(beside), figure.replace("_", " "))


def beside_best(whole: DataFrame, figure: str) -> DataFrame:
    """Return ours and the best other model for each stream and number of examples."""
    table = whole.pivot_table(figure, ["stream", "examples"], "method", sort=False)
    return best_others(table, OURS, NEAR, FIGURES[figure][1])


class ClippedLogLoss(metrics.base.MeanMetric, metrics.base.MultiClassMetric):
    """Mean -log p of the label, p at least 1e-6. River's own takes p = 1 for a label left out.

    >>> metric = ClippedLogLoss()
    >>> metric.update("a", {"a": 0.5, "b": 0.5})
    >>> round(metric.get(), 4)
    0.6931
    """

    bigger_is_better = False
    requires_labels = False

    def _eval(self, y_true: Any, y_pred: Mapping[Any, float]) -> float:
        total = math.fsum(y_pred.values())
        share = y_pred.get(y_true, 0.0) / total if total > 0.0 else 1.0 / max(1, len(y_pred))
        return -math.log(max(share, MIN_SCORED_PROBABILITY))


def measure(cell: Cell) -> list[Values]:
    """Run a cell."""
    assert cell.examples is not None
    examples = pairs(cell.stream, cell.examples, cell.data_dir)
    labels = sorted({y for _, y in examples})
    with threadpool_limits(1):  # threads that wait for a processor would slow each other down
        model = MODELS[cell.method](labels)
        has_probabilities = cell.method not in WITHOUT_PROBABILITIES
        return list(validated(model, examples, len(labels), has_probabilities, str(cell)))


def validated(
    model: Any, examples: Pairs, n_classes: int, has_probabilities: bool = True, name: str = ""
) -> Iterator[Values]:
    """Yield the metrics of the track at each checkpoint and at the end, with kappa and log loss.

    `seconds` is the processor time of all threads of the process.
    """
    binary, many = evaluate.BinaryClassificationTrack, evaluate.MultiClassClassificationTrack
    of_track = (binary if n_classes == 2 else many)().metric
    further = [metrics.CohenKappa(), *[ClippedLogLoss()][:has_probabilities]]
    metric = metrics.base.Metrics([*of_track, *further])
    begin = time.process_time()
    for state in evaluate.iter_progressive_val_score(
        examples, model, metric, step=min(CHECKPOINT_EXAMPLES, len(examples))
    ):
        reached = {type(one).__name__.removeprefix("Macro"): float(one.get()) for one in metric}
        seconds = time.process_time() - begin
        tell(f"{name}: {state['Step']:,}")
        values = {key: reached.get(name) for key, (name, _) in FIGURES.items()}
        yield {"examples": state["Step"], "seconds": seconds} | values
