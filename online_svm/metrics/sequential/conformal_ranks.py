"""Smoothed ranks of scores among all scores before them, in constant memory.

The p-value of a score is (number above it + U (number equal to it)) / (number of all), itself
counted, with U uniform on (0, 1). While scores are exchangeable these p-values are independent and
uniform (Vovk, Gammerman & Shafer 2022, "Algorithmic Learning in a Random World", chapter 8). Scores
are put into `CELLS` cells that were fixed beforehand: any function of a score will do.
"""

import numpy as np

from online_svm.compiled.jit import inner
from online_svm.stream.split import mix
from online_svm.types import Ints

CELLS = 256

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@inner
def uniform(seed: int, row: int, stream: int) -> float:
    """Return a number in [0, 1) that depends on all three, by the mixing of SplitMix64."""
    key = mix(np.uint64(seed) + _GOLDEN * np.uint64(stream + 1))
    return np.float64(mix(key ^ (np.uint64(row + 1) * _GOLDEN)) >> np.uint64(11)) * 2.0**-53


@inner
def cell_of(score: float, centre: float, spread: float) -> int:
    """Return the cell of a score: 0 ... CELLS - 1, half of them within `spread` of the centre."""
    z = (score - centre) / spread
    return min(CELLS - 1, int(CELLS * 0.5 * (1.0 + z / (1.0 + abs(z)))))


@inner
def ranked(counts: Ints, cell: int, u: float) -> float:
    """Count a score, and return its p-value.

    `counts`, shape (2 * CELLS,), is a tree of sums: the leaves stand in its second half, and node i
    holds the sum of nodes 2 i and 2 i + 1.
    """
    node, above = CELLS + cell, 0
    counts[node] += 1
    equal = counts[node]
    while node > 1:
        # Branch-free: whether a node is a left one would be mispredicted half of the time.
        above += counts[node ^ 1] * ((node & 1) ^ 1)
        node //= 2
        counts[node] += 1
    return float((above + u * equal) / counts[1])
