"""Ends of bins of equal mass among sorted probabilities, compiled."""

import numpy as np

from online_svm.compiled.jit import jit
from online_svm.types import Floats, Ints


@jit
def bin_ends(p: Floats, n_bins: int) -> Ints:
    """Return the place after the last example of each bin; none is empty.

    Example r of n (from 0) belongs to bin floor(n_bins r / n); a run of equal probabilities to the
    bin of its middle rank, as in `calibration.binning.equal_count_bins`.

    Parameters
    ----------
    p : ndarray of shape (n_samples,)
        Ascending; at least one.
    n_bins : int
        At most so many bins.

    Examples
    --------
    >>> bin_ends(np.array([0.1, 0.2, 0.2, 0.2]), 2)
    array([1, 4])
    """
    n = len(p)
    ends = np.empty(min(n_bins, n), dtype=np.int64)
    count, begin, before = 0, 0, -1
    for i in range(n):
        if i + 1 < n and p[i + 1] == p[i]:
            continue
        inside = (begin + i) * n_bins // (2 * n)
        count += inside != before
        ends[count - 1] = i + 1
        begin, before = i + 1, inside
    return ends[:count]
