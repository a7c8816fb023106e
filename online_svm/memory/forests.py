"""The long and the mid trees, with the encoder of their rows."""

from typing import NamedTuple

from online_svm.memory.edges import Edges
from online_svm.memory.encoder import MemoryEncoder
from online_svm.memory.trees import LONG, MID, FitTask, ForestKind, MemoryTrees, fit
from online_svm.storage.state_schema import StateSchema, StoredArrays, part, record
from online_svm.types import Floats, Ints


class RowKinds(NamedTuple):
    """What is known of the features before their first row."""

    is_named: bool  # whether rows are cells of named features; otherwise all are numbers
    declared: tuple[str, ...] = ()  # declared kinds of the first features


class Forests(StoredArrays):
    """The long and the mid trees of the same rows.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> forests = Forests(RowKinds(is_named=False))
    >>> forests.fit(X, (X[:, 0] > 0.0).astype(np.int64), n_classes=2, seed=0)
    >>> [bool(p[0, 1] > 0.9) for p in forests.probabilities(np.array([[2.0, 0.0]]))]
    [True, True]
    """

    _stored = StateSchema(
        part("_encoder"), record("_long", of=MemoryTrees), record("_mid", of=MemoryTrees)
    )

    def __init__(self, kinds: RowKinds) -> None:
        self._encoder = MemoryEncoder(kinds.declared, kinds.is_named)
        self._long: MemoryTrees
        self._mid: MemoryTrees

    def fit(self, X: Floats, codes: Ints, n_classes: int, seed: int) -> None:
        """Fit both to rows in order, shape (n, n_features); `codes`, shape (n,), are classes."""
        self._encoder.add_columns(X)
        encoded = self._encoder.encode(X, learn=True)
        are_categories = self._encoder.are_categories
        edges = Edges.fit(encoded, are_categories)
        bins = edges.bins(encoded, are_categories)

        def fitted(kind: ForestKind) -> MemoryTrees:
            newest = slice(len(X) - kind.size(len(X)), None)
            return fit(
                FitTask(
                    kind, bins[newest], edges.values, are_categories, codes[newest], n_classes,
                    seed, len(X),
                )
            )  # fmt: skip

        self._long, self._mid = fitted(LONG), fitted(MID)

    def check(self, n_classes: int) -> None:
        """Raise ValueError unless the forests fit the encoder and have so many classes."""
        for trees in (self._long, self._mid):
            trees.check(self._encoder.are_categories, n_classes)

    def probabilities(self, X: Floats) -> tuple[Floats, Floats]:
        """Return the probabilities of both forests, each of shape (m, n_classes)."""
        encoded = self._encoder.encode(X, learn=False)
        return self._long.probabilities(encoded), self._mid.probabilities(encoded)
