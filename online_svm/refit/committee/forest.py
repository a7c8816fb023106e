"""A forest as arrays, the bins of its features, and its scores.

A tree has `DEPTH` levels of nodes in heap order: the children of node i are 2 i + 1 (values up to
the cut) and 2 i + 2. A node that is not split has the cut `NO_CUT`, which no value exceeds.
"""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from online_svm.compiled.kernel import kernel
from online_svm.storage.state import require
from online_svm.types import Bytes, Floats, Ints

Shorts = NDArray[np.int16]
Words = NDArray[np.int32]

DEPTH = 6
NODES, LEAVES = 2**DEPTH - 1, 2**DEPTH
TREES_OF_TWO, TREES_OF_MORE = 60, 120
BINS = 256
NO_CUT = BINS - 1  # the last bin: no bin exceeds it
NEVER = float(np.finfo(np.float64).max)  # the cut of a node that is not split: no value exceeds it
LEAF_UNIT = 2.0**-11  # unit of the steps in leaves, which are 16-bit integers
MAX_LEAF = 32767


class Forest(NamedTuple):
    """Trees as arrays."""

    features: Words  # shape (n_trees, NODES); feature that a node tests
    bins: Bytes  # shape (n_trees, NODES); rows with a larger bin go right
    # Shape (n_trees, LEAVES, S); steps of the log-odds, in `LEAF_UNIT`; those of the first tree
    # include the log-odds of the class frequencies.
    leaves: Shorts


ROWS_AT_ONCE = 64  # rows whose leaves are found together; as in forest.h


class RankedCuts(NamedTuple):
    """The nodes of trees, whose cuts are ranks among the cuts of their column.

    So the place of a row's value among the cuts of a column is found once for all trees, and a node
    compares two bytes.
    """

    columns: Ints  # shape (n_used,); columns that some node tests, ascending
    starts: Ints  # shape (n_used + 1,); of the cuts of each column in `values`
    values: Floats  # cuts of each column, ascending
    slots: Words  # shape (n_trees, NODES); index in `columns` of the feature of a node
    # Shape (n_trees, NODES); index of its cut among those of its column; `NO_CUT` if it has none.
    ranks: Bytes

    @classmethod
    def of(cls, features: Words, cuts: Floats) -> Self:
        """Return the nodes of trees with these features and cuts, both of shape (n_trees, NODES).

        Raises ValueError if a column has more than 255 cuts below `NEVER`.
        """
        order = np.lexsort((cuts.ravel(), features.ravel()))
        of_nodes, values = features.ravel()[order], cuts.ravel()[order]
        begins, is_new = np.ones((2, len(order)), dtype=np.bool_)
        begins[1:] = of_nodes[1:] != of_nodes[:-1]  # at the first node of a column
        is_new[1:] = begins[1:] | (values[1:] != values[:-1])
        is_cut = values < NEVER
        is_new &= is_cut
        slots, places = np.cumsum(begins) - 1, np.cumsum(is_new) - 1
        counts = np.bincount(slots[is_new], minlength=np.count_nonzero(begins))
        require((counts < BINS).all(), "cuts")
        starts = np.append(0, np.cumsum(counts))
        nodes = cls(
            of_nodes[begins].astype(np.int64), starts, values[is_new],
            np.empty(features.shape, dtype=np.int32), np.empty(features.shape, dtype=np.uint8),
        )  # fmt: skip
        nodes.slots.ravel()[order] = slots
        nodes.ranks.ravel()[order] = np.where(is_cut, places - starts[slots], NO_CUT)
        return nodes

    @property
    def room(self) -> Bytes:
        """Room for the places of a chunk of rows among the cuts of each column."""
        return np.empty((len(self.columns), ROWS_AT_ONCE), dtype=np.uint8)


def edges_of(X: Floats) -> Floats:
    """Return the ascending bin edges of each column, shape (n_features, BINS - 1).

    Edges are midpoints between neighbouring distinct values: between all of them if a column has at
    most `BINS`, else at its quantiles. Unused edges are the largest float, which nothing exceeds.
    """
    found = np.full((X.shape[1], BINS - 1), NEVER)
    quantiles = np.arange(1, BINS) * len(X) // BINS
    for edges, column in zip(found, np.sort(X.T + 0.0, axis=1), strict=True):
        firsts = np.flatnonzero(column[1:] > column[:-1]) + 1  # of each value but the smallest
        if len(firsts) >= BINS:
            firsts = np.unique(firsts[np.searchsorted(firsts, quantiles).clip(max=len(firsts) - 1)])
        edges[: len(firsts)] = 0.5 * column[firsts - 1] + 0.5 * column[firsts]
    return found


def bins_of(X: Floats, edges: Floats) -> Bytes:
    """Return the number of edges below each value of X, shape (n, d), as shape (d, n)."""
    bins = np.empty(X.shape[::-1], dtype=np.uint8)
    _bins_of(np.ascontiguousarray(X), edges, bins)
    return bins


def add_leaves(nodes: RankedCuts, leaves: Shorts, X: Floats, totals: Ints) -> None:
    """Add each row's leaves, shape (n_trees, LEAVES, S), to `totals`, shape (m, S)."""
    _add_leaves(nodes, leaves, X, totals, nodes.room)


def log_odds(totals: Ints, out: Floats) -> None:
    """Write log p_k / (1 - p_k) of the softmax of logits in `LEAF_UNIT`, shape (m, S).

    With S = 1 the logit itself is written.
    """
    _log_odds(totals, np.empty(totals.shape[1]), out)


@kernel
def _bins_of(X: Floats, edges: Floats, bins: Bytes) -> None:
    """Write the bins of the rows of X, shape (n, d), to `bins`, shape (d, n)."""


@kernel
def _add_leaves(nodes: RankedCuts, leaves: Shorts, X: Floats, totals: Ints, bins: Bytes) -> None:
    """Implement `add_leaves`; `bins` is scratch, `RankedCuts.room`."""


@kernel
def _log_odds(totals: Ints, terms: Floats, out: Floats) -> None:
    """Write the log-odds of logits, shape (m, S); `terms`, shape (S,), is scratch."""
