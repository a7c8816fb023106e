"""Bins of the memory's columns, from which its forests are grown."""

from typing import NamedTuple, Self

import numpy as np

from online_svm.refit.committee.forest import BINS, bins_of, edges_of
from online_svm.types import Bools, Bytes, Floats


class Edges(NamedTuple):
    """Bin edges of the columns."""

    values: Floats  # shape (width, BINS - 1)

    @classmethod
    def fit(cls, X: Floats, are_categories: Bools) -> Self:
        """Return the edges of encoded rows; codes of categories need none.

        The first edge of a column with missing values is below all values: these have bin 0.
        """
        edges = np.full((X.shape[1], BINS - 1), np.finfo(np.float64).max)
        for c in np.flatnonzero(~are_categories).tolist():
            values = X[~np.isnan(X[:, c]), c]
            found = edges_of(values[:, None])[0] if len(values) else edges[c]
            if len(values) < len(X):
                found = np.append(np.finfo(np.float64).min, found[:-1])
            edges[c] = found
        return cls(edges)

    def bins(self, X: Floats, are_categories: Bools) -> Bytes:
        """Return the bins of encoded rows, shape (n, width); the code in a category's column."""
        bins = np.ascontiguousarray(bins_of(X, self.values).T)
        of = np.flatnonzero(are_categories)
        bins[:, of] = X[:, of].astype(np.uint8)
        return bins
