"""Isotonic regression as the paper may have read it: a step function also between the blocks."""

from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from online_svm.calibration.argument_checks import check_scores, check_training
from online_svm.calibration.diagram import isotonic_blocks, midpoints, pool_ties
from online_svm.types import Arrays, Floats


class NearestIsotonic:
    """The blocks of `IsotonicMap`; a score between two of them takes the nearer one's value.

    Lambrou et al. (2012, section 2.3) leave the gap between two blocks open. `IsotonicMap` is
    linear there; this is the other reading, which fits their figures.

    Examples
    --------
    >>> NearestIsotonic().fit([-1.0, 1.0], [0, 1]).predict([-0.2, 0.2])
    array([0., 1.])
    """

    def fit(self, scores: ArrayLike, labels: ArrayLike) -> Self:
        """Fit to scores and 0/1 labels of shape (n_samples,)."""
        blocks = isotonic_blocks(pool_ties(*check_training(scores, labels)))
        self.edges_ = midpoints(blocks.upper[:-1], blocks.lower[1:])
        self.values_ = blocks.positives / blocks.totals
        return self

    def predict(self, scores: ArrayLike) -> Floats:
        """Return P(positive) for each score; 1/2 if fitted on no example."""
        values = check_scores(scores)
        if not len(self.values_):
            return np.full(len(values), 0.5)
        return np.asarray(self.values_[np.searchsorted(self.edges_, values)], dtype=np.float64)

    def state(self) -> Arrays:
        """Return its edges and values."""
        return {"edges": self.edges_, "values": self.values_}

    @classmethod
    def from_state(cls, state: Arrays) -> Self:
        """Return the map that `state` describes."""
        restored = cls()
        restored.edges_, restored.values_ = (
            np.asarray(state[name], dtype=np.float64) for name in ("edges", "values")
        )
        return restored
