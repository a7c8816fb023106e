"""The streams on which the quality of probabilities is compared.

Both lists were fixed before any method had answered them. Choices are made on `DEVELOPMENT`;
`HELD_OUT` is looked at once, when all choices are made. Together they have nineteen streams of two
classes and nine of more.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from online_svm.types import Floats, Ints
from scripts.bench.quality import synthetic
from workers.errors import BadConfiguration
from workers.push.datasets import load

Examples = tuple[Floats, Ints]


@dataclass(frozen=True, slots=True)
class StreamKind:
    """Where a stream comes from.

    Attributes
    ----------
    read : callable
        Returns rows and codes, given the data directory and a seed.
    n_classes : int
    order : {"time", "shuffled", "drawn"}
        The order is that of the release; or it has no meaning there and is drawn anew for each
        seed; or the examples themselves are.
    first, limit : int
        The examples that are used, in that order: from `first` on, at most `limit`.
    """

    read: Callable[[Path | str | None, int], Examples]
    n_classes: int
    order: Literal["time", "shuffled", "drawn"]
    first: int = 0
    limit: int = 5000

    @property
    def is_single(self) -> bool:
        """Whether there is one order only."""
        return self.order == "time"


def stream(name: str, seed: int, data_dir: Path | str | None = None) -> Examples:
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


def _of_file(name: str) -> Callable[[Path | str | None, int], Examples]:
    def read(data_dir: Path | str | None, _: int) -> Examples:
        data = load(name, data_dir)
        return data.X, _codes(data.y)

    return read


def _of_river(name: str) -> Callable[[Path | str | None, int], Examples]:
    """Return a reader of a data set that river ships with itself; features sorted by name."""

    def read(_: Path | str | None, __: int) -> Examples:
        from river import datasets

        if not hasattr(datasets, name):
            raise BadConfiguration(f"this version of river has no data set {name}")
        return as_examples(list(getattr(datasets, name)()))

    return read


def _of_sklearn(name: str) -> Callable[[Path | str | None, int], Examples]:
    """Return a reader of a data set that scikit-learn ships with itself."""

    def read(_: Path | str | None, __: int) -> Examples:
        from sklearn import datasets

        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        return np.ascontiguousarray(X, dtype=np.float64), _codes(y)

    return read


def _drawn(
    draw: Callable[[int, int], list[tuple[dict[Any, Any], Any]]], limit: int
) -> Callable[[Path | str | None, int], Examples]:
    def read(_: Path | str | None, seed: int) -> Examples:
        return as_examples(draw(limit, seed))

    return read


def as_examples(pairs: list[tuple[dict[Any, Any], Any]]) -> Examples:
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


def _synthetic(name: str, n_classes: int) -> StreamKind:
    kind = synthetic.STREAMS[name]
    return StreamKind(_drawn(kind, 5000), n_classes, "drawn")


_shuffled = partial(StreamKind, order="shuffled")
_in_time = partial(StreamKind, order="time", limit=10_000)

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
    "sea": _synthetic("sea", 2),
    "hyperplane": _synthetic("hyperplane", 2),
    "agrawal": _synthetic("agrawal", 2),
    "random-rbf": _synthetic("random-rbf", 2),
    "car": _shuffled(_of_file("car"), 4),
    "wine": _shuffled(_of_file("wine"), 6),
    "segment": _shuffled(_of_river("ImageSegments"), 7),
    "moving-squares": _in_time(_of_file("moving-squares"), 4),
    "waveform": _synthetic("waveform", 3),
    "rbf-drift": _synthetic("rbf-drift", 5),
}
"""On these the methods were chosen."""

HELD_OUT: dict[str, StreamKind] = {
    "australian": _shuffled(_of_file("australian"), 2),
    "ionosphere": _shuffled(_of_file("ionosphere"), 2),
    "shuttle": _shuffled(_of_river("Shuttle"), 2),  # 7 % are positive
    "2cht": _in_time(_of_file("2cht"), 2),
    "elec2-late": _in_time(_of_file("elec2"), 2, first=30_000),
    "mixed-drift": _synthetic("mixed-drift", 2),
    "transient-chessboard": _in_time(_of_file("transient-chessboard"), 8),
    "digits": _shuffled(_of_sklearn("digits"), 10),
    "led-drift": _synthetic("led-drift", 10),
}
"""On these nothing was chosen, but for the first two: a first comparison of members had them."""

STREAMS = DEVELOPMENT | HELD_OUT
