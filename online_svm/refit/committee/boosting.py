"""Boosted trees with random cuts; all sums are integers, so the bytes are equal on any machine.

Newton boosting of the logistic loss or, for more than two classes, of the softmax loss. A leaf then
has a step for each class, and the structure of a tree is fitted to the sum of the class gradients
with random signs. A node tries a few random features, each cut at the value of a random row, and
keeps the best cut, without histograms or sorting (Geurts, Ernst and Wehenkel 2006).

Gradients and curvatures are integers in units of 2^-s, packed into one int64: one addition adds
both, and sums are exact in any order. Random numbers are hashes of (key, tree, node, trial).
"""

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from online_svm.compiled.kernel import kernel
from online_svm.refit.committee.forest import (
    BINS,
    LEAVES,
    MAX_LEAF,
    NODES,
    TREES_OF_MORE,
    TREES_OF_TWO,
    Bytes,
    Forest,
    Shorts,
    Words,
    add_leaves,
    bins_of,
    edges_of,
    log_odds,
)
from online_svm.refit.committee.ranks import EDGES, Ranks, places_of
from online_svm.storage.state import nest, require, under
from online_svm.storage.state_schema import StateSchema, bytes_of, floats, ints, shorts, words
from online_svm.types import Arrays, Floats, Ints


class Sample(NamedTuple):
    """The training data of a forest."""

    bins: Bytes  # shape (n_features, n)
    codes: Ints  # shape (n,)
    weights: Floats  # shape (n,); positive, with mean 1


class _ScratchOfTwo(NamedTuple):
    rows: Words  # shape (2, n)
    pairs: Ints  # shape (n,)
    values: Floats  # shape (n,)


class _ScratchOfMore(NamedTuple):
    rows: Words  # shape (2, n)
    pairs: Ints  # shape (n,)
    of_classes: Floats  # shape (2, K, n)
    class_pairs: Ints  # shape (K, n)
    of_rows: Floats  # shape (4, n)
    base: Floats  # shape (K,)


def grow_two(sample: Sample, seed: int, number: int, forest: Forest) -> None:
    """Write the trees for the log-odds of class 1 of two to `forest`."""
    n = len(sample.codes)
    rows, pairs = np.empty((2, n), dtype=np.int32), np.empty(n, dtype=np.int64)
    _grow_two(sample, seed, number, _ScratchOfTwo(rows, pairs, np.empty(n)), forest)


def grow_more(sample: Sample, seed: int, number: int, forest: Forest) -> None:
    """Write the trees for the logits of three or more classes to `forest`."""
    n, classes = len(sample.codes), forest.leaves.shape[2]
    scratch = _ScratchOfMore(
        rows=np.empty((2, n), dtype=np.int32),
        pairs=np.empty(n, dtype=np.int64),
        of_classes=np.empty((2, classes, n)),
        class_pairs=np.empty((classes, n), dtype=np.int64),
        of_rows=np.empty((4, n)),
        base=np.empty(classes),
    )
    _grow_more(sample, seed, number, scratch, forest)


@kernel
def _grow_two(
    sample: Sample, seed: int, number: int, scratch: _ScratchOfTwo, forest: Forest
) -> None:
    """Implement `grow_two` with scratch."""


@kernel
def _grow_more(
    sample: Sample, seed: int, number: int, scratch: _ScratchOfMore, forest: Forest
) -> None:
    """Implement `grow_more` with scratch."""


NEW_BINS_EVERY = 20  # fits

TREE_MODEL_SCHEMA = StateSchema(
    words("features", f"trees {NODES}"), floats("cuts", f"trees {NODES}"),
    shorts("leaves", f"trees {LEAVES} S"),
)  # fmt: skip
"""Stored fields of a `TreeModel`."""


@dataclass(frozen=True, slots=True)
class TreeModel:
    """Log-odds by boosted trees: for class 1 of two, else for each class against the rest.

    The bits of a row's score do not depend on the other rows.
    """

    features: Words  # shape (n_trees, NODES); feature that a node tests
    cuts: Floats  # shape (n_trees, NODES); a row with a larger value goes right
    leaves: Shorts  # shape (n_trees, LEAVES, S); see `Forest`
    ranks: Ranks | None = None  # ranks of category values; None if all features are numbers

    def scores(self, X: Floats) -> Floats:
        """Return the log-odds of the rows of X, shape (m, S)."""
        X = np.ascontiguousarray(X, dtype=np.float64)
        X = X if self.ranks is None else self.ranks.features(X)
        totals = np.zeros((len(X), self.leaves.shape[2]), dtype=np.int64)
        add_leaves(self.features, self.cuts, self.leaves, X, totals)
        out = np.empty(totals.shape)
        log_odds(totals, out)
        return out

    def state(self) -> Arrays:
        """Return the attributes by name."""
        return TREE_MODEL_SCHEMA.arrays_of(self) | _ranks_state(self.ranks)

    @classmethod
    def from_state(cls, state: Arrays, n_features: int) -> Self:
        """Return the model described by `state`, for rows with `n_features` features."""
        ranks = _stored_ranks(state, n_features)
        model = cls(**TREE_MODEL_SCHEMA.values(cls, None, state), ranks=ranks)
        width = n_features if ranks is None else ranks.width
        require(model.features.size and model.features.max() < width, "features")
        return model


class TreeMachine:
    """Boosted trees of binned rows.

    The bins are computed again when the rows have doubled, and at every `NEW_BINS_EVERY`-th fit. A
    learner makes a new machine when it fits the scaling, by the same rule.

    `seed`: seed of the random cuts.
    `categories`, shape (n_features,): category number of each column, ascending; -1 for a number.
    """

    def __init__(self, n_classes: int, seed: int, categories: Ints | None = None) -> None:
        self._seed, self._categories = seed, categories
        self.ranks: Ranks | None = None  # ranks of category values in the last fit
        self._trees, self._decisions = _shape(n_classes)
        # Shape (n_features, BINS - 1): bin edges of the tree features; empty before the first fit.
        self.edges: Floats = np.empty((0, BINS - 1))
        self.binned_on = self.fits = 0  # number of rows when the bins were computed; fits since
        self.forest = self._zeros()

    def fit(self, X: Floats, codes: Ints, penalties: Floats, number: int) -> None:
        """Grow a new forest on the rows of X; without rows its scores are 0.

        `X`, shape (n, n_features).
        `codes`, shape (n,).
        `penalties`, shape (n_classes,): relative weight of the examples of each class.
        `number`: number of the fit; each number draws different cuts.
        """
        if self._categories is not None:
            self.ranks = Ranks.fit(X, codes, len(penalties), self._categories)
            X = self.ranks.features(X)
        if len(X) >= 2 * self.binned_on or self.fits == NEW_BINS_EVERY:
            self.edges, self.binned_on, self.fits = edges_of(X), len(X), 0
            if self.ranks is not None:
                self.edges[self.ranks.are_ranks] = EDGES
        self.fits += 1
        self.forest = self._zeros()
        if not len(X):
            return
        weights = np.asarray(penalties, dtype=np.float64)[codes]
        counts = np.bincount(codes, minlength=len(penalties)).tolist()
        total = sum(count * p for count, p in zip(counts, penalties.tolist(), strict=True))
        sample = Sample(bins_of(X, self.edges), codes, weights * (len(codes) / total))
        grow = grow_two if self._decisions == 1 else grow_more
        grow(sample, self._seed, number, self.forest)

    def model(self) -> TreeModel:
        """Return the forest as a scorer."""
        features, bins, leaves = self.forest
        no_cut = np.full((len(self.edges), 1), np.finfo(np.float64).max)  # no value exceeds it
        cuts = np.concatenate([self.edges, no_cut], axis=1)[features, bins]
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
        """Return the machine described by `state`, which must have passed `check`."""
        machine = cls(n_classes, seed, categories)
        if categories is not None:
            machine.ranks = Ranks.from_state(under("ranks", state), len(categories))
        machine.edges = state["edges"].copy()
        machine.binned_on, machine.fits = int(state["binned_on"][0]), int(state["fits"][0])
        machine.forest = Forest(*(state[name].copy() for name in Forest._fields))
        return machine

    @staticmethod
    def check(state: Arrays, n_classes: int, n_features: int, categories: Ints | None) -> None:
        """Check the state of a machine for these classes and categories.

        Raises InvalidSnapshot or ValueError if a part is missing or malformed.
        """
        width, ranks = n_features, _stored_ranks(state, n_features)
        require((ranks is None) == (categories is None), "ranks")
        if ranks is not None and categories is not None:
            width = ranks.width
            require((ranks.places == places_of(categories, n_classes)).all(), "places")
            require(((ranks.ranks[:, 0] != 0) == (categories >= 0)).all(), "ranks")
        trees, decisions = _shape(n_classes)
        StateSchema(
            floats("edges", f"{width} {BINS - 1}"),
            ints("binned_on", "1"), ints("fits", "1", below=NEW_BINS_EVERY + 1),
            words("features", f"{trees} {NODES}", below=width),
            bytes_of("bins", f"{trees} {NODES}"),
            shorts("leaves", f"{trees} {LEAVES} {decisions}", least=-MAX_LEAF),
        ).values(TreeMachine, None, state)  # fmt: skip

    def _zeros(self) -> Forest:
        return Forest(
            np.zeros((self._trees, NODES), dtype=np.int32),
            np.zeros((self._trees, NODES), dtype=np.uint8),
            np.zeros((self._trees, LEAVES, self._decisions), dtype=np.int16),
        )


def _ranks_state(ranks: Ranks | None) -> Arrays:
    return {} if ranks is None else nest("ranks", ranks.state())


def _stored_ranks(state: Arrays, n_features: int) -> Ranks | None:
    """Return the ranks in a state, if any, for rows with `n_features` columns."""
    parts = under("ranks", state)
    return Ranks.from_state(parts, n_features) if parts else None


def _shape(n_classes: int) -> tuple[int, int]:
    """Return the numbers of trees and of decision functions."""
    return (TREES_OF_TWO, 1) if n_classes == 2 else (TREES_OF_MORE, n_classes)
