"""Taxonomies fixed given T: which category an example falls into, by its scores."""

from collections.abc import Callable

import numpy as np

from online_svm.calibration.binning import equal_count_bins
from online_svm.calibration.diagram import midpoints, pool_ties
from online_svm.types import Floats, Ints


class Taxonomy:
    """The SVM's own class and, within it, the quantile of a strength among T's examples.

    The class is the sign of the one score, or the largest of one score a class; ties go to the
    lower class. It is the taxonomy of Lambrou et al. (2012, section 3.2), if there is no strength.

    The edges between the quantiles are taken from T's scores, so that the taxonomy is fixed given
    T. These scores are optimistic: where the machine fits T closely, most other examples are
    weaker than nearly all of T and share the lowest quantile. `RankedSet` has no such bias.

    Parameters
    ----------
    n_classes : int
        Number of classes that have a machine.
    n_bins : int
        Quantiles a class, of about equal count in T; ties stay together.
    strength : callable, optional
        `class_scores` or `margins`: from scores to one number a row.
    training_scores : ndarray of shape (n, n_scores), optional
        Of the proper training set; with a strength.

    Attributes
    ----------
    n_categories : int

    Examples
    --------
    >>> Taxonomy(2).categories(np.array([[-0.5], [0.0], [2.0]]))
    array([0, 0, 1])
    >>> Taxonomy(3).categories(np.array([[0.1, 0.7, 0.7]]))
    array([1])
    >>> T = np.array([[-2.0], [-1.0], [1.0], [2.0], [3.0], [4.0]])
    >>> Taxonomy(2, 2, class_scores, T).categories(np.array([[-9.0], [0.5], [2.5], [2.6]]))
    array([1, 2, 2, 3])
    """

    def __init__(
        self,
        n_classes: int,
        n_bins: int = 1,
        strength: Callable[[Floats], Floats] | None = None,
        training_scores: Floats | None = None,
    ) -> None:
        self.n_categories = n_classes * n_bins
        self._n_bins = n_bins
        self._strength = strength
        self._edges: list[Floats] = []
        if strength is not None and training_scores is not None:
            own, values = svm_classes(training_scores), strength(training_scores)
            self._edges = [_edges(values[own == k], n_bins) for k in range(n_classes)]

    def categories(self, scores: Floats) -> Ints:
        """Return class times `n_bins` plus quantile, for rows of shape (n, 1) or (n, K)."""
        own = svm_classes(scores)
        if self._strength is None:
            return own
        values, categories = self._strength(scores), own * self._n_bins
        for k, edges in enumerate(self._edges):
            here = own == k
            categories[here] += np.searchsorted(edges, values[here])
        return categories


def svm_classes(scores: Floats) -> Ints:
    """Return the index of the SVM's own class for scores of shape (n, 1) or (n, K)."""
    if scores.shape[1] == 1:
        return (scores[:, 0] > 0).astype(np.int64)
    largest: Ints = scores.argmax(axis=1).astype(np.int64, copy=False)
    return largest


def class_scores(scores: Floats) -> Floats:
    """Return the score of the SVM's own class, shape (n,): the size of a single score.

    Examples
    --------
    >>> class_scores(np.array([[-2.0]])), class_scores(np.array([[-2.0, 0.5, -1.0]]))
    (array([2.]), array([0.5]))
    """
    single = scores.shape[1] == 1
    strength: Floats = np.abs(scores[:, 0]) if single else scores.max(axis=1)
    return strength


def margins(scores: Floats) -> Floats:
    """Return how far the best class is ahead of the second, shape (n,).

    For a single score that is its size (times a constant), so that there it orders as
    `class_scores` does.

    Examples
    --------
    >>> margins(np.array([[-2.0]])), margins(np.array([[-2.0, 0.5, -1.0]]))
    (array([2.]), array([1.5]))
    """
    if scores.shape[1] == 1:
        return class_scores(scores)
    best_two = np.sort(scores, axis=1)[:, -2:]
    ahead: Floats = best_two[:, 1] - best_two[:, 0]
    return ahead


def _edges(values: Floats, n_bins: int) -> Floats:
    """Return inclusive upper edges of all bins but the last; fewer where values tie."""
    bins = equal_count_bins(pool_ties(values, np.zeros(len(values), dtype=np.bool_)), n_bins)
    return midpoints(bins.upper[:-1], bins.lower[1:])
