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
from river.datasets import synth

from online_svm.types import Floats, Ints
from workers.errors import BadConfiguration
from workers.push.datasets import load

Examples = tuple[Floats, Ints]
Pairs = list[tuple[dict[Any, Any], Any]]
Read = Callable[[Path | None, int], Examples]
"""Returns rows and codes, given the data directory and a seed."""

CHANGE_EVERY = 800
"""Examples between two abrupt changes; also a short run has two of them."""

_DRAWN = 5000


@dataclass(frozen=True, slots=True)
class StreamKind:
    """Where a stream comes from, its classes, and its order.

    The order is that of the release ("time"); or it has no meaning there and is drawn anew for each
    seed ("shuffled"); or the examples themselves are ("drawn"). In that order examples are used
    from `first` on, at most `limit`.
    """

    read: Read
    n_classes: int
    order: Literal["time", "shuffled", "drawn"]
    first: int = 0
    limit: int = 5000

    @property
    def is_single(self) -> bool:
        """Whether there is one order only."""
        return self.order == "time"


def stream(name: str, seed: int, data_dir: Path | None = None) -> Examples:
    """Return the rows and codes of a stream; a seed is one shuffle, or one draw.

    Raises
    ------
    DataNotFound
        If its file is not there.
    BadConfiguration
        If the installed version of river has no such data set.

    Examples
    --------
    >>> X, codes = stream("phishing", seed=0)
    >>> X.shape, sorted(set(codes.tolist()))
    ((1250, 9), [0, 1])
    """
    kind = STREAMS[name]
    X, codes = kind.read(data_dir, seed)
    if kind.order == "shuffled":
        order = np.random.default_rng(seed).permutation(len(X))
        X, codes = X[order], codes[order]
    used = slice(kind.first, kind.first + kind.limit)
    return X[used], codes[used]


def _of_file(name: str) -> Read:
    def read(data_dir: Path | None, _: int) -> Examples:
        data = load(name, data_dir)
        return data.X, _codes(data.y)

    return read


def _of_river(name: str) -> Read:
    """Return a reader of a data set that river ships with itself."""

    def read(_: Path | None, __: int) -> Examples:
        from river import datasets

        if not hasattr(datasets, name):
            raise BadConfiguration(f"this version of river has no data set {name}")
        return as_examples(list(getattr(datasets, name)()))

    return read


def _of_sklearn(name: str) -> Read:
    """Return a reader of a data set that scikit-learn ships with itself."""

    def read(_: Path | None, __: int) -> Examples:
        from sklearn import datasets

        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        return np.ascontiguousarray(X, dtype=np.float64), _codes(y)

    return read


def as_examples(pairs: Pairs) -> Examples:
    """Return river's pairs as rows, features sorted by name, and codes of the sorted labels.

    Examples
    --------
    >>> as_examples([({"b": 1, "a": 2}, "no"), ({"b": 3, "a": 4}, "yes")])
    (array([[2., 1.],
           [4., 3.]]), array([0, 1]))
    """
    names = sorted(pairs[0][0])
    X = np.array([[float(x[name]) for name in names] for x, _ in pairs])
    return X, _codes([y for _, y in pairs])


def _codes(labels: Any) -> Ints:
    return np.unique(np.asarray(labels), return_inverse=True)[1].astype(np.int64)


def seed_of(seed: int, part: int) -> int:
    """Return the seed of a part of a drawn stream."""
    return 1000 * seed + part


def _drawn(generator: Callable[[int], Any], count: int = _DRAWN) -> Read:
    """Return a reader of what a generator of river draws, given a seed."""
    return lambda _, seed: as_examples(list(islice(generator(seed), count)))


def _gaussians(_: Path | None, seed: int) -> Examples:
    """Return two overlapping normal classes in twenty features."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 2, _LONG)
    return rng.normal(size=(_LONG, 20)) + 0.5 * codes[:, None], codes


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


_shuffled = partial(StreamKind, order="shuffled")
_in_time = partial(StreamKind, order="time", limit=10_000)
_synthetic = partial(StreamKind, order="drawn")

DEVELOPMENT: dict[str, StreamKind] = {
    "phishing": _shuffled(_of_river("Phishing"), 2),
    "bananas": _shuffled(_of_river("Bananas"), 2, limit=5300),
    "adult": _shuffled(_of_file("adult"), 2),
    "elec2": _in_time(_of_file("elec2"), 2),
    "german": _shuffled(_of_file("german-numeric"), 2),
    "diabetes": _shuffled(_of_file("diabetes"), 2),
    "breast-cancer": _shuffled(_of_sklearn("breast_cancer"), 2),
    "web": _shuffled(_of_file("w7a"), 2),  # 3 % are positive
    "2cdt": _in_time(_of_file("2cdt"), 2),
    # Apart at a sum of two of three features that changes abruptly.
    "sea": _synthetic(_changing(lambda part, seed: synth.SEA(part % 4, 0.1, seed)), 2),
    # Five of ten weights drift.
    "hyperplane": _synthetic(
        _drawn(lambda seed: synth.Hyperplane(seed, 10, 5, mag_change=0.001)), 2
    ),
    # Loans by a rule of axis-parallel cuts (Agrawal et al. 1993, second function).
    "agrawal": _synthetic(_drawn(lambda seed: synth.Agrawal(1, seed, perturbation=0.05)), 2),
    # Fifty normal clusters in ten features.
    "random-rbf": _synthetic(_drawn(lambda seed: synth.RandomRBF(seed, seed)), 2),
    "car": _shuffled(_of_file("car"), 4),
    "wine": _shuffled(_of_file("wine"), 6),
    "segment": _shuffled(_of_river("ImageSegments"), 7),
    "moving-squares": _in_time(_of_file("moving-squares"), 4),
    # Noisy waves, 21 features (Breiman et al. 1984).
    "waveform": _synthetic(_drawn(synth.Waveform), 3),
    # Fifty clusters in ten features, all of which move.
    "rbf-drift": _synthetic(
        _drawn(lambda seed: synth.RandomRBFDrift(seed, seed, n_classes=5, change_speed=0.0005)), 5
    ),
}
"""On these the methods were chosen."""

HELD_OUT: dict[str, StreamKind] = {
    "australian": _shuffled(_of_file("australian"), 2),
    "ionosphere": _shuffled(_of_file("ionosphere"), 2),
    "shuttle": _shuffled(_of_river("Shuttle"), 2),  # 7 % are positive
    "2cht": _in_time(_of_file("2cht"), 2),
    "elec2-late": _in_time(_of_file("elec2"), 2, first=30_000),
    # Two classes change places abruptly: two indicators, two numbers.
    "mixed-drift": _synthetic(_changing(lambda part, seed: synth.Mixed(part % 2, seed)), 2),
    "transient-chessboard": _in_time(_of_file("transient-chessboard"), 8),
    "digits": _shuffled(_of_sklearn("digits"), 10),
    # A display with faults; what three segments show changes abruptly.
    "led-drift": _synthetic(_changing(_led), 10),
}
"""On these nothing was chosen, but for `MEMBERS_COMPARED`."""

MEMBERS_COMPARED = ("australian", "ionosphere")
"""A first comparison of members had these of `HELD_OUT`."""

_LONG = 50_000
"""Examples of a long stream: refits are nearly all of a full window then."""

_long = partial(StreamKind, order="drawn", limit=_LONG)

LONG: dict[str, StreamKind] = {
    "agrawal-long": _long(_drawn(lambda seed: synth.Agrawal(1, seed, perturbation=0.05), _LONG), 2),
    "sea-long": _long(_changing(lambda part, seed: synth.SEA(part % 4, 0.1, seed), 5000, _LONG), 2),
    "hyperplane-long": _long(
        _drawn(lambda seed: synth.Hyperplane(seed, 10, 5, mag_change=0.001), _LONG), 2
    ),
    "random-rbf-long": _long(_drawn(lambda seed: synth.RandomRBF(seed, seed), _LONG), 2),
    "gaussians-long": _long(_gaussians, 2),
    "elec2-long": StreamKind(_of_file("elec2"), 2, order="time", limit=_LONG),
    "2cdt-long": StreamKind(_of_file("2cdt"), 2, order="time", limit=_LONG),
    "rbf-drift-long": _long(
        _drawn(
            lambda seed: synth.RandomRBFDrift(seed, seed, n_classes=5, change_speed=0.0005), _LONG
        ),
        5,
    ),
    "moving-squares-long": StreamKind(_of_file("moving-squares"), 4, order="time", limit=_LONG),
}
"""On these the distance between two refits was chosen."""

STREAMS = DEVELOPMENT | HELD_OUT | LONG
