"""Bins of equal mass by probability: what calibration is measured on."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from online_svm.calibration.argument_checks import check_labels, check_n_bins, check_scores
from online_svm.compiled.jit import jit
from online_svm.errors import InvalidInput
from online_svm.types import Floats, Ints


@jit
def bin_ends(p: Floats, n_bins: int) -> Ints:
    """Return the place after the last example of each bin; none is empty.

    Example r of n (from 0) belongs to bin floor(n_bins r / n); a run of equal probabilities to the
    bin of its middle rank, as in `calibration.binning.equal_count_bins`.

    Parameters
    ----------
    p : ndarray of shape (n_samples,)
        Ascending; at least one.
    n_bins : int
        At most so many bins.

    Examples
    --------
    >>> bin_ends(np.array([0.1, 0.2, 0.2, 0.2]), 2)
    array([1, 4])
    """
    n = len(p)
    ends = np.empty(min(n_bins, n), dtype=np.int64)
    count, begin, before = 0, 0, -1
    for i in range(n):
        if i + 1 < n and p[i + 1] == p[i]:
            continue
        inside = (begin + i) * n_bins // (2 * n)
        count += inside != before
        ends[count - 1] = i + 1
        begin, before = i + 1, inside
    return ends[:count]


@dataclass(frozen=True, slots=True)
class EqualMassBins:
    """Examples grouped by probability into at most `n_bins` bins of about equal count.

    Equal probabilities share a bin, so that the order of the examples does not matter.

    Attributes
    ----------
    probabilities : ndarray of shape (n_samples,)
        As they were given.
    order : ndarray of shape (n_samples,)
        The examples by ascending probability.
    first : ndarray of shape (n_bins,)
        Place in that order of the first example of each bin.
    counts : ndarray of shape (n_bins,)
        Examples of each bin; none is empty.
    """

    probabilities: Floats
    order: Ints
    first: Ints
    counts: Ints

    @classmethod
    def of(cls, probabilities: ArrayLike, n_bins: int = 15) -> Self:
        """Return the bins of some probabilities.

        Parameters
        ----------
        probabilities : array-like of shape (n_samples,)
            Of any event: P(positive), or the confidence in the predicted class.
        n_bins : int, default=15

        Raises
        ------
        InvalidInput
            If a probability is not in [0, 1], there is none, or `n_bins` is not positive.

        Examples
        --------
        >>> EqualMassBins.of([0.1, 0.9, 0.8, 0.2], n_bins=2).means([0, 1, 1, 1])
        array([0.5, 1. ])
        """
        check_n_bins(n_bins)
        values = check_scores(probabilities)
        if not len(values):
            raise InvalidInput("probabilities: there is no example to score")
        if not ((values >= 0.0) & (values <= 1.0)).all():
            raise InvalidInput("probabilities: must lie in [0, 1]")
        order = np.argsort(values, kind="stable")
        counts = np.diff(bin_ends(values[order], n_bins), prepend=0)
        return cls(values, order, np.cumsum(counts) - counts, counts)

    @property
    def weights(self) -> Floats:
        """Share of the examples in each bin.

        Examples
        --------
        >>> EqualMassBins.of([0.5, 0.5, 0.5, 0.9], n_bins=2).weights
        array([0.75, 0.25])
        """
        return np.asarray(self.counts / len(self.order))

    def means(self, values: ArrayLike) -> Floats:
        """Return the mean of a value over the examples of each bin.

        Parameters
        ----------
        values : array-like of shape (n_samples,)

        Raises
        ------
        InvalidInput
            If there is not one value for each example.

        Examples
        --------
        >>> EqualMassBins.of([0.1, 0.9], n_bins=2).means([3.0, 4.0])
        array([3., 4.])
        """
        sums = np.add.reduceat(self.sorted(values), self.first)
        return np.asarray(sums / self.counts)

    def sorted(self, values: ArrayLike) -> Floats:
        """Return one value an example in ascending order of the probabilities.

        Parameters and errors are those of `means`.

        Examples
        --------
        >>> EqualMassBins.of([0.9, 0.1]).sorted([3.0, 4.0])
        array([4., 3.])
        """
        given = np.asarray(values, dtype=np.float64)
        if given.shape != self.order.shape:
            raise InvalidInput(f"expected {len(self.order)} values, got shape {given.shape}")
        return given[self.order]

    def frequencies(self, outcomes: ArrayLike) -> Floats:
        """Return how often the event happened in each bin.

        Parameters
        ----------
        outcomes : array-like of shape (n_samples,)
            1 where the event happened, else 0.

        Raises
        ------
        InvalidInput
            If an outcome is not 0 or 1, or there is not one for each example.

        Examples
        --------
        >>> EqualMassBins.of([0.1, 0.2, 0.9], n_bins=1).frequencies([0, 1, 1]).round(3)
        array([0.667])
        """
        return self.means(check_labels(outcomes, len(self.order)))
