"""Ranks: a category as one ordered feature of trees.

The other members use one 0/1 column for each value of a category (`feature_encoder`). For a tree
these would be many features, each of which separates one value from all others. Here a category is
one number: the rank of its value by the share of class 1 among the rows of T with this value. For
more than two classes it is one such number for each of the most frequent classes. The best cut in
this order is the best binary split of the values (Fisher 1958; Breiman and others 1984, theorem
4.5).

A value that is not in T gets the rank 0, the position of the overall share; all other ranks differ
from 0. Ranks come from integer counts; on equal shares the first column has the lower rank.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from online_svm.compiled.kernel import kernel
from online_svm.refit.committee.forest import BINS
from online_svm.storage.state import require
from online_svm.storage.state_schema import StateSchema, StoredRecord, floats, shorts, words
from online_svm.types import Bools, Floats, Ints

MAX_ORDERS = 4  # with more than two classes, the number of them that rank the values
MAX_RANK = BINS // 2 - 1
EDGES = np.append(np.arange(BINS - 2) + 0.5 - MAX_RANK, np.finfo(np.float64).max)
"""Bin edges of a feature of ranks: one between any two ranks."""


@dataclass(frozen=True, slots=True)
class Ranks(StoredRecord):
    """The mapping from encoded columns to features of trees."""

    _stored = StateSchema(words("places", "d"), floats("limits", "d"), shorts("ranks", "d orders"))

    # Shape (d,); tree feature of each column; for a category, its first feature.
    places: NDArray[np.int32]
    # Shape (d,); a row has the category value of a column if it exceeds this limit; 0 for a number.
    limits: Floats
    # Shape (d, orders); rank of a column's value in each order, from -MAX_RANK to MAX_RANK; 0 for
    # a number.
    ranks: NDArray[np.int16]

    @classmethod
    def fit(cls, X: Floats, codes: Ints, n_classes: int, categories: Ints) -> Self:
        """Return the ranks of category values by the classes of the rows.

        `X`, shape (n, d): each column of a category holds one of two numbers.
        `codes`, shape (n,).
        `categories`, shape (d,): category number of each column, ascending; -1 for a number.
        """
        are_values = categories >= 0
        # One of the two numbers is at most 0, the other at least 0.
        middle = 0.5 * X.min(axis=0, initial=0.0) + 0.5 * X.max(axis=0, initial=0.0)
        limits = np.where(are_values, middle, 0.0)
        has = (limits < X) & are_values
        counts = np.bincount(codes, minlength=n_classes)
        often = np.argsort(-counts, kind="stable") if n_classes > 2 else np.array([1])
        ranks = np.zeros((len(categories), orders_of(n_classes)), dtype=np.int16)
        for order, k in enumerate(often[: ranks.shape[1]].tolist()):
            # Sums of counts are exact; one pseudo-row with the overall share smooths them.
            share = counts[k] / max(len(X), 1)
            shares = (has[codes == k].sum(axis=0) + share) / (has.sum(axis=0) + 1.0)
            for category in range(int(categories.max()) + 1):
                own = categories == category
                ranks[own, order] = ranked(shares[own], share)
        return cls(places_of(categories, n_classes), limits, ranks)

    @property
    def width(self) -> int:
        """Number of features that the trees see."""
        return int(self.places[-1]) + (self.ranks.shape[1] if self.ranks[-1, 0] else 1)

    @property
    def are_ranks(self) -> Bools:
        """Whether each tree feature is a rank, shape (width,)."""
        are_ranks = np.zeros(self.width, dtype=np.bool_)
        firsts = self.places[self.ranks[:, 0] != 0]
        are_ranks[firsts[:, None] + np.arange(self.ranks.shape[1])] = True
        return are_ranks

    def features(self, X: Floats) -> Floats:
        """Return the tree features of the rows of X, shape (n, width)."""
        out = np.zeros((len(X), self.width))
        _write(X, self.places, self.limits, self.ranks, out)
        return out

    def _on_restored(self) -> None:
        require(self.ranks.size, "places")
        are_ranks = self.ranks != 0
        require((are_ranks.all(axis=1) == are_ranks.any(axis=1)).all(), "ranks")
        require((np.abs(self.ranks) <= MAX_RANK).all(), "ranks")
        # Each column belongs to the category of the last one, or to the next feature.
        steps, values = np.diff(self.places), are_ranks[:, 0]
        continues = values[:-1] & values[1:] & (steps == 0)
        begins = steps == np.where(values[:-1], self.ranks.shape[1], 1)
        require(self.places[0] == 0 and (continues | begins).all(), "places")


def orders_of(n_classes: int) -> int:
    """Return the number of tree features of a category."""
    return 1 if n_classes == 2 else min(n_classes, MAX_ORDERS)


def places_of(categories: Ints, n_classes: int) -> NDArray[np.int32]:
    """Return the first tree feature of each column; see `Ranks.fit`."""
    widths = np.where(categories >= 0, orders_of(n_classes), 1)
    continues = (np.diff(categories) == 0) & (categories[1:] >= 0)
    steps = np.where(continues, 0, widths[:-1])
    return np.append(0, np.cumsum(steps)).astype(np.int32)


def ranked(shares: Floats, share: float) -> Ints:
    """Return the ranks of `shares` relative to that of `share`, which ranks below equal shares."""
    order = np.argsort(np.append(share, shares), kind="stable")
    places = np.argsort(order, kind="stable")
    relative: Ints = places[1:] - places[0]
    largest = max(int(np.abs(relative).max()), MAX_RANK)
    # Ranks beyond MAX_RANK are scaled down; rounding is away from 0, so that none becomes 0.
    sizes = -(-np.abs(relative) * MAX_RANK // largest)
    return np.where(relative > 0, sizes, -sizes)


@kernel
def _write(
    X: Floats, places: NDArray[np.int32], limits: Floats, ranks: NDArray[np.int16], out: Floats
) -> None:
    """Write the tree features to `out`, which must be 0."""
