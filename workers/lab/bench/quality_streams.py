"""The streams on which the quality of probabilities is compared: two classes, as 0 and 1."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from river import datasets

from online_svm.types import Floats, Ints
from workers.push.datasets import load

Examples = tuple[Floats, Ints]


@dataclass(frozen=True, slots=True)
class StreamKind:
    """Where a stream comes from.

    Attributes
    ----------
    read : callable
        Returns rows and codes in the order of their release, given the data directory.
    is_shuffled : bool
        Whether the order has no meaning, so that it is drawn anew for each seed.
    limit : int or None
        Examples that are used, the first ones in that order.
    """

    read: Callable[[Path | str | None], Examples]
    is_shuffled: bool
    limit: int | None = None


def stream(name: str, seed: int, data_dir: Path | str | None = None) -> Examples:
    """Return the rows and codes of a stream, shuffled by `seed` unless it is in time order.

    Raises
    ------
    DataNotFound
        If its file is not there.

    Examples
    --------
    >>> X, codes = stream("phishing", seed=0)
    >>> X.shape, sorted(set(codes.tolist()))
    ((1250, 9), [0, 1])
    """
    kind = STREAMS[name]
    X, codes = kind.read(data_dir)
    if kind.is_shuffled:
        order = np.random.default_rng(seed).permutation(len(X))
        X, codes = X[order], codes[order]
    return X[: kind.limit], codes[: kind.limit]


def _of_river(make: Callable[[], Any]) -> Callable[[Path | str | None], Examples]:
    """Return a reader of a data set that river ships with itself; features sorted by name."""

    def read(_: Path | str | None) -> Examples:
        pairs = list(make())
        names = sorted(pairs[0][0])
        X = np.array([[float(x[name]) for name in names] for x, _ in pairs])
        return X, np.array([int(y) for _, y in pairs], dtype=np.int64)

    return read


def _of_file(name: str) -> Callable[[Path | str | None], Examples]:
    def read(data_dir: Path | str | None) -> Examples:
        data = load(name, data_dir)
        return data.X, np.unique(data.y, return_inverse=True)[1].astype(np.int64)

    return read


STREAMS: dict[str, StreamKind] = {
    "phishing": StreamKind(_of_river(datasets.Phishing), is_shuffled=True),
    "bananas": StreamKind(_of_river(datasets.Bananas), is_shuffled=True),
    "adult": StreamKind(_of_file("adult"), is_shuffled=True, limit=5000),
    "elec2": StreamKind(_of_file("elec2"), is_shuffled=False, limit=10_000),
}
