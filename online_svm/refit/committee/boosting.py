"""Boosted trees with random cuts; all sums are integers, so the bytes are equal on any machine.

Newton boosting of the logistic loss or, for more than two classes, of the softmax loss. A leaf then
has a step for each class, and the structure of a tree is fitted to the sum of the class gradients
with random signs. A node tries a few random features, each cut at the value of a random row, and
keeps the best cut (Geurts, Ernst and Wehenkel 2006). Such cuts rarely separate the rare values of a
column that is mostly one value; every second cut can be uniform over the used bins instead.

Gradients and curvatures are integers in units of 2^-s, packed into one int64: one addition adds
both, and sums are exact in any order. So the cuts of a node with many rows are judged by the sums
of its bins: of two children, those of the smaller one are summed, and subtracted from the parent's
for the larger one. Random numbers are hashes of (key, tree, node, trial).
"""

from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np

from online_svm.compiled.kernel import kernel
from online_svm.compiled.ordered_sums import in_turn
from online_svm.refit.committee.forest import (
    BINS,
    DEPTH,
    LEAVES,
    MAX_LEAF,
    NEVER,
    NODES,
    TREES_OF_MORE,
    TREES_OF_TWO,
    Forest,
    RankedCuts,
    Shorts,
    Words,
    add_leaves,
    bins_of,
    edges_of,
    log_odds,
)
from online_svm.refit.committee.ranks import EDGES, Ranks, places_of
from online_svm.storage.state import require
from online_svm.storage.state_schema import (
    StateSchema,
    StoredArrays,
    StoredRecord,
    bytes_of,
    floats,
    one,
    record,
    shorts,
    words,
)
from online_svm.types import Bytes, Floats, Ints


class Sample(NamedTuple):
    """The training data of a forest."""

    bins: Bytes  # shape (n_features, n)
    bins_of_rows: Bytes  # shape (n, n_features); the same
    # Shape (n_features,); every second cut is uniform over the bins below it; 0 for no such cuts.
    uniform_below: Bytes
    codes: Ints  # shape (n,)
    weights: Floats  # shape (n,); positive, with mean 1

    @classmethod
    def of(cls, bins: Bytes, codes: Ints, weights: Floats, *, uniform: bool = False) -> Self:
        """Return a sample; if `uniform`, every second cut is uniform over the used bins."""
        below = bins.max(axis=1) if uniform else np.zeros(len(bins), dtype=np.uint8)
        return cls(bins, np.ascontiguousarray(bins.T), below, codes, weights)


class Boosting(NamedTuple):
    """The constants of boosting."""

    shrinkage: float = 0.15
    ridge: float = 1.0  # positive; penalty on the step of a leaf, added to its curvature
    min_curvature: float = 1.0  # positive; on either side of a cut
    cuts: int = 8  # random cuts that a node tries; a multiple of 4


MAX_FEATURES_A_CUT = 2
"""Features, as a multiple of the cuts of a node, beyond which summing bins is slower."""

MEMBER = Boosting()
"""The constants of the committee's member, which sees the window."""


class _ScratchOfTwo(NamedTuple):
    rows: Words  # shape (2, n)
    pairs: Ints  # shape (n,)
    sums: Ints  # `_room_of_sums`
    values: Floats  # shape (n,)


class _ScratchOfMore(NamedTuple):
    rows: Words  # shape (2, n)
    pairs: Ints  # shape (n,)
    sums: Ints  # `_room_of_sums`
    of_classes: Floats  # shape (2, K, n)
    class_pairs: Ints  # shape (K, n)
    of_rows: Floats  # shape (4, n)
    base: Floats  # shape (K,)


def grow_two(sample: Sample, boosting: Boosting, seed: int, number: int, forest: Forest) -> None:
    """Write the trees for the log-odds of class 1 of two to `forest`."""
    n = len(sample.codes)
    scratch = _ScratchOfTwo(
        rows=np.empty((2, n), dtype=np.int32),
        pairs=np.empty(n, dtype=np.int64),
        sums=_room_of_sums(sample, boosting),
        values=np.empty(n),
    )
    _grow_two(sample, boosting, seed, number, scratch, forest)


def grow_more(sample: Sample, boosting: Boosting, seed: int, number: int, forest: Forest) -> None:
    """Write the trees for the logits of three or more classes to `forest`."""
    n, classes = len(sample.codes), forest.leaves.shape[2]
    scratch = _ScratchOfMore(
        rows=np.empty((2, n), dtype=np.int32),
        pairs=np.empty(n, dtype=np.int64),
        sums=_room_of_sums(sample, boosting),
        of_classes=np.empty((2, classes, n)),
        class_pairs=np.empty((classes, n), dtype=np.int64),
        of_rows=np.empty((4, n)),
        base=np.empty(classes),
    )
    _grow_more(sample, boosting, seed, number, scratch, forest)


def _room_of_sums(sample: Sample, boosting: Boosting) -> Ints:
    """Return room for the sums of bins of a node at each level, shape (DEPTH, n_features, BINS).

    The room is empty if to judge each cut row by row is faster.
    """
    d = len(sample.bins)
    levels = DEPTH if d <= MAX_FEATURES_A_CUT * boosting.cuts else 0
    return np.empty((levels, d, BINS), dtype=np.int64)


@kernel
def _grow_two(
    sample: Sample,
    boosting: Boosting,
    seed: int,
    number: int,
    scratch: _ScratchOfTwo,
    forest: Forest,
) -> None:
    """Implement `grow_two` with scratch."""


@kernel
def _grow_more(
    sample: Sample,
    boosting: Boosting,
    seed: int,
    number: int,
    scratch: _ScratchOfMore,
    forest: Forest,
) -> None:
    """Implement `grow_more` with scratch."""


NEW_BINS_EVERY = 20  # fits


@dataclass(frozen=True, slots=True)
class TreeModel(StoredRecord):
    """Log-odds by boosted trees: for class 1 of two, else for each class against the rest.

    The bits of a row's score do not depend on the other rows.
    """

    _stored = StateSchema(
        words("features", f"trees {NODES}"), floats("cuts", f"trees {NODES}"),
        shorts("leaves", f"trees {LEAVES} S"), record("ranks", of=Ranks, optional=True),
    )  # fmt: skip

    features: Words  # shape (n_trees, NODES); feature that a node tests
    cuts: Floats  # shape (n_trees, NODES); a row with a larger value goes right
    leaves: Shorts  # shape (n_trees, LEAVES, S); see `Forest`
    ranks: Ranks | None = None  # ranks of category values; None if all features are numbers
    _nodes: RankedCuts = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_nodes", RankedCuts.of(self.features, self.cuts))

    def scores(self, X: Floats) -> Floats:
        """Return the log-odds of the rows of X, shape (m, S)."""
        X = np.ascontiguousarray(X, dtype=np.float64)
        X = X if self.ranks is None else self.ranks.features(X)
        totals = np.zeros((len(X), self.leaves.shape[2]), dtype=np.int64)
        add_leaves(self._nodes, self.leaves, X, totals)
        out = np.empty(totals.shape)
        log_odds(totals, out)
        return out

    def _on_restored(self) -> None:
        require(self.features.size and self.cuts.size, "features")

    def check_width(self, n_features: int) -> None:
        """Raise ValueError unless the trees take rows with `n_features` features."""
        require(self.features.max() < _width(self.ranks, n_features), "features")


class TreeMachine(StoredArrays):
    """Boosted trees of binned rows.

    The bins are computed again when the rows have doubled, and at every `NEW_BINS_EVERY`-th fit. A
    learner makes a new machine when it fits the scaling, by the same rule.

    `seed`: seed of the random cuts.
    `categories`, shape (n_features,): category number of each column, ascending; -1 for a number.
    """

    _stored = StateSchema(
        floats("edges", f"width {BINS - 1}"),
        one("binned_on"), one("fits", below=NEW_BINS_EVERY + 1),
        words("forest.features"), bytes_of("forest.bins"),
        shorts("forest.leaves", least=-MAX_LEAF), record("ranks", of=Ranks, optional=True),
    )  # fmt: skip

    def __init__(self, n_classes: int, seed: int, categories: Ints | None = None) -> None:
        self._n_classes, self._seed, self._categories = n_classes, seed, categories
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
        total = in_turn(count * p for count, p in zip(counts, penalties.tolist(), strict=True))
        sample = Sample.of(bins_of(X, self.edges), codes, weights * (len(codes) / total))
        grow = grow_two if self._decisions == 1 else grow_more
        grow(sample, MEMBER, self._seed, number, self.forest)

    def model(self) -> TreeModel:
        """Return the forest as a scorer."""
        features, bins, leaves = self.forest
        no_cut = np.full((len(self.edges), 1), NEVER)
        cuts = np.concatenate([self.edges, no_cut], axis=1)[features, bins]
        return TreeModel(features, cuts, leaves, self.ranks)

    def _on_restored(self) -> None:
        categories, ranks = self._categories, self.ranks
        require(self.forest.features.max() < len(self.edges), "features")
        require((ranks is None) == (categories is None), "ranks")
        if ranks is not None and categories is not None:
            require(np.array_equal(ranks.places, places_of(categories, self._n_classes)), "places")
            require(((ranks.ranks[:, 0] != 0) == (categories >= 0)).all(), "ranks")

    def check_width(self, n_features: int) -> None:
        """Raise ValueError unless the bins are those of rows with `n_features` features."""
        require(len(self.edges) == _width(self.ranks, n_features), "edges")

    def _zeros(self) -> Forest:
        return Forest(
            np.zeros((self._trees, NODES), dtype=np.int32),
            np.zeros((self._trees, NODES), dtype=np.uint8),
            np.zeros((self._trees, LEAVES, self._decisions), dtype=np.int16),
        )


def _width(ranks: Ranks | None, n_features: int) -> int:
    """Return the number of features that trees see of rows with `n_features` features."""
    if ranks is None:
        return n_features
    require(len(ranks.places) == n_features, "places")
    return ranks.width


def _shape(n_classes: int) -> tuple[int, int]:
    """Return the numbers of trees and of decision functions."""
    return (TREES_OF_TWO, 1) if n_classes == 2 else (TREES_OF_MORE, n_classes)
