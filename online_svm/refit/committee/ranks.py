"""Ranks: a category as one feature of trees, whose values are in an order that a cut can use.

The other members see a category as a column of 0 and 1 for each of its values (`coding`). To a tree
that feature would be many, each of which tells one value from all others. Here it is one number:
the rank of its value by the share of class 1 among the rows of T that have it, for more than two
classes one number for each of the most frequent classes. The best cut of one such order is the best
way to part the values in two (Fisher 1958; Breiman and others 1984, theorem 4.5).

A value that no row has gets 0, where the share of all rows would stand; so a rank is never 0. Ranks
are of whole counts: of two equal shares the column that stands first is lower.
"""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from online_svm.compiled.jit import jit
from online_svm.refit.committee.forest import BINS
from online_svm.storage.arrays import require
from online_svm.storage.fields import Fields, floats, shorts, words
from online_svm.types import Arrays, Bools, Floats, Ints

MOST_CLASSES = 4  # whose orders there are, where there are more than two
MOST_RANK = BINS // 2 - 1
EDGES = np.append(np.arange(BINS - 2) + 0.5 - MOST_RANK, np.finfo(np.float64).max)
"""Of the bins of a feature of ranks: one lies between any two."""

FIELDS = Fields(words("places", "d"), floats("limits", "d"), shorts("ranks", "d orders"))


class Ranks(NamedTuple):
    """What the coded columns are to trees.

    Attributes
    ----------
    places : ndarray of int32, shape (d,)
        Feature of the trees that a column is; of a category, the first of its features.
    limits : ndarray of shape (d,)
        A row has the value of a column if it is larger there; 0 for a number.
    ranks : ndarray of int16, shape (d, orders)
        Of the value of a column in each order, from -MOST_RANK to MOST_RANK; 0 for a number.

    Examples
    --------
    >>> X = np.array([[7.0, 1.0, 0.0, 0.0], [8.0, 0.0, 1.0, 0.0], [9.0, 0.0, 0.0, 1.0]])
    >>> ranks = Ranks.fit(X, np.array([1, 0, 1]), 2, np.array([-1, 0, 0, 0]))
    >>> ranks.features(np.append(X, [[5.0, 0.0, 0.0, 0.0]], axis=0)).tolist()
    [[7.0, 1.0], [8.0, -1.0], [9.0, 2.0], [5.0, 0.0]]
    """

    places: NDArray[np.int32]
    limits: Floats
    ranks: NDArray[np.int16]

    @classmethod
    def fit(cls, X: Floats, codes: Ints, n_classes: int, categories: Ints) -> Self:
        """Return the ranks of the values of categories by the classes of the rows.

        Parameters
        ----------
        X : ndarray of shape (n, d)
            Each column of a category has one of two numbers.
        codes : ndarray of shape (n,)
        n_classes : int
        categories : ndarray of shape (d,)
            Number of the category that a column is of, ascending; -1 for a number.
        """
        are_values = categories >= 0
        # One of the two numbers is never above 0, the other never below.
        middle = 0.5 * X.min(axis=0, initial=0.0) + 0.5 * X.max(axis=0, initial=0.0)
        limits = np.where(are_values, middle, 0.0)
        has = (limits < X) & are_values
        counts = np.bincount(codes, minlength=n_classes)
        often = np.argsort(-counts, kind="stable") if n_classes > 2 else np.array([1])
        ranks = np.zeros((len(categories), orders_of(n_classes)), dtype=np.int16)
        for order, k in enumerate(often[: ranks.shape[1]].tolist()):
            # Counts are whole, so that sums are exact; of one row more the share is that of all.
            share = counts[k] / max(len(X), 1)
            shares = (has[codes == k].sum(axis=0) + share) / (has.sum(axis=0) + 1.0)
            for category in range(int(categories.max()) + 1):
                own = categories == category
                ranks[own, order] = _ranked(shares[own], share)
        return cls(places_of(categories, n_classes), limits, ranks)

    @property
    def width(self) -> int:
        """Number of features that the trees see."""
        return int(self.places[-1]) + (self.ranks.shape[1] if self.ranks[-1, 0] else 1)

    @property
    def are_ranks(self) -> Bools:
        """Which of these are ranks, shape (width,)."""
        are_ranks = np.zeros(self.width, dtype=np.bool_)
        firsts = self.places[self.ranks[:, 0] != 0]
        are_ranks[firsts[:, None] + np.arange(self.ranks.shape[1])] = True
        return are_ranks

    def features(self, X: Floats) -> Floats:
        """Return the rows of X as the trees see them, shape (n, width)."""
        out = np.zeros((len(X), self.width))
        _write(X, self.places, self.limits, self.ranks, out)
        return out

    def state(self) -> Arrays:
        """Return the attributes by name."""
        return FIELDS.arrays_of(self)

    @classmethod
    def from_state(cls, state: Arrays, n_features: int) -> Self:
        """Return the ranks that `state` describes, of rows with so many features.

        Raises
        ------
        ValueError
            If the parts do not fit one another.
        """
        ranks = cls(**FIELDS.values(cls, None, state))
        require(len(ranks.places) == n_features and ranks.ranks.size, "places")
        are_ranks = ranks.ranks != 0
        require((are_ranks.all(axis=1) == are_ranks.any(axis=1)).all(), "ranks")
        require((np.abs(ranks.ranks) <= MOST_RANK).all(), "ranks")
        # The next column is of the same category, or begins where this one ends.
        steps, values = np.diff(ranks.places), are_ranks[:, 0]
        goes_on = values[:-1] & values[1:] & (steps == 0)
        begins = steps == np.where(values[:-1], ranks.ranks.shape[1], 1)
        require(ranks.places[0] == 0 and (goes_on | begins).all(), "places")
        return ranks


def orders_of(n_classes: int) -> int:
    """Return how many features a category is, for so many classes."""
    return 1 if n_classes == 2 else min(n_classes, MOST_CLASSES)


def places_of(categories: Ints, n_classes: int) -> NDArray[np.int32]:
    """Return the feature that each column is, of a category the first; see `Ranks.fit`.

    Examples
    --------
    >>> places_of(np.array([-1, 0, 0, 1, 1, -1]), 3).tolist()
    [0, 1, 1, 4, 4, 7]
    """
    widths = np.where(categories >= 0, orders_of(n_classes), 1)
    goes_on = (np.diff(categories) == 0) & (categories[1:] >= 0)
    steps = np.where(goes_on, 0, widths[:-1])
    return np.append(0, np.cumsum(steps)).astype(np.int32)


def _ranked(shares: Floats, share: float) -> Ints:
    """Return the ranks of shares, less the one that `share` would have below all its equals."""
    order = np.argsort(np.append(share, shares), kind="stable")
    places = np.argsort(order, kind="stable")
    apart: Ints = places[1:] - places[0]
    most = max(int(np.abs(apart).max()), MOST_RANK)
    # As they are, unless there are too many; then away from 0, and so never 0.
    sizes = -(-np.abs(apart) * MOST_RANK // most)
    return np.where(apart > 0, sizes, -sizes)


@jit
def _write(
    X: Floats, places: NDArray[np.int32], limits: Floats, ranks: NDArray[np.int16], out: Floats
) -> None:
    """Write the features of the trees, which are 0 before."""
    for i in range(len(X)):
        for c in range(len(places)):
            if ranks[c, 0] == 0:
                out[i, places[c]] = X[i, c]
            elif X[i, c] > limits[c]:
                for order in range(ranks.shape[1]):
                    out[i, places[c] + order] = ranks[c, order]
