"""The cumulative sum diagram of labels over scores, from which isotonic fits are read.

Ties are pooled first. Point j of the diagram is (examples, positives) among the j lowest distinct
scores, in whole numbers; the isotonic fit is the slope of its greatest convex minorant (Barlow et
al. 1972). Slopes are compared by cross-multiplication of integers, so that equal means merge
exactly and no tolerance is needed (counts up to 3e9 examples fit). Sums of weights that are not
whole take the place of the counts as floats; then means that are equal but for rounding may stay
apart.
"""

from dataclasses import dataclass

import numpy as np

from online_svm.compiled.jit import jit
from online_svm.types import Bools, Floats, Ints, Weights


@dataclass(frozen=True, slots=True)
class TiedCounts:
    """Counts at the distinct scores.

    Attributes
    ----------
    scores : ndarray of shape (k,)
        The distinct scores, ascending.
    totals, positives : ndarray of shape (k,)
        Examples, and positive examples, at each; or the sums of their weights.
    """

    scores: Floats
    totals: Weights
    positives: Weights

    def diagram(self) -> tuple[Weights, Weights]:
        """Return the k+1 points of the diagram: cumulative totals and positives, from (0, 0).

        Examples
        --------
        >>> pool_ties(np.array([2.0, 1.0, 2.0]), np.array([True, False, True])).diagram()
        (array([0, 1, 3]), array([0, 0, 2]))
        """
        return _from_zero(self.totals), _from_zero(self.positives)


@dataclass(frozen=True, slots=True)
class Blocks:
    """Runs of neighbouring distinct scores that share one frequency of positives.

    Attributes
    ----------
    lower, upper : ndarray of shape (b,)
        Lowest and highest score of each block, ascending.
    totals, positives : ndarray of shape (b,)
        Examples, and positive examples, in each.
    """

    lower: Floats
    upper: Floats
    totals: Weights
    positives: Weights


def pool_ties(scores: Floats, labels: Bools) -> TiedCounts:
    """Count the examples and the positive ones at each distinct score.

    Parameters
    ----------
    scores : ndarray of shape (n_samples,)
    labels : ndarray of bool of shape (n_samples,)

    Examples
    --------
    >>> pool_ties(np.array([2.0, 1.0, 2.0]), np.array([True, False, False])).positives
    array([0, 1])
    """
    order = np.argsort(scores)  # not stable, several times faster; sums over ties need no order
    ordered = scores[order] + 0.0  # -0.0 becomes 0.0: which of the two leads a tie is left open
    is_end = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_end[:-1])
    ends = np.flatnonzero(is_end)
    running = np.cumsum(labels[order], dtype=np.int64)
    return TiedCounts(
        scores=ordered[ends],
        totals=_differences(ends + 1),
        positives=_differences(running[ends]),
    )


def pool_weights(scores: Floats, labels: Bools, weights: Weights) -> TiedCounts:
    """Add up the weights, and those of the positive examples, at each distinct score.

    Parameters
    ----------
    scores, weights : ndarray of shape (n_samples,)
    labels : ndarray of bool of shape (n_samples,)

    Examples
    --------
    >>> labels, weights = np.array([True, False, False]), np.array([0.5, 1.0, 2.0])
    >>> pool_weights(np.array([2.0, 1.0, 2.0]), labels, weights).totals
    array([1. , 2.5])
    """
    distinct, group = np.unique(scores + 0.0, return_inverse=True)
    order = np.argsort(group, kind="stable")
    first = np.searchsorted(group[order], np.arange(len(distinct)))
    return TiedCounts(
        scores=distinct,
        totals=sums(weights[order], first),
        positives=sums(np.where(labels, weights, 0)[order], first),
    )


def sums(counts: Weights, first: Ints) -> Weights:
    """Return the sums of runs of neighbours, given where each run begins.

    Examples
    --------
    >>> sums(np.array([1, 2, 3]), np.array([0, 2]))
    array([3, 3])
    """
    return np.add.reduceat(counts, first) if len(first) else counts[:0]


def isotonic_blocks(counts: TiedCounts) -> Blocks:
    """Pool adjacent violators, and neighbours with equal means: frequencies increase strictly.

    Examples
    --------
    >>> counts = pool_ties(np.arange(4.0), np.array([False, True, False, True]))
    >>> blocks = isotonic_blocks(counts)
    >>> blocks.lower, blocks.upper, blocks.positives / blocks.totals
    (array([0., 1., 3.]), array([0., 2., 3.]), array([0. , 0.5, 1. ]))
    """
    totals, positives = counts.diagram()
    corners = hull_corners(hull_links(totals, positives))
    return Blocks(
        lower=counts.scores[corners[:-1]],
        upper=counts.scores[corners[1:] - 1],
        totals=sums(counts.totals, corners[:-1]),
        positives=sums(counts.positives, corners[:-1]),
    )


def midpoints(lower: Floats, upper: Floats) -> Floats:
    """Return the edges between neighbours: values in [lower, upper), half way where there is room.

    A score takes the lower side when it is at most the edge. Rounding can put the middle of two
    neighbouring floats on the upper one, which would then change sides; it is moved to the lower.

    Examples
    --------
    >>> midpoints(np.array([1.0]), np.array([2.0]))
    array([1.5])
    """
    middle = lower * 0.5 + upper * 0.5  # the sum itself could overflow
    return np.where(middle < upper, np.maximum(middle, lower), lower)


@jit
def hull_links(x: Weights, y: Weights) -> Ints:
    """For each point, the next corner of the greatest convex minorant of it and all later points.

    Parameters
    ----------
    x, y : ndarray of shape (k + 1,)
        A diagram; `x` increases strictly.

    Returns
    -------
    ndarray of shape (k + 1,)
        Index of the next corner; the last point links to itself. Points on a straight edge are
        no corners.

    Examples
    --------
    >>> hull_links(np.array([0, 1, 2, 3]), np.array([0, 1, 1, 2]))
    array([2, 2, 3, 3])
    """
    last = len(x) - 1
    links = np.empty(len(x), dtype=np.int64)
    links[last] = last
    # Monotone chain from the right: skip corners that are not below the edge to the next one.
    for j in range(last - 1, -1, -1):
        corner = j + 1
        while corner != last:
            after = links[corner]
            here = (y[corner] - y[j]) * (x[after] - x[corner])
            if here < (y[after] - y[corner]) * (x[corner] - x[j]):
                break
            corner = after
        links[j] = corner
    return links


@jit
def hull_corners(links: Ints) -> Ints:
    """Follow the links from the first point to the last.

    Examples
    --------
    >>> hull_corners(np.array([2, 2, 3, 3]))
    array([0, 2, 3])
    """
    corners = np.empty(len(links), dtype=np.int64)
    count, at = 0, 0
    corners[0] = 0
    while links[at] != at:
        at = links[at]
        count += 1
        corners[count] = at
    return corners[: count + 1]


def _from_zero(counts: Weights) -> Weights:
    running = np.zeros(len(counts) + 1, dtype=counts.dtype)
    np.cumsum(counts, out=running[1:])
    return running


def _differences(running: Ints) -> Ints:
    """Return what was added up; the first sum is the first summand."""
    counts = running.copy()
    counts[1:] -= running[:-1]
    return counts
