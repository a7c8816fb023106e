"""The Venn predictor of the last refit, made only if it has to last for more than one example."""

import numpy as np

from online_svm.compiled.jit import jit
from online_svm.types import Floats, Ints
from online_svm.venn.protocol import VennSet
from online_svm.venn.registry import VennScheme

NOT_JOINING = np.array([-1])


class LatestSet:
    """Calibration examples as the last refit scored them, and the Venn predictor over them.

    A refit after every example leaves each predictor one example to answer. For the taxonomy of
    the SVM's own class that takes one pass over the calibration set, and no predictor is made.

    Parameters
    ----------
    scheme : VennScheme
    training_scores, scores, codes
        As for `VennScheme.begin`. They are not copied until the predictor is made, and must not
        change.

    Examples
    --------
    >>> scheme = VennScheme("class", n_bins=1, n_known=2, n_classes=2, limit=None)
    >>> latest = LatestSet(scheme, np.empty((0, 1)), np.array([[1.0], [2.0]]), np.array([0, 1]))
    >>> bounds = np.empty((2, 2))
    >>> latest.answer_last(np.array([[0.5]]), bounds)
    >>> bounds.round(2).tolist()
    [[0.33, 0.67], [0.33, 0.67]]
    """

    def __init__(
        self, scheme: VennScheme, training_scores: Floats, scores: Floats, codes: Ints
    ) -> None:
        self._scheme, self._training_scores = scheme, training_scores
        self._scores, self._codes = scores, codes
        self._set: VennSet | None = None

    @property
    def venn(self) -> VennSet:
        """The predictor, from now on the same one."""
        if self._set is None:
            self._set = self._scheme.begin(self._training_scores, self._scores, self._codes)
        return self._set

    def answer_last(self, scores: Floats, bounds: Floats) -> None:
        """Write the interval of every class for an example that does not join.

        Parameters
        ----------
        scores : ndarray of shape (1, n_scores)
        bounds : ndarray of shape (n_classes, 2)
            Filled with lower and upper probabilities.
        """
        if self._set is None and self._scheme.taxonomy == "class":
            _count(self._scores, self._codes, scores[0], bounds)
        else:
            answers = self.venn.answer(scores, NOT_JOINING)
            bounds[:, 0], bounds[:, 1] = answers.lower[0], answers.upper[0]


@jit
def _count(scores: Floats, codes: Ints, score: Floats, bounds: Floats) -> None:
    """Count the labels of those in the category of `score`; write N_k/(N+1) and (N_k+1)/(N+1)."""
    own, total = _own_class(score), 1.0
    bounds[:, 0] = 0.0
    for i in range(len(codes)):
        one = 1.0 if _own_class(scores[i]) == own else 0.0  # no branch: it would be a coin toss
        bounds[codes[i], 0] += one
        total += one
    for y in range(len(bounds)):
        bounds[y, 1] = (bounds[y, 0] + 1.0) / total
        bounds[y, 0] /= total


@jit
def _own_class(score: Floats) -> int:
    """Return what `svm_classes` does for one row, where a NaN counts as the largest."""
    if len(score) == 1:
        return int(score[0] > 0.0)
    own, best = 0, score[0]
    for s in range(1, len(score)):
        is_ahead = (not score[s] <= best) & (best == best)  # a NaN equals nothing: it stays
        own, best = (s, score[s]) if is_ahead else (own, best)
    return own
