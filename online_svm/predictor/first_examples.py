"""The first labelled rows of a feed, to which experts are fitted before a model has as many."""

from collections import deque
from typing import NamedTuple

import numpy as np

from online_svm.predictor.recent_stacks import MAX_FEATURES
from online_svm.predictor.simple_experts import most_fitted
from online_svm.storage.state import require
from online_svm.storage.state_schema import StateSchema, StoredArrays, floats, ints
from online_svm.stream.cells import stacked, widened
from online_svm.types import Floats, Ints

MAX_FIRST_EXAMPLES = 500
"""Newest rows that are kept; fewer if a row has so many features that a fit takes fewer."""


class KeptRows(NamedTuple):
    """The rows as they are stored."""

    X: Floats
    columns: Ints


class FirstExamples(StoredArrays):
    """The newest labelled rows and their class columns."""

    _stored = StateSchema(floats("_kept.X", "n f", optional=True), ints("_kept.columns", "n"))

    def __init__(self) -> None:
        self._rows: deque[tuple[Floats, int]] = deque()
        self._width = 0  # features of the widest row so far

    def keep(self, X: Floats, columns: Ints, recent: int) -> None:
        """Keep labelled rows, until the recent stacks hold enough: `recent` examples."""
        if recent >= MAX_FIRST_EXAMPLES:
            self._rows.clear()
            self._width = 0
            return
        labelled = np.flatnonzero(columns >= 0)
        if not len(labelled):
            return
        self._width = max(self._width, X.shape[1])
        most = min(MAX_FIRST_EXAMPLES, most_fitted(self._width))
        self._rows.extend((X[row].copy(), int(columns[row])) for row in labelled[-most:].tolist())
        while len(self._rows) > most:
            self._rows.popleft()

    def joined(self) -> tuple[Floats, Ints]:
        """Return rows, shape (n, n_features), and columns, shape (n,)."""
        X = np.empty((0, 0))
        if self._rows:
            X = widened(stacked([x for x, _ in self._rows]), self._width)
        return X, np.array([column for _, column in self._rows], dtype=np.int64)

    @property
    def n_classes(self) -> int:
        """Number of class columns that occur, up to the last one."""
        return max((column + 1 for _, column in self._rows), default=0)

    def move(self, places: Ints) -> None:
        """Change to other classes: column i becomes `places[i]`."""
        self._rows = deque((x, int(places[column])) for x, column in self._rows)

    @property
    def _kept(self) -> KeptRows:
        return KeptRows(*self.joined())

    @_kept.setter
    def _kept(self, kept: KeptRows) -> None:
        require(kept.X.shape[1] <= MAX_FEATURES, "X")
        self.keep(*kept, 0)
