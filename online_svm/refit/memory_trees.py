"""The forests of the memory: constants, what a fit needs, and the fitted model.

The long trees learn all kept rows alike. The mid trees weight a row by its age, so that they follow
a stream that changes. Both see a category as its rank by the share of a class, as the committee's
trees do (`refit.committee.ranks`).
"""

from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np

from online_svm.compiled.elementary import exps
from online_svm.compiled.kernel import kernel
from online_svm.compiled.ordered_sums import sum_rows
from online_svm.refit.committee.boosting import Boosting, Sample, grow_more, grow_two
from online_svm.refit.committee.forest import (
    BINS,
    LEAVES,
    NEVER,
    NODES,
    Forest,
    RankedCuts,
    Shorts,
    Words,
)
from online_svm.refit.committee.ranks import MAX_RANK, orders_of, ranked
from online_svm.storage.state import pack, require, unpack
from online_svm.storage.state_schema import (
    StateSchema,
    StoredRecord,
    bytes_of,
    floats,
    ints,
    number,
    shorts,
    words,
)
from online_svm.types import Bools, Bytes, Floats, Ints

N_CODES = 256  # codes of a category fit into a byte


class ForestKind(NamedTuple):
    """The constants of one of the memory's forests."""

    name: str
    trees_of_two: int
    trees_of_more: int
    boosting: Boosting
    half_life: float | None = None  # rows after which a weight is halved; None: equal weights

    def weights(self, n: int) -> Floats:
        """Return the weights of the newest n rows, the newest last, with mean 1."""
        if self.half_life is None:
            return np.ones(n)
        ages: Floats = np.arange(1.0 - n, 1.0) * (LN2 / self.half_life)
        weights = exps(ages)
        return np.asarray(weights * (n / sum_rows(weights[:, None])[0]))

    def size(self, n: int) -> int:
        """Return how many of n rows, the newest, weigh at least a tenth of the newest."""
        if self.half_life is None:
            return n
        return min(n, 1 + int(self.half_life * HALVINGS))


HALVINGS = 3.32  # log2(10)
LN2 = 0.6931471805599453

LONG = ForestKind("long", 200, 400, Boosting(0.08, 5.0, 1.0, 32))
MID = ForestKind("mid", 100, 200, Boosting(0.1, 5.0, 1.0, 16), half_life=5000.0)
KINDS = {kind.name: kind for kind in (LONG, MID)}

TASK_SCHEMA = StateSchema(
    number("n_classes"), number("seed", below=1 << 63), number("number"), bytes_of("bins", "n d"),
    floats("edges", "d e"), bytes_of("are_categories", "d"), ints("codes", "n"),
)  # fmt: skip
"""Stored fields of a `FitTask`, without its kind."""


class FitTask(NamedTuple):
    """The input of a fit: the newest rows as bins, in order."""

    kind: ForestKind
    bins: Bytes  # shape (n, width); the code in a column of categories
    edges: Floats  # shape (width, BINS - 1)
    are_categories: Bools  # shape (width,)
    codes: Ints  # shape (n,); class of each row
    n_classes: int
    seed: int
    number: int  # rows that were learned in all; each number draws other cuts

    def state(self) -> bytes:
        """Return the task as bytes, for another process."""
        plain = self._replace(are_categories=self.are_categories.astype(np.uint8))
        header = TASK_SCHEMA.header_of(plain) | {"kind": self.kind.name}
        return pack(header, TASK_SCHEMA.arrays_of(plain))

    @classmethod
    def from_state(cls, state: bytes) -> Self:
        """Return the task described by `state`."""
        header, arrays = unpack(state)
        values = TASK_SCHEMA.values(cls, header, arrays)
        values["are_categories"] = values["are_categories"] > 0
        return cls(KINDS[header["kind"]], **values)


@dataclass(frozen=True, slots=True)
class MemoryTrees(StoredRecord):
    """A fitted forest; a row's probabilities do not depend on the other rows."""

    _stored = StateSchema(
        words("features", f"trees {NODES}"), floats("cuts", f"trees {NODES}"),
        shorts("leaves", f"trees {LEAVES} S"), ints("sources", "d"),
        shorts("ranks", f"d {N_CODES}"), bytes_of("are_ranks", "d"),
    )  # fmt: skip

    features: Words  # shape (trees, NODES)
    cuts: Floats  # shape (trees, NODES)
    leaves: Shorts  # shape (trees, LEAVES, S)
    sources: Ints  # shape (n_features,); column of each feature of the trees
    ranks: Shorts  # shape (n_features, N_CODES); rank of each code; 0 for a number
    are_ranks: Bytes  # shape (n_features,); 1 for a category
    _nodes: RankedCuts = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_nodes", RankedCuts.of(self.features, self.cuts))

    def __deepcopy__(self, _memo: object) -> Self:
        return self  # immutable

    @property
    def n_classes(self) -> int:
        """Number of classes; two have one decision function."""
        return max(2, int(self.leaves.shape[2]))

    def _on_restored(self) -> None:
        require(self.features.size and self.features.max() < len(self.sources), "features")

    def check(self, are_categories: Bools, n_classes: int) -> None:
        """Raise ValueError unless these are trees of such columns and classes."""
        require(self.n_classes == n_classes, "leaves")
        require(self.sources.max() < len(are_categories), "sources")
        require(np.array_equal(self.are_ranks > 0, are_categories[self.sources]), "ranks")

    def write(self, X: Floats, columns: Ints, otherwise: Floats, answers: Floats) -> None:
        """Write the probabilities of encoded rows to `answers`, shape (m, n_classes of the answer).

        `X`, shape (m, width): columns that were added after the fit are ignored.
        `columns`, shape (n_classes,): column of each class in the answer.
        `otherwise`, shape (m, n_classes of the answer): a class that the trees did not learn keeps
            its probability here, and they share the rest.
        """
        trees = _Trees(self._nodes, self.leaves, self.sources, self.ranks, self.are_ranks)
        scratch = _Scratch(
            np.empty((len(X), len(self.sources))),
            np.empty((len(X), self.leaves.shape[2]), dtype=np.int64),
            np.empty(self.n_classes),
            self._nodes.room,
        )
        _write(trees, X, columns, otherwise, answers, scratch)


class _Trees(NamedTuple):
    """The arrays of `MemoryTrees`."""

    nodes: RankedCuts
    leaves: Shorts
    sources: Ints
    ranks: Shorts
    are_ranks: Bytes


class _Scratch(NamedTuple):
    features: Floats  # shape (m, n_features)
    totals: Ints  # shape (m, S)
    p: Floats  # shape (n_classes,)
    bins: Bytes  # `RankedCuts.room`


@kernel
def _write(
    trees: _Trees, X: Floats, columns: Ints, otherwise: Floats, said: Floats, scratch: _Scratch
) -> None:
    """Write the probabilities of encoded rows; see `MemoryTrees.write`."""


def fit(task: FitTask) -> MemoryTrees:
    """Return the forest of a task; a pure function, for any process."""
    n, orders = len(task.codes), orders_of(task.n_classes)
    often = np.argsort(-np.bincount(task.codes, minlength=task.n_classes), kind="stable")
    classes = often[:orders].tolist() if task.n_classes > 2 else [1]
    # 1. Features of the trees: a column of numbers, or the ranks of a category in each order.
    sources, ranks, bins = list[int](), list[Shorts](), list[Bytes]()
    edges = list[Floats]()
    for c, is_category in enumerate(task.are_categories.tolist()):
        column = np.ascontiguousarray(task.bins[:, c])
        for k in classes if is_category else [-1]:
            own = _ranks_of(column, task.codes == k) if is_category else np.zeros(N_CODES, np.int16)
            sources.append(c)
            ranks.append(own)
            bins.append((own + MAX_RANK).astype(np.uint8)[column] if is_category else column)
            edges.append(_RANK_EDGES if is_category else task.edges[c])
    # 2. The forest.
    decisions = 1 if task.n_classes == 2 else task.n_classes
    trees = task.kind.trees_of_two if decisions == 1 else task.kind.trees_of_more
    forest = Forest(
        np.zeros((trees, NODES), dtype=np.int32),
        np.zeros((trees, NODES), dtype=np.uint8),
        np.zeros((trees, LEAVES, decisions), dtype=np.int16),
    )
    sample = Sample.of(np.array(bins), task.codes, task.kind.weights(n), uniform=True)
    grow = grow_two if decisions == 1 else grow_more
    grow(sample, task.kind.boosting, task.seed, task.number, forest)
    # 3. Bins become values: later rows may have other edges.
    no_cut = np.full((len(edges), 1), NEVER)
    cuts = np.concatenate([np.array(edges), no_cut], axis=1)[forest.features, forest.bins]
    at = np.array(sources, dtype=np.int64)
    are_ranks = task.are_categories[at].astype(np.uint8)
    return MemoryTrees(forest.features, cuts, forest.leaves, at, np.array(ranks), are_ranks)


def fitted_bytes(task: bytes) -> bytes:
    """Return the forest of a task; both are bytes, for another process."""
    return pack({}, fit(FitTask.from_state(task)).state())


def kind_of(task: bytes) -> str:
    """Return the name of the kind of a task."""
    return str(unpack(task).header["kind"])


def trees_of(data: bytes) -> MemoryTrees:
    """Return the forest that `fitted_bytes` returned as bytes."""
    return MemoryTrees.from_state(unpack(data).arrays)


_RANK_EDGES = np.append(np.arange(BINS - 2) + 0.5 - MAX_RANK, np.finfo(np.float64).max)


def _ranks_of(column: Bytes, positive: Bools) -> Shorts:
    """Return the rank of each code by the share of a class; 0 for a code that no row has."""
    counts = np.bincount(column, minlength=N_CODES)
    hits = np.bincount(column[positive], minlength=N_CODES)
    share = float(positive.sum()) / max(len(column), 1)
    found = np.zeros(N_CODES, dtype=np.int16)
    held = np.flatnonzero(counts)
    found[held] = ranked((hits[held] + share) / (counts[held] + 1.0), share)
    return found
