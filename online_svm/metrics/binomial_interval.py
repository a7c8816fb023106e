"""The Clopper-Pearson interval of a frequency, with a cache of computed intervals."""

from functools import cache
from typing import NamedTuple

import numpy as np

from online_svm.compiled.kernel import kernel
from online_svm.errors import InvalidInput
from online_svm.metrics.estimate import LEVEL, UNDEFINED, Estimate
from online_svm.types import Floats, Ints

N_CACHE_SLOTS = 1 << 15  # a window of 2,000 in a dozen bins has a few thousand pairs of counts


class BinomialIntervals(NamedTuple):
    """Cached intervals at one confidence level."""

    tail: float  # (1 - level) / 2, the probability outside each bound
    keys: Ints  # key of the counts in each cache slot, shape (N_CACHE_SLOTS,); -1 if empty
    bounds: Floats  # lower and upper bound, shape (N_CACHE_SLOTS, 2)


@cache
def binomial_intervals(level: float) -> BinomialIntervals:
    """Return the intervals at a confidence level; all callers share one cached object.

    Raises InvalidInput if the level is not between 0 and 1.
    """
    if not 0.0 < level < 1.0:
        raise InvalidInput(f"level: {level} is not between 0 and 1")
    keys = np.full(N_CACHE_SLOTS, -1, dtype=np.int64)
    return BinomialIntervals((1.0 - level) / 2.0, keys, np.zeros((N_CACHE_SLOTS, 2)))


@kernel
def interval(intervals: BinomialIntervals, hits: int, total: int) -> tuple[float, float]:
    """Return the interval of the frequency given `hits` among `total`, both below 2^31."""


def proportion(hits: int, total: int) -> Estimate:
    """Return a share with its Clopper-Pearson interval; undefined for a total of 0.

    Raises InvalidInput if `hits` is not in 0 ... `total`.

    Examples
    --------
    >>> print(proportion(80, 100))
    .800 (.708 to .873)
    """
    if not 0 <= hits <= total:
        raise InvalidInput(f"hits: must be in 0 ... {total}, got {hits}")
    if not total:
        return UNDEFINED
    return Estimate(hits / total, *interval(binomial_intervals(LEVEL), hits, total))
