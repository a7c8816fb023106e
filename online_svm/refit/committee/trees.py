"""A member of boosted trees: fitted anew at each refit, on the rows of T alone."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from online_svm.refit.committee.boosting import Sample, grow_more, grow_two
from online_svm.refit.committee.forest import (
    BINS,
    LEAVES,
    MOST_LEAF,
    NODES,
    TREES_OF_MORE,
    TREES_OF_TWO,
    Forest,
    Shorts,
    add_leaves,
    bins_of,
    edges_of,
    log_odds,
)
from online_svm.refit.committee.ranks import EDGES, Ranks, places_of
from online_svm.storage.arrays import nest, require, under
from online_svm.storage.fields import Fields, bytes_of, floats, ints, shorts, words
from online_svm.types import Arrays, Floats, Ints

NEW_BINS_EVERY = 20

MODEL = Fields(
    words("features", f"trees {NODES}"), floats("cuts", f"trees {NODES}"),
    shorts("leaves", f"trees {LEAVES} S"),
)  # fmt: skip
"""Of a `TreeModel`."""


@dataclass(frozen=True, slots=True)
class TreeModel:
    """Log-odds of a class by boosted trees: of class 1 of two, else of each against the rest.

    The score of a row has the same bits whatever rows it is scored with.

    Attributes
    ----------
    features : ndarray of int32, shape (n_trees, NODES)
        Feature that a node looks at.
    cuts : ndarray of shape (n_trees, NODES)
        A row with a larger value goes right.
    leaves : ndarray of int16, shape (n_trees, LEAVES, S)
    ranks : Ranks or None
        Of the values of categories; None where all features are numbers.

    Examples
    --------
    >>> machine = TreeMachine(2, seed=0)
    >>> X, codes = np.arange(40.0)[:, None], np.arange(40) // 20
    >>> machine.fit(X, codes, np.ones(2), 40)
    >>> machine.model().scores(np.array([[3.0], [33.0]])).round(1)
    array([[-3.3],
           [ 3.3]])
    """

    features: NDArray[np.int32]
    cuts: Floats
    leaves: Shorts
    ranks: Ranks | None = None

    def scores(self, X: Floats) -> Floats:
        """Return the log-odds of the rows of X, shape (m, S)."""
        X = _seen(np.ascontiguousarray(X, dtype=np.float64), self.ranks)
        totals = np.zeros((len(X), self.leaves.shape[2]), dtype=np.int64)
        add_leaves(self.features, self.cuts, self.leaves, X, totals)
        out = np.empty(totals.shape)
        log_odds(totals, out)
        return out

    def state(self) -> Arrays:
        """Return the attributes by name."""
        return MODEL.arrays_of(self) | _ranks_state(self.ranks)

    @classmethod
    def from_state(cls, state: Arrays, n_features: int) -> Self:
        """Return the model that `state` describes, of rows with so many features.

        Raises
        ------
        ValueError
            If the parts do not fit one another.
        """
        ranks = _stored_ranks(state, n_features)
        model = cls(**MODEL.values(cls, None, state), ranks=ranks)
        seen = n_features if ranks is None else ranks.width
        require(model.features.size and model.features.max() < seen, "features")
        return model


class TreeMachine:
    """Boosted trees of rows in bins.

    The bins are made anew when there are twice as many rows, and at every `NEW_BINS_EVERY`-th fit.
    A learner makes a new machine where it fits the scaling anew, by the same rule.

    Parameters
    ----------
    n_classes : int
    seed : int
        Of the random cuts.
    categories : ndarray of shape (n_features,), optional
        Number of the category that a column is of, ascending; -1 for a number.

    Attributes
    ----------
    edges : ndarray of shape (n_features, BINS - 1)
        Of the bins of what the trees see; none before the first fit.
    ranks : Ranks or None
        Of the values of categories in the last fit.
    binned_on, fits : int
        Rows that they were made of; fits since.
    forest : Forest
    """

    def __init__(self, n_classes: int, seed: int, categories: Ints | None = None) -> None:
        self._seed, self._categories = seed, categories
        self.ranks: Ranks | None = None
        self._trees, self._decisions = _shape(n_classes)
        self.edges: Floats = np.empty((0, BINS - 1))
        self.binned_on = self.fits = 0
        self.forest = self._bare()

    def fit(self, X: Floats, codes: Ints, penalties: Floats, number: int) -> None:
        """Grow a forest on the rows of X; nothing is left of the one before.

        Without rows its scores are 0.

        Parameters
        ----------
        X : ndarray of shape (n, n_features)
        codes : ndarray of shape (n,)
        penalties : ndarray of shape (n_classes,)
            The examples of a class weigh in proportion to its own.
        number : int
            Of the fit: another one tries other cuts.
        """
        if self._categories is not None:
            self.ranks = Ranks.fit(X, codes, len(penalties), self._categories)
            X = self.ranks.features(X)
        if len(X) >= 2 * self.binned_on or self.fits == NEW_BINS_EVERY:
            self.edges, self.binned_on, self.fits = edges_of(X), len(X), 0
            if self.ranks is not None:
                self.edges[self.ranks.are_ranks] = EDGES
        self.fits += 1
        self.forest = self._bare()
        if not len(X):
            return
        weights = np.asarray(penalties, dtype=np.float64)[codes]
        counts = np.bincount(codes, minlength=len(penalties)).tolist()
        whole = sum(count * p for count, p in zip(counts, penalties.tolist(), strict=True))
        sample = Sample(bins_of(X, self.edges), codes, weights * (len(codes) / whole))
        grow = grow_two if self._decisions == 1 else grow_more
        grow(sample, self._seed, number, self.forest)

    def model(self) -> TreeModel:
        """Return the forest as a scorer."""
        features, bins, leaves = self.forest
        # Beyond the last bin lies nothing.
        largest = np.full((len(self.edges), 1), np.finfo(np.float64).max)
        cuts = np.concatenate([self.edges, largest], axis=1)[features, bins]
        return TreeModel(features, cuts, leaves, self.ranks)

    def state(self) -> Arrays:
        """Return edges, counts, forest and ranks by name."""
        counts = {"binned_on": np.array([self.binned_on]), "fits": np.array([self.fits])}
        ranks = _ranks_state(self.ranks)
        return {"edges": self.edges, **counts, **self.forest._asdict(), **ranks}

    @classmethod
    def from_state(
        cls, state: Arrays, n_classes: int, seed: int, categories: Ints | None = None
    ) -> Self:
        """Return the machine that `state` describes, which `check` has passed."""
        machine = cls(n_classes, seed, categories)
        if categories is not None:
            machine.ranks = Ranks.from_state(under("ranks", state), len(categories))
        machine.edges = state["edges"].copy()
        machine.binned_on, machine.fits = int(state["binned_on"][0]), int(state["fits"][0])
        machine.forest = Forest(*(state[name].copy() for name in Forest._fields))
        return machine

    @staticmethod
    def check(state: Arrays, n_classes: int, n_features: int, categories: Ints | None) -> None:
        """Check the state of a machine for so many classes, and columns of these categories.

        Raises
        ------
        InvalidSnapshot, ValueError
            If a part is absent, or does not fit.
        """
        seen, ranks = n_features, _stored_ranks(state, n_features)
        require((ranks is None) == (categories is None), "ranks")
        if ranks is not None and categories is not None:
            seen = ranks.width
            require((ranks.places == places_of(categories, n_classes)).all(), "places")
            require(((ranks.ranks[:, 0] != 0) == (categories >= 0)).all(), "ranks")
        trees, decisions = _shape(n_classes)
        Fields(
            floats("edges", f"{seen} {BINS - 1}"),
            ints("binned_on", "1"), ints("fits", "1", below=NEW_BINS_EVERY + 1),
            words("features", f"{trees} {NODES}", below=seen),
            bytes_of("bins", f"{trees} {NODES}"),
            shorts("leaves", f"{trees} {LEAVES} {decisions}", least=-MOST_LEAF),
        ).values(TreeMachine, None, state)  # fmt: skip

    def _bare(self) -> Forest:
        return Forest(
            np.zeros((self._trees, NODES), dtype=np.int32),
            np.zeros((self._trees, NODES), dtype=np.uint8),
            np.zeros((self._trees, LEAVES, self._decisions), dtype=np.int16),
        )


def _seen(X: Floats, ranks: Ranks | None) -> Floats:
    """Return rows as the trees see them."""
    return X if ranks is None else ranks.features(X)


def _ranks_state(ranks: Ranks | None) -> Arrays:
    return {} if ranks is None else nest("ranks", ranks.state())


def _stored_ranks(state: Arrays, n_features: int) -> Ranks | None:
    """Return the ranks that a state has, if any, of rows with so many features."""
    parts = under("ranks", state)
    return Ranks.from_state(parts, n_features) if parts else None


def _shape(n_classes: int) -> tuple[int, int]:
    """Return trees and decision functions for so many classes."""
    return (TREES_OF_TWO, 1) if n_classes == 2 else (TREES_OF_MORE, n_classes)
