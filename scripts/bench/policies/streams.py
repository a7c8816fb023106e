"""Streams of 10,000 examples: recorded ones, and drawn ones whose law changes in the middle."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from river.datasets import synth

from online_svm.types import Floats, Ints
from scripts.bench.quality.streams import STREAMS as RECORDED
from scripts.bench.quality.streams import as_examples
from scripts.bench.quality.streams import stream as recorded_stream

EXAMPLES = 10_000

PASSAGE = 0.2
"""A gradual change takes this part of the stream."""

RARE = 0.01


@dataclass(frozen=True, slots=True)
class ChangingStream:
    """Examples in their order.

    Attributes
    ----------
    X : ndarray of shape (n, n_features)
    codes : ndarray of shape (n,)
        Classes, 0 ... n_classes - 1.
    n_classes : int
    change : int or None
        Examples before the change; None where nobody knows.
    """

    X: Floats
    codes: Ints
    n_classes: int
    change: int | None


Draw = Callable[[int, int], tuple[Floats, Ints]]
"""From the number of examples and a seed."""


def abrupt(n: int, seed: int) -> tuple[Floats, Ints]:
    """Return the sides of a hyperplane in ten features; another one in the second half."""
    before, after = (_hyperplane(n, seed, part) for part in range(2))
    return as_examples(before[: n // 2] + after[n // 2 :])


def gradual(n: int, seed: int) -> tuple[Floats, Ints]:
    """Return the same, but from n / 2 on the other one comes more and more often.

    Its share grows evenly from 0 to 1 in a fifth of the stream.
    """
    before, after = (_hyperplane(n, seed, part) for part in range(2))
    shares = (np.arange(n) - n // 2) / (PASSAGE * n)
    is_after = np.random.default_rng(seed).random(n) < shares
    return as_examples([(after if late else before)[i] for i, late in enumerate(is_after)])


def exchange(n: int, seed: int) -> tuple[Floats, Ints]:
    """Return two classes that change places: river's Mixed, two indicators and two numbers."""
    before, after = (
        list(islice(synth.Mixed(part, _seed(seed, part)), n - n // 2)) for part in range(2)
    )
    return as_examples(before[: n // 2] + after)


def swap(n: int, seed: int) -> tuple[Floats, Ints]:
    """Return two categories whose rates .2 and .6 change places; two more features say nothing."""
    rng = np.random.default_rng(seed)
    category = rng.integers(0, 2, n)
    is_late = np.arange(n) >= n // 2
    codes = rng.random(n) < np.where(category == is_late, 0.2, 0.6)
    return np.column_stack([category, rng.normal(size=(n, 2))]), codes.astype(np.int64)


def rare(n: int, seed: int) -> tuple[Floats, Ints]:
    """Return two normal classes three standard deviations apart, one of them with 1 %.

    The line between their means turns by a right angle, as where two sensors change places.
    """
    rng = np.random.default_rng(seed)
    codes = (rng.random(n) < RARE).astype(np.int64)
    X = rng.normal(size=(n, 2))
    axis = (np.arange(n) >= n // 2).astype(np.int64)
    X[np.arange(n), axis] += np.where(codes == 1, 1.5, -1.5)
    return X, codes


DRAWN: dict[str, Draw] = {
    "abrupt": abrupt,
    "exchange": exchange,
    "gradual": gradual,
    "swap": swap,
    "rare": rare,
}
"""Two classes each; a seed is one draw."""

SINGLE = ("elec2", "moving-squares", "2cdt")
"""Recorded streams, in the order of their release."""

STREAMS = ("elec2", *DRAWN, *SINGLE[1:])


def stream(
    name: str, draw: int, examples: int, data_dir: Path | str | None = None
) -> ChangingStream:
    """Return a stream; of a recorded one the first examples, whichever the draw.

    Raises
    ------
    DataNotFound
        If its file is not there.

    Examples
    --------
    >>> found = stream("swap", draw=0, examples=100)
    >>> found.X.shape, found.n_classes, found.change
    ((100, 3), 2, 50)
    """
    if name in DRAWN:
        return ChangingStream(*DRAWN[name](examples, draw), 2, examples // 2)
    X, codes = recorded_stream(name, 0, data_dir)
    return ChangingStream(X[:examples], codes[:examples], RECORDED[name].n_classes, None)


def _hyperplane(n: int, seed: int, part: int) -> list[tuple[dict[Any, Any], Any]]:
    still = synth.Hyperplane(_seed(seed, part), 10, n_drift_features=0, mag_change=0.0)
    return list(islice(still, n))


def _seed(seed: int, part: int) -> int:
    return 1000 * seed + part
