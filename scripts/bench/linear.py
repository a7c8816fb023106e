"""The linear machine on a feature map: as good as the kernel machine of the window, flat in n.

Quality is that of the headline, each example answered before it is learned; the first 250
are not scored. Cost is processor time of answering and learning, refits included, in one process.
"""

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from typing_extensions import override

from online_svm.config import PredictorConfig
from online_svm.metrics.scores import accuracy, log_loss
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.types import Floats, Ints
from scripts.bench.quality.answers import EVERY
from scripts.bench.quality.ours import ours
from scripts.bench.report import Result, Tell, silent
from workers.push.datasets import load

FeatureMap = Literal["nystroem", "fourier"]

STREAMS: dict[str, tuple[str, int | None]] = {  # in the order of the files
    "Adult": ("adult", None),
    "Elec2, first 10,000": ("elec2", 10_000),
    "Elec2": ("elec2", None),
}
TOLERATED = 0.02  # relative loss against the kernel machine
FEATURES = 20
BATCH = 250  # examples at a time; each stretch that is timed holds the same number of refits
STRETCH, REPEATS = 1000, 5  # the best of them counts, so that other work matters less
SIZES = (10_000, 100_000, 1_000_000)
PEER_SIZE = 10_000  # where the kernel machine's cost is measured; its window bounds it as well


@dataclass(frozen=True, slots=True)
class Ratio(Result):
    """One figure of ours beside a peer's.

    Attributes
    ----------
    name : str
    ours, peer : float
    unit : str
        Empty, or "us" for microseconds an example.
    bound : str
        What the ratio is meant to keep, such as ">= 0.98"; empty where nothing is asked.
    """

    name: str
    ours: float
    peer: float
    unit: str = ""
    bound: str = ""

    @property
    def ratio(self) -> float:
        """Ours over the peer's.

        Examples
        --------
        >>> Ratio("log loss", 0.5, 0.4).ratio
        1.25
        """
        return self.ours / self.peer

    @override
    def plain(self) -> dict[str, Any]:
        return asdict(self) | {"ratio": self.ratio}

    def __str__(self) -> str:
        digits = 2 if self.unit else 4
        values = f"{self.ours:>10.{digits}f} {self.peer:>10.{digits}f} {self.unit:<2}"
        return f"{self.name:<58}{values} {self.ratio:>8.3f}  {self.bound}".rstrip()


def run(
    examples: int = SIZES[-1],
    feature_map: FeatureMap = "nystroem",
    data_dir: Path | str | None = None,
    tell: Tell = silent,
) -> Iterator[Ratio]:
    """Measure quality, then cost up to so many examples, and yield each ratio as it is there.

    Raises
    ------
    DataNotFound
        If a data file is missing.
    """
    for name in STREAMS:
        tell(f"quality on {name}")
        yield from quality(name, feature_map, data_dir)
    tell(f"cost of {examples:,} examples")
    yield from cost(examples, feature_map)


def quality(
    name: str,
    feature_map: FeatureMap = "nystroem",
    data_dir: Path | str | None = None,
    limit: int | None = None,
) -> list[Ratio]:
    """Return accuracy and log loss over those of the default configuration, on one stream.

    Parameters
    ----------
    name : str
        One of `STREAMS`.
    feature_map : {"nystroem", "fourier"}
    data_dir : path, optional
        Where the data files are; see `workers.push.datasets.data_directory`.
    limit : int, optional
        Examples to use; as the name says without it.
    """
    file, count = STREAMS[name]
    data = load(file, data_dir)
    codes = np.unique(data.y, return_inverse=True)[1].astype(np.int64)[: limit or count]
    X = data.X[: len(codes)]
    linear = _scores(X, codes, learner="linear", feature_map=feature_map)
    kernel = _scores(X, codes, committee="single")
    bounds = (f">= {1 - TOLERATED:.2f}", f"<= {1 + TOLERATED:.2f}")
    return [
        Ratio(f"{name}: {measure} / kernel machine", linear[k], kernel[k], bound=bounds[k])
        for k, measure in enumerate(("accuracy", "log loss"))
    ]


def cost(examples: int, feature_map: FeatureMap = "nystroem") -> Iterator[Ratio]:
    """Yield the cost of an example at 10 thousand, and at more over that at 10 thousand."""
    linear = PredictorConfig(classes=("a", "b"), learner="linear", feature_map=feature_map)
    sizes = [size for size in SIZES if size <= examples]
    kernel = dict(costs(PredictorConfig(classes=("a", "b"), committee="single"), [PEER_SIZE]))[
        PEER_SIZE
    ]
    first = None
    for size, seconds in costs(linear, sizes):
        if first is None:
            first = seconds
            yield _per_example(f"an example, after {size:,} / kernel machine", seconds, kernel)
        else:
            yield _per_example(f"an example, after {size:,} / {sizes[0]:,}", seconds, first)


def costs(config: PredictorConfig, sizes: list[int]) -> Iterator[tuple[int, float]]:
    """Yield each size with the seconds an example cost in the best of the stretches before it.

    Examples
    --------
    >>> config = PredictorConfig(classes=("a", "b"), window=100)
    >>> [size for size, seconds in costs(config, [5000]) if seconds > 0]
    [5000]
    """
    predictor, generator = OnlinePredictor(config), np.random.default_rng(0)
    for size in sizes:
        while predictor.n < size - REPEATS * STRETCH:
            predictor.step_many(*_examples(generator))
        yield size, min(_stretch(predictor, generator) for _ in range(REPEATS)) / STRETCH


def _stretch(predictor: OnlinePredictor, generator: np.random.Generator) -> float:
    """Return the processor seconds of the next `STRETCH` examples."""
    batches = [_examples(generator) for _ in range(STRETCH // BATCH)]
    began = time.process_time()
    for X, labels in batches:
        predictor.step_many(X, labels)
    return time.process_time() - began


def _per_example(name: str, seconds: float, peer: float) -> Ratio:
    return Ratio(name, 1e6 * seconds, 1e6 * peer, unit="us")


def _examples(generator: np.random.Generator) -> tuple[Floats, list[str]]:
    """Return the next examples of two overlapping classes."""
    codes = generator.integers(0, 2, BATCH)
    X = generator.normal(size=(BATCH, FEATURES)) + 0.5 * codes[:, None]
    return X, ["ab"[code] for code in codes.tolist()]


def _scores(X: Floats, codes: Ints, **changes: Any) -> tuple[float, float]:
    """Return accuracy and log loss of the headline after the first 250 examples."""
    said = ours(X, codes, 2, row="headline", maps=("platt",), **changes)["headline"]
    answered, truth = said.probabilities[EVERY:], codes[EVERY:]
    return accuracy(answered.argmax(axis=1), truth), log_loss(answered, truth)
