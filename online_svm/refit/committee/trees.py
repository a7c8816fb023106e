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
from online_svm.storage.arrays import require
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

    def scores(self, X: Floats) -> Floats:
        """Return the log-odds of the rows of X, shape (m, S)."""
        X = np.ascontiguousarray(X, dtype=np.float64)
        totals = np.zeros((len(X), self.leaves.shape[2]), dtype=np.int64)
        add_leaves(self.features, self.cuts, self.leaves, X, totals)
        out = np.empty(totals.shape)
        log_odds(totals, out)
        return out

    def state(self) -> Arrays:
        """Return the attributes by name."""
        return MODEL.arrays_of(self)

    @classmethod
    def from_state(cls, state: Arrays, n_features: int) -> Self:
        """Return the model that `state` describes, of rows with so many features.

        Raises
        ------
        ValueError
            If the parts do not fit one another.
        """
        model = cls(**MODEL.values(cls, None, state))
        require(model.features.size and model.features.max() < n_features, "features")
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

    Attributes
    ----------
    edges : ndarray of shape (n_features, BINS - 1)
        Of the bins; none before the first fit.
    binned_on, fits : int
        Rows that they were made of; fits since.
    forest : Forest
    """

    def __init__(self, n_classes: int, seed: int) -> None:
        self._seed = seed
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
        if len(X) >= 2 * self.binned_on or self.fits == NEW_BINS_EVERY:
            self.edges, self.binned_on, self.fits = edges_of(X), len(X), 0
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
        return TreeModel(features, cuts, leaves)

    def state(self) -> Arrays:
        """Return edges, counts and forest by name."""
        counts = {"binned_on": np.array([self.binned_on]), "fits": np.array([self.fits])}
        return {"edges": self.edges, **counts, **self.forest._asdict()}

    @classmethod
    def from_state(cls, state: Arrays, n_classes: int, seed: int) -> Self:
        """Return the machine that `state` describes; see `fields`."""
        machine = cls(n_classes, seed)
        machine.edges = state["edges"].copy()
        machine.binned_on, machine.fits = int(state["binned_on"][0]), int(state["fits"][0])
        machine.forest = Forest(*(state[name].copy() for name in Forest._fields))
        return machine

    @staticmethod
    def fields(n_classes: int, n_features: int) -> Fields:
        """Return the fields of the state of a machine for so many classes and features."""
        trees, decisions = _shape(n_classes)
        return Fields(
            floats("edges", f"{n_features} {BINS - 1}"),
            ints("binned_on", "1"), ints("fits", "1", below=NEW_BINS_EVERY + 1),
            words("features", f"{trees} {NODES}", below=n_features),
            bytes_of("bins", f"{trees} {NODES}"),
            shorts("leaves", f"{trees} {LEAVES} {decisions}", least=-MOST_LEAF),
        )  # fmt: skip

    def _bare(self) -> Forest:
        return Forest(
            np.zeros((self._trees, NODES), dtype=np.int32),
            np.zeros((self._trees, NODES), dtype=np.uint8),
            np.zeros((self._trees, LEAVES, self._decisions), dtype=np.int16),
        )


def _shape(n_classes: int) -> tuple[int, int]:
    """Return trees and decision functions for so many classes."""
    return (TREES_OF_TWO, 1) if n_classes == 2 else (TREES_OF_MORE, n_classes)
