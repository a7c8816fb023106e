"""What the model of the last refit but one lost against the last one, on examples after both.

Examples of the proper training set alone, before any machine learned them: the losses are out of
fold, and no label that calibrates is looked at. So the refits may go by them.
"""

from typing import NamedTuple, Self

import numpy as np

from online_svm.compiled.elementary import exp_nonpositive, log, log1p
from online_svm.compiled.jit import jit
from online_svm.storage.arrays import require
from online_svm.types import Floats, Ints

UNIT = 2.0**20
MOST = 8.0  # a difference of losses that is larger counts as this: sums of squares fit 62 bits


class Staleness(NamedTuple):
    """Differences of log losses, the older model's less the newer one's, in units of 2^-20.

    Attributes
    ----------
    n, total, squares : int
        Of the differences: how many, their sum, and that of their squares.

    Examples
    --------
    >>> older, newer = np.array([[0.0], [0.0]]), np.array([[1.0], [-1.0]])
    >>> found = Staleness.between(older, newer, np.array([1, 0]))
    >>> found.n, round(found.total / 2**20, 6)
    (2, 0.759771)
    """

    n: int
    total: int
    squares: int

    @classmethod
    def between(cls, older: Floats, newer: Floats, codes: Ints) -> Self:
        """Compare the scores of two models, shape (n, S), for examples of classes `codes`."""
        return cls(*map(int, _compare(older, newer, codes)))

    @classmethod
    def of(cls, stored: list[int]) -> Self:
        """Return the differences that were stored as a list.

        Raises
        ------
        TypeError, ValueError
            If they are no such numbers.
        """
        staleness = cls(*stored)
        n, total, squares = staleness
        require(all(type(each) is int for each in staleness), "staleness")
        require(n >= 0 and total * total <= n * squares, "staleness")
        return staleness


UNKNOWN = Staleness(0, 0, 0)


@jit
def _compare(older: Floats, newer: Floats, codes: Ints) -> tuple[int, int, int]:
    count, total, squares = 0, 0, 0
    for i in range(len(codes)):
        if codes[i] < 0:
            continue
        apart = _loss(older[i], codes[i]) - _loss(newer[i], codes[i])
        units = int(np.floor(min(max(apart, -MOST), MOST) * UNIT + 0.5))
        count, total, squares = count + 1, total + units, squares + units * units
    return count, total, squares


@jit
def _loss(scores: Floats, code: int) -> float:
    """Return the log loss of log-odds of class 1 of two, or of the logits of more."""
    if len(scores) == 1:
        margin = scores[0] if code == 1 else -scores[0]
        return float(max(-margin, 0.0) + log1p(exp_nonpositive(-abs(margin))))
    highest = scores.max()
    whole = 0.0
    for k in range(len(scores)):
        whole += exp_nonpositive(scores[k] - highest)
    return float(highest - scores[code] + log(whole))
