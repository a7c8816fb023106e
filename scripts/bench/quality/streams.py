"""The streams on which the quality of probabilities is compared.

Both lists were fixed before any method had answered them. Choices are made on `DEVELOPMENT`;
`HELD_OUT` is looked at once, when all choices are made. Together they have nineteen streams of two
classes and nine of more.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
from river import datasets
from river.datasets import synth
from sklearn import datasets as sklearn_datasets

from online_svm.types import Floats, Ints
from workers.errors import BadConfiguration
from workers.push.datasets import load

Examples = tuple[Floats, Ints]
Pairs = list[tuple[dict[Any, Any], Any]]
Read = Callable[[Path | None, int], Examples]  # given the data directory and a seed

CHANGE_EVERY = 800  # examples between two abrupt changes; also a short run has two of them

_DRAWN = 5000
_LONG = 50_000  # examples of a long stream: refits are nearly all of a full window then


@dataclass(frozen=True, slots=True)
class StreamKind:
    """Where a stream comes from, its classes, and its order."""

    read: Read
    n_classes: int
    # As released; or each seed shuffles the examples; or each seed draws them.
    order: Literal["time", "shuffled", "drawn"]
    first: int = 0  # the first example in that order that is used
    limit: int = 5000  # examples that are used, at most

    @property
    def is_single(self) -> bool:
        """Whether there is one order only."""
        return self.order == "time"


def stream(name: str, seed: int, data_dir: Path | None = None) -> Examples:
    """Return the rows and codes of a stream; a seed is one shuffle, or one draw."""
    kind = STREAMS[name]
    X, codes = kind.read(data_dir, seed)
    if kind.order == "shuffled":
        order = np.random.default_rng(seed).permutation(len(X))
        X, codes = X[order], codes[order]
    used = slice(kind.first, kind.first + kind.limit)
    return X[used], codes[used]


def of_file(name: str) -> Read:
    """Return a reader of a downloaded data set."""

    def read(data_dir: Path | None, _: int) -> Examples:
        data = load(name, data_dir)
        return data.X, codes_of(data.y)

    return read


def _of_river(name: str) -> Read:
    """Return a reader of a data set that river ships with itself."""

    def read(*_: Any) -> Examples:
        if not hasattr(datasets, name):
            raise BadConfiguration(f"this version of river has no data set {name}")
        return as_examples(list(getattr(datasets, name)()))

    return read


def of_sklearn(name: str) -> Read:
    """Return a reader of a data set that scikit-learn ships with itself."""

    def read(*_: Any) -> Examples:
        X, y = getattr(sklearn_datasets, f"load_{name}")(return_X_y=True)
        return np.ascontiguousarray(X, dtype=np.float64), codes_of(y)

    return read


def as_examples(pairs: Pairs) -> Examples:
    """Return river's pairs as rows, features sorted by name, and codes of the sorted labels.

    >>> as_examples([({"b": 1, "a": 2}, "no"), ({"b": 3, "a": 4}, "yes")])
    (array([[2., 1.],
           [4., 3.]]), array([0, 1]))
    """
    names = sorted(pairs[0][0])
    X = np.array([[float(x[name]) for name in names] for x, _ in pairs])
    return X, codes_of([y for _, y in pairs])


def codes_of(labels: Any) -> Ints:
    """Return labels as numbers from 0 on, in their order."""
    return np.unique(np.asarray(labels), return_inverse=True)[1].astype(np.int64)


def seed_of(seed: int, part: int) -> int:
    """Return the seed of a part of a drawn stream."""
    return 1000 * seed + part


def _gaussians(_: Path | None, seed: int) -> Examples:
    """Return two overlapping normal classes in twenty features."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 2, _LONG)
    return rng.normal(size=(_LONG, 20)) + 0.5 * codes[:, None], codes


def _drawn(generator: Callable[[int], Any], count: int = _DRAWN) -> Read:
    """Return a reader of what a generator of river draws, given a seed."""
    return lambda _, seed: as_examples(list(islice(generator(seed), count)))


def _changing(
    part_of: Callable[[int, int], Any], every: int = CHANGE_EVERY, count: int = _DRAWN
) -> Read:
    """Return the same, each so many examples by the generator of a part and its seed."""

    def read(_: Path | None, seed: int) -> Examples:
        pairs: Pairs = []
        while len(pairs) < count:
            part, size = len(pairs) // every, min(every, count - len(pairs))
            pairs += islice(part_of(part, seed_of(seed, part)), size)
        return as_examples(pairs)

    return read


def _led(part: int, seed: int) -> Any:
    return synth.LEDDrift(seed, 0.1, irrelevant_features=True, n_drift_features=part % 4)


def _sea(part: int, seed: int) -> Any:
    return synth.SEA(part % 4, 0.1, seed)


_hyperplane = partial(synth.Hyperplane, n_features=10, n_drift_features=5, mag_change=0.001)
_agrawal = partial(synth.Agrawal, 1, perturbation=0.05)


def _clusters(seed: int) -> Any:
    return synth.RandomRBF(seed, seed)


def _moving_clusters(seed: int) -> Any:
    return synth.RandomRBFDrift(seed, seed, n_classes=5, change_speed=0.0005)


_shuffled = partial(StreamKind, order="shuffled")
_in_time = partial(StreamKind, order="time", limit=10_000)
_synthetic = partial(StreamKind, order="drawn")

DEVELOPMENT: dict[str, StreamKind] = {
    "phishing": _shuffled(_of_river("Phishing"), 2),
    "bananas": _shuffled(_of_river("Bananas"), 2, limit=5300),
    "adult": _shuffled(of_file("adult"), 2),
    "elec2": _in_time(of_file("elec2"), 2),
    "german": _shuffled(of_file("german-numeric"), 2),
    "diabetes": _shuffled(of_file("diabetes"), 2),
    "breast-cancer": _shuffled(of_sklearn("breast_cancer"), 2),
    "web": _shuffled(of_file("w7a"), 2),  # 3 % are positive
    "2cdt": _in_time(of_file("2cdt"), 2),
    # Apart at a sum of two of three features that changes abruptly.
    "sea": _synthetic(_changing(_sea), 2),
    # Five of ten weights drift.
    "hyperplane": _synthetic(_drawn(_hyperplane), 2),
    # Loans by a rule of axis-parallel cuts (Agrawal et al. 1993, second function).
    "agrawal": _synthetic(_drawn(_agrawal), 2),
    # Fifty normal clusters in ten features.
    "random-rbf": _synthetic(_drawn(_clusters), 2),
    "car": _shuffled(of_file("car"), 4),
    "wine": _shuffled(of_file("wine"), 6),
    "segment": _shuffled(_of_river("ImageSegments"), 7),
    "moving-squares": _in_time(of_file("moving-squares"), 4),
    # Noisy waves, 21 features (Breiman et al. 1984).
    "waveform": _synthetic(_drawn(synth.Waveform), 3),
    # Fifty clusters in ten features, all of which move.
    "rbf-drift": _synthetic(_drawn(_moving_clusters), 5),
}
"""On these the methods were chosen."""

HELD_OUT: dict[str, StreamKind] = {
    "australian": _shuffled(of_file("australian"), 2),
    "ionosphere": _shuffled(of_file("ionosphere"), 2),
    "shuttle": _shuffled(_of_river("Shuttle"), 2),  # 7 % are positive
    "2cht": _in_time(of_file("2cht"), 2),
    "elec2-late": _in_time(of_file("elec2"), 2, first=30_000),
    # Two classes change places abruptly: two indicators, two numbers.
    "mixed-drift": _synthetic(_changing(lambda part, seed: synth.Mixed(part % 2, seed)), 2),
    "transient-chessboard": _in_time(of_file("transient-chessboard"), 8),
    "digits": _shuffled(of_sklearn("digits"), 10),
    # A display with faults; what three segments show changes abruptly.
    "led-drift": _synthetic(_changing(_led), 10),
}
"""Nothing was chosen on these, except that members were compared on australian and ionosphere."""

_long = partial(StreamKind, order="drawn", limit=_LONG)

LONG: dict[str, StreamKind] = {
    "agrawal-long": _long(_drawn(_agrawal, _LONG), 2),
    "sea-long": _long(_changing(_sea, 5000, _LONG), 2),
    "hyperplane-long": _long(_drawn(_hyperplane, _LONG), 2),
    "random-rbf-long": _long(_drawn(_clusters, _LONG), 2),
    "gaussians-long": _long(_gaussians, 2),
    "elec2-long": StreamKind(of_file("elec2"), 2, order="time", limit=_LONG),
    "2cdt-long": StreamKind(of_file("2cdt"), 2, order="time", limit=_LONG),
    "rbf-drift-long": _long(_drawn(_moving_clusters, _LONG), 5),
    "moving-squares-long": StreamKind(of_file("moving-squares"), 4, order="time", limit=_LONG),
}
"""On these the distance between two refits was chosen."""

STREAMS = DEVELOPMENT | HELD_OUT | LONG
