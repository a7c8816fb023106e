"""Isotonic regression as the paper may have read it: a step function also between the blocks."""

import numpy as np

from online_svm.calibration.diagram import TiedCounts, isotonic_blocks, midpoints
from online_svm.calibration.score_map import CountsMap
from online_svm.storage.fields import Fields, floats
from online_svm.types import Floats


class NearestIsotonic(CountsMap):
    """The blocks of `IsotonicMap`; a score between two of them takes the nearer one's value.

    Lambrou et al. (2012, section 2.3) leave the gap between two blocks open. `IsotonicMap` is
    linear there; this is the other reading, which fits their figures.

    Examples
    --------
    >>> NearestIsotonic().fit([-1.0, 1.0], [0, 1]).predict([-0.2, 0.2])
    array([0., 1.])
    """

    _learned = "values_"
    _fields = Fields(floats("values_"), floats("edges_", beside="values_", more=-1))
    edges_: Floats
    values_: Floats

    def _fit_counts(self, counts: TiedCounts) -> None:
        blocks = isotonic_blocks(counts)
        self.edges_ = midpoints(blocks.upper[:-1], blocks.lower[1:])
        self.values_ = blocks.positives / blocks.totals

    def _predict(self, scores: Floats) -> Floats:
        if not len(self.values_):
            return np.full(len(scores), 0.5)
        return np.asarray(self.values_[np.searchsorted(self.edges_, scores)], dtype=np.float64)
