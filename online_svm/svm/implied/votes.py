"""The votes of a bank of machines: on which side of each surface a point lies, and their share."""

import numpy as np
from numpy.typing import NDArray

from online_svm.types import Floats

# A point this close to a surface lies on it: far finer than the machines are solved, but coarser
# than the roundings of a decision value whose exact value is 0 by symmetry.
ON_SURFACE = 1e-9


def sides(scores: Floats) -> NDArray[np.int8]:
    """Return the side of the surface of each decision value: +1, -1, or 0 on it.

    Examples
    --------
    >>> sides(np.array([0.5, -0.5, 1e-12])).tolist()
    [1, -1, 0]
    """
    return (scores > ON_SURFACE).astype(np.int8) - (scores < -ON_SURFACE).astype(np.int8)


def shares_of(scores: Floats) -> Floats:
    """Return (positive votes + 1) / (m + 2) for rows of m decision values.

    Examples
    --------
    >>> shares_of(np.array([[-1.0, 0.0, 1.0]])).tolist()
    [0.5]
    """
    twice = (sides(scores).astype(np.int64) + 1).sum(axis=1)
    return np.asarray((twice + 2) / (2.0 * (scores.shape[1] + 2)))
