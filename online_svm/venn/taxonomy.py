"""Taxonomies: which category of the Venn predictor an example falls into, by its scores."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Taxonomy(Protocol):
    """A partition of the examples that is fixed given the proper training set."""

    @property
    def n_categories(self) -> int:
        """Number of categories."""

    def categories(self, scores: Floats) -> Ints:
        """Return the category of each row of `scores`, shape (n,)."""


class ClassTaxonomy:
    """The SVM's own class: the sign of the one score, or the largest of one score a class.

    Ties go to the lower class. This is the taxonomy of Lambrou et al. (2012, section 3.2).

    Parameters
    ----------
    n_classes : int
        Number of classes that have a machine.

    Examples
    --------
    >>> ClassTaxonomy(2).categories(np.array([[-0.5], [0.0], [2.0]]))
    array([0, 0, 1])
    >>> ClassTaxonomy(3).categories(np.array([[0.1, 0.7, 0.7]]))
    array([1])
    """

    def __init__(self, n_classes: int) -> None:
        self.n_categories = n_classes

    def categories(self, scores: Floats) -> Ints:
        """Return the SVM's class of each row of `scores` of shape (n, 1) or (n, K)."""
        return svm_classes(scores)


def svm_classes(scores: Floats) -> Ints:
    """Return the index of the SVM's own class for scores of shape (n, 1) or (n, K)."""
    if scores.shape[1] == 1:
        return (scores[:, 0] > 0).astype(np.int64)
    largest: Ints = np.argmax(scores, axis=1).astype(np.int64)
    return largest
