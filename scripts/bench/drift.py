"""A stream whose classes move all the time and are never harder to tell apart."""

from collections.abc import Iterator

import numpy as np

from online_svm.types import Floats, Ints
from workers.push.sources import Row

FEATURES = 20
PERIOD = 200_000
"""Examples in which the direction that separates the classes goes round once."""

_DISTANCE = 2.2  # between the means, in standard deviations: about 650 support vectors of 1,400
_CHUNK = 1000
_LABELS = ("a", "b")


def drifting(entries: int, seed: int = 0) -> Iterator[Row]:
    """Yield examples of two overlapping normal classes, the same ones each time.

    The direction between the means turns in a plane, and their centre goes along another axis and
    back: what was learned a period ago is wrong now, but a fresh model is as good as any before,
    so time and memory of a worker have no reason of their own to change.

    Parameters
    ----------
    entries : int
    seed : int

    Examples
    --------
    >>> rows = list(drifting(3))
    >>> len(rows), len(rows[0].x), {row.y for row in rows} <= {"a", "b"}
    (3, 20, True)
    """
    generator = np.random.default_rng(seed)
    for begin in range(0, entries, _CHUNK):
        numbers = np.arange(begin, min(begin + _CHUNK, entries))
        codes = generator.integers(0, 2, len(numbers))
        noise = generator.normal(size=(len(numbers), FEATURES))
        X = (noise + _means(numbers, codes)).round(4)
        for x, code in zip(X.tolist(), codes.tolist(), strict=True):
            yield Row(x, _LABELS[code])


def _means(numbers: Ints, codes: Ints) -> Floats:
    angle = 2.0 * np.pi * numbers / PERIOD
    side = _DISTANCE * (codes - 0.5)
    means = np.zeros((len(numbers), FEATURES))
    means[:, 0], means[:, 1] = side * np.cos(angle), side * np.sin(angle)
    means[:, 2] = np.sin(angle)
    return means
