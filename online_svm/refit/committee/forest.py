"""A forest as arrays: the bins of its features, and the score of a row.

A tree has `DEPTH` levels of nodes in heap order: below node i lie 2 i + 1 (not beyond the cut) and
2 i + 2. A node that is not split has a cut beyond which nothing lies.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from online_svm.compiled.elementary import exp_nonpositive, log
from online_svm.compiled.jit import jit
from online_svm.types import Floats, Ints

Bytes = NDArray[np.uint8]
Shorts = NDArray[np.int16]

DEPTH = 6
NODES, LEAVES = 2**DEPTH - 1, 2**DEPTH
TREES_OF_TWO, TREES_OF_MORE = 60, 120
BINS = 256
NO_CUT = BINS - 1  # no bin lies beyond
LEAF_UNIT = 2.0**-11  # steps of leaves are whole numbers of it, of 16 bits
MOST_LEAF = 32767
LEAST_SUM = 1e-300

_ONE = np.uint64(1)
_LEVELS = 8  # of a bisection of the edges


class Forest(NamedTuple):
    """Trees as arrays.

    Attributes
    ----------
    features : ndarray of int32, shape (n_trees, NODES)
        Feature that a node looks at.
    bins : ndarray of uint8, shape (n_trees, NODES)
        Rows whose bin is larger go right.
    leaves : ndarray of int16, shape (n_trees, LEAVES, S)
        Steps of the log-odds, in `LEAF_UNIT`; the first tree holds the frequencies of the classes
        as well.
    """

    features: NDArray[np.int32]
    bins: Bytes
    leaves: Shorts


def edges_of(X: Floats) -> Floats:
    """Return the edges of the bins of each column, shape (n_features, BINS - 1), in order.

    They lie between two values of the column: between all, where there are at most `BINS`, else at
    its quantiles. What is left over is the largest number, which nothing exceeds.

    Examples
    --------
    >>> edges_of(np.array([[3.0], [1.0], [1.0]]))[0, :2].tolist()
    [2.0, 1.7976931348623157e+308]
    """
    found = np.full((X.shape[1], BINS - 1), np.finfo(np.float64).max)
    quantiles = np.arange(1, BINS) * len(X) // BINS
    for edges, column in zip(found, np.sort(X.T + 0.0, axis=1), strict=True):
        firsts = np.flatnonzero(column[1:] > column[:-1]) + 1  # of each value but the least
        if len(firsts) >= BINS:
            firsts = np.unique(firsts[np.searchsorted(firsts, quantiles).clip(max=len(firsts) - 1)])
        edges[: len(firsts)] = 0.5 * column[firsts - 1] + 0.5 * column[firsts]
    return found


@jit
def bins_of(X: Floats, edges: Floats) -> Bytes:
    """Return how many edges lie below each value, shape (n_features, n), by bisection."""
    bins = np.empty((X.shape[1], len(X)), dtype=np.uint8)
    for f in range(X.shape[1]):
        own = edges[f]
        for i in range(len(X)):
            value, below = X[i, f], np.uint64(0)
            for level in range(_LEVELS):  # without a branch: half of them would be mispredicted
                step = np.uint64(1) << np.uint64(_LEVELS - 1 - level)
                below += step * np.uint64(own[below + step - _ONE] < value)
            bins[f, i] = below
    return bins


@jit
def add_leaves(
    features: NDArray[np.int32], cuts: Floats, leaves: Shorts, X: Floats, totals: Ints
) -> None:
    """Add the leaves that each row of X falls in to `totals`, shape (m, S).

    Level by level: the rows of one do not wait for each other, the levels of a row do.
    """
    nodes = np.empty(len(X), dtype=np.uint32)
    for t in range(len(features)):
        own, limits = features[t], cuts[t]
        nodes[:] = 0
        for _ in range(DEPTH):
            for i in range(len(X)):
                node = np.uint64(nodes[i])
                goes_right = np.uint64(X[i, own[node]] > limits[node])
                nodes[i] = np.uint32(node + node + _ONE + goes_right)
        for i in range(len(X)):
            leaf = leaves[t, nodes[i] - NODES]
            for s in range(len(leaf)):
                totals[i, s] += leaf[s]


@jit
def log_odds(totals: Ints, out: Floats) -> None:
    """Write log p_k / (1 - p_k) of the softmax of logits in `LEAF_UNIT`, shape (m, S).

    Of one logit it is that one.
    """
    classes = totals.shape[1]
    terms = np.empty(classes)
    for i in range(len(totals)):
        if classes == 1:
            out[i, 0] = totals[i, 0] * LEAF_UNIT
            continue
        highest = totals[i].max()
        for k in range(classes):
            terms[k] = exp_nonpositive((totals[i, k] - highest) * LEAF_UNIT)
        for k in range(classes):
            others = 0.0
            for j in range(classes):
                if j != k:
                    others += terms[j]
            out[i, k] = (totals[i, k] - highest) * LEAF_UNIT - log(max(others, LEAST_SUM))
