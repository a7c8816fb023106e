"""River's benchmark as river runs it: its tracks and metrics, in the order of the file."""

# mypy: allow-untyped-calls
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any

import typer
from river import datasets, evaluate, metrics
from river.datasets import synth
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # ships no types

from online_svm.metrics.scores import MIN_SCORED_PROBABILITY
from scripts.bench import kept
from scripts.bench.kept import StreamCell
from scripts.bench.quality.river_models import HEAVY, LOGISTIC, MODELS, WITHOUT_PROBABILITIES
from scripts.bench.quality.streams import Pairs
from scripts.bench.report import Result, Values
from scripts.command_line import chosen, tell
from workers.cli.common import DataDir, note
from workers.push.datasets import load

CHECKPOINT_EXAMPLES = 2500  # examples between two checkpoints
PARTS = 4  # laws of a generated stream that changes, each for a quarter of it
GRADUAL_SHARE = 0.05  # of a stream: the width of a gradual change
NOISE = 0.1  # share of wrong labels, or of inverted segments
ELEC2_COLUMNS = ("period", "nswprice", "nswdemand", "vicprice", "vicdemand", "transfer")


def _of_river(name: str) -> Callable[[Path | None, int], Pairs]:
    return lambda _, n: list(islice(getattr(datasets, name)(), n))


def _elec2(data_dir: Path | None, n: int) -> Pairs:
    """Return river's Elec2 without date and day; True is up."""
    data = load("elec2", data_dir)
    rows = zip(data.X[:n].tolist(), data.y[:n], strict=True)
    return [(dict(zip(ELEC2_COLUMNS, x, strict=True)), str(y) == "1") for x, y in rows]


RECORDED = {
    "Phishing": (_of_river("Phishing"), 1250),
    "Bananas": (_of_river("Bananas"), 5300),
    "ImageSegments": (_of_river("ImageSegments"), 2310),
    "Elec2": (_elec2, 45_312),
}
"""Streams of river's tracks: a reader, and the number of examples."""


def _abrupt(part_of: Callable[[int], Any], n: int) -> Iterator[Any]:
    """Return four laws, one after the other."""
    return chain.from_iterable(islice(part_of(part), -(-n // PARTS)) for part in range(PARTS))


def _gradual(part_of: Callable[[int], Any], n: int) -> Any:
    """Return four laws; around each quarter the next one comes more and more often."""
    found = part_of(0)
    for part in range(1, PARTS):
        options = {"position": part * n // PARTS, "width": int(GRADUAL_SHARE * n), "seed": part}
        found = synth.ConceptDriftStream(found, part_of(part), **options)
    return found


def _agrawal(part: int) -> Any:
    return synth.Agrawal(part, seed=part, perturbation=0.05)


def _led(part: int) -> Any:
    """Return a display with 17 segments that say nothing; 1, 3, 5, then 7 have changed places."""
    return synth.LEDDrift(part, NOISE, irrelevant_features=True, n_drift_features=2 * part + 1)


def _clusters(speed: float) -> Callable[[int], Any]:
    return lambda _: synth.RandomRBFDrift(
        42, 42, n_classes=5, n_features=10, n_centroids=50, change_speed=speed, n_drift_centroids=50
    )


GENERATED: dict[str, Callable[[int], Any]] = {
    "AGR_a": partial(_abrupt, _agrawal),
    "AGR_g": partial(_gradual, _agrawal),
    "SEA": partial(_abrupt, lambda part: synth.SEA(part, NOISE, part)),
    "RTG": lambda _: synth.RandomTree(42, 42),
    "RBF_m": _clusters(0.0001),
    "RBF_f": _clusters(0.001),
    "LED_a": partial(_abrupt, _led),
    "LED_g": partial(_gradual, _led),
}
"""From the number of examples; the generators of MOA as river has them."""

STREAMS = (*RECORDED, *GENERATED)


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
    names = chosen("--streams", streams, ",", STREAMS)
    methods = chosen("--rows", rows, ";", tuple(MODELS))

    def limit(name: str, method: str) -> int:
        if name in GENERATED:
            return examples
        whole = RECORDED[name][1]
        return min(whole, heavy_examples or whole) if method in HEAVY else whole

    cells = [
        StreamCell(name, 0, method, limit(name, method), data_dir)
        for method in methods
        for name in names
    ]
    found = kept.measured_cells(cells, measure, list[Checkpoint], results, jobs)
    for cell, one in found.items():
        if isinstance(one, str):
            note(f"{cell.stream}, {cell.method}: not run: {one}")
    yield from compared(
        {(c.stream, c.method): o for c, o in found.items() if not isinstance(o, str)}
    )


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What river's metrics say after so many examples of a stream."""

    examples: int
    seconds: float  # of processor time, with all threads of the process
    metrics: dict[str, float]  # by the names of river's classes


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


def measure(cell: StreamCell) -> list[Checkpoint]:
    """Run a cell."""
    assert cell.examples is not None
    pairs = stream(cell.stream, cell.examples, cell.data_dir)
    labels = sorted({y for _, y in pairs})
    with threadpool_limits(1):  # threads that wait for a processor would slow each other down
        model = MODELS[cell.method](labels)
        has_probabilities = cell.method not in WITHOUT_PROBABILITIES
        return list(validated(model, pairs, len(labels), has_probabilities, str(cell)))


def stream(name: str, examples: int, data_dir: Path | None = None) -> Pairs:
    """Return the first examples of a stream, as pairs of features and label."""
    if name in RECORDED:
        return RECORDED[name][0](data_dir, examples)
    drawn = islice(GENERATED[name](examples), examples)
    # Names are texts: river's stacking sorts them together with its own.
    return [({str(key): value for key, value in x.items()}, y) for x, y in drawn]


def validated(
    model: Any, pairs: Pairs, n_classes: int, has_probabilities: bool = True, name: str = ""
) -> Iterator[Checkpoint]:
    """Yield the metrics of the track at each checkpoint and at the end, with kappa and log loss."""
    binary, many = evaluate.BinaryClassificationTrack, evaluate.MultiClassClassificationTrack
    of_track = (binary if n_classes == 2 else many)().metric
    further = [metrics.CohenKappa(), *[ClippedLogLoss()][:has_probabilities]]
    metric = metrics.base.Metrics([*of_track, *further])
    begin = time.process_time()
    for state in evaluate.iter_progressive_val_score(
        pairs, model, metric, step=min(CHECKPOINT_EXAMPLES, len(pairs))
    ):
        reached = {type(one).__name__: float(one.get()) for one in metric}
        seconds = time.process_time() - begin
        tell(f"{name}: {state['Step']:,} of {len(pairs):,}")
        yield Checkpoint(state["Step"], seconds, reached)


def compared(found: Mapping[tuple[str, str], Sequence[Checkpoint]]) -> Iterator[Result]:
    """Yield the figures at the end of each run, with the cost relative to logistic regression."""
    for (name, method), run in found.items():
        values = figures(run[-1], found.get((name, LOGISTIC), ()))
        shown = "".join(f"{_shown(values[key]):>10}" for key in SHOWN)
        line = f"{name:<14}{method:<34}{run[-1].examples:>7,}{shown}"
        yield Result({"stream": name, "method": method} | values, [line])


SHOWN = {"accuracy": "Accuracy", "f1": "F1", "kappa": "CohenKappa", "log_loss": "ClippedLogLoss",
         "cost": None}  # fmt: skip
"""Figures by river's name; F1 of more classes is the mean over them."""


def figures(at: Checkpoint, logistic: Sequence[Checkpoint]) -> Values:
    """Return the figures at a checkpoint; `cost` is relative to logistic regression at the same."""
    reached = {"F1": at.metrics.get("MacroF1")} | at.metrics
    values: Values = {key: reached.get(name) for key, name in SHOWN.items() if name}
    peers = [one.seconds for one in logistic if one.examples == at.examples]
    cost = at.seconds / peers[0] if peers else None
    microseconds = 1e6 * at.seconds / at.examples
    return {"examples": at.examples, **values, "microseconds": microseconds, "cost": cost}


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}" if value < 2.0 else f"{value:,.1f}"
