"""Staleness: excess loss of the second-last model over the last one, on newer examples.

The examples belong to the proper training set, and neither model has learned them: the losses are
out of fold and use no calibration label, so they may control the schedule of refits.
"""

from typing import NamedTuple, Self

from online_svm.compiled.kernel import kernel
from online_svm.storage.state import require
from online_svm.types import Floats, Ints


class Staleness(NamedTuple):
    """Differences of log losses, older minus newer model, in units of 2^-20."""

    n: int  # number of differences
    total: int  # their sum
    squares: int  # the sum of their squares

    @classmethod
    def between(cls, older: Floats, newer: Floats, codes: Ints) -> Self:
        """Compare the scores of two models, shape (n, S), for examples of classes `codes`."""
        return cls(*_compare(older, newer, codes))

    @classmethod
    def of(cls, stored: list[int]) -> Self:
        """Return the differences stored as a list.

        Raises TypeError or ValueError if they are malformed or impossible.
        """
        staleness = cls(*stored)
        n, total, squares = staleness
        require(all(type(each) is int for each in staleness), "staleness")
        require(n >= 0 and total * total <= n * squares, "staleness")
        return staleness


UNKNOWN = Staleness(0, 0, 0)


@kernel
def _compare(older: Floats, newer: Floats, codes: Ints) -> tuple[int, int, int]:
    """Return number, sum and sum of squares of the differences."""
