"""Venn-Abers prediction: an interval from two isotonic fits (Vovk, Petej & Fedorova 2015)."""

import numpy as np
from numpy.typing import ArrayLike

from online_svm.calibration.diagram import TiedCounts, hull_links
from online_svm.calibration.score_map import CountsMap, IntervalMap
from online_svm.compiled.jit import jit
from online_svm.errors import InvalidInput
from online_svm.storage.fields import Fields, floats
from online_svm.types import Floats, Ints


def log_loss_point(p0: ArrayLike, p1: ArrayLike) -> Floats:
    """Return the point of the interval with the least worst-case regret in log loss.

    Parameters
    ----------
    p0, p1 : array-like of one shape
        Lower and upper probability.

    Returns
    -------
    ndarray
        p1 / (1 - p0 + p1) (Vovk, Petej & Fedorova 2015, section 4). It has no guarantee.

    Raises
    ------
    InvalidInput
        If the shapes differ, or not 0 <= p0 <= p1 <= 1.

    Examples
    --------
    >>> log_loss_point([0.0, 0.25], [1.0, 0.5])
    array([0.5, 0.4])
    """
    lower, upper = _check_interval(p0, p1)
    return np.asarray(upper / (1.0 - lower + upper), dtype=np.float64)


def brier_point(p0: ArrayLike, p1: ArrayLike) -> Floats:
    """Return the point of the interval with the least worst-case regret in Brier score.

    Parameters and errors are those of `log_loss_point`.

    Returns
    -------
    ndarray
        p1 - p1^2 / 2 + p0^2 / 2. It has no guarantee.

    Examples
    --------
    >>> brier_point([0.0], [1.0])
    array([0.5])
    """
    lower, upper = _check_interval(p0, p1)
    return np.asarray(upper - upper * upper / 2.0 + lower * lower / 2.0, dtype=np.float64)


class VennAbers(CountsMap, IntervalMap):
    """P(positive) as an interval: isotonic fits with the example added as negative and positive.

    For a score s, p0 is the isotonic value at s when (s, negative) joins the calibration set, p1
    when (s, positive) joins it; tied scores are pooled. Fitting takes one sort of the k
    calibration scores and two linear passes, an answer one binary search. Fitted on no example,
    the interval is [0, 1].

    The pair is valid for i.i.d. examples: the member picked by the true label is calibrated. A
    point merged from it (`predict`, `log_loss_point`, `brier_point`) carries no guarantee. `fit`
    takes no weights: weighted examples are not exchangeable with the one that is asked about.

    Attributes
    ----------
    scores_ : ndarray of shape (k,)
        Distinct calibration scores, ascending.
    p0_, p1_ : ndarray of shape (k + 1,)
        p0 for each number of distinct scores at most s; p1 for each number of them below s.

    References
    ----------
    V. Vovk, I. Petej, V. Fedorova (2015), Large-scale probabilistic predictors with and without
    guarantees of validity.

    Examples
    --------
    >>> fitted = VennAbers().fit([0.0, 1.0, 2.0, 3.0], [0, 0, 1, 1])
    >>> fitted.predict_interval([-1.0, 1.5, 9.0])
    array([[0.        , 0.33333333],
           [0.        , 1.        ],
           [0.66666667, 1.        ]])
    """

    _learned = "p1_"
    _fields = Fields(
        floats("scores_"),
        floats("p0_", beside="scores_", more=1),
        floats("p1_", beside="scores_", more=1),
    )
    scores_: Floats
    p0_: Floats
    p1_: Floats

    log_loss_point = staticmethod(log_loss_point)
    brier_point = staticmethod(brier_point)

    def _fit_counts(self, counts: TiedCounts) -> None:
        self.scores_ = counts.scores
        positives, examples = _with_one_positive(*counts.diagram())
        self.p1_ = np.append(positives / examples, 1.0)
        # A negative added to a set is a positive added to its mirror image.
        negatives, examples = _with_one_positive(*_mirror(counts).diagram())
        self.p0_ = np.append(0.0, ((examples - negatives) / examples)[::-1])

    def _interval(self, scores: Floats) -> Floats:
        at_most = np.searchsorted(self.scores_, scores, side="right")
        below = np.searchsorted(self.scores_, scores, side="left")
        return np.column_stack((self.p0_[at_most], self.p1_[below]))

    def _predict(self, scores: Floats) -> Floats:
        interval = self._interval(scores)
        return log_loss_point(interval[:, 0], interval[:, 1])


def _check_interval(p0: ArrayLike, p1: ArrayLike) -> tuple[Floats, Floats]:
    lower, upper = np.asarray(p0, dtype=np.float64), np.asarray(p1, dtype=np.float64)
    if lower.shape != upper.shape:
        raise InvalidInput(f"p0, p1: shapes {lower.shape} and {upper.shape} differ")
    if not ((lower >= 0.0) & (lower <= upper) & (upper <= 1.0)).all():
        raise InvalidInput("p0, p1: expected 0 <= p0 <= p1 <= 1")
    return lower, upper


def _mirror(counts: TiedCounts) -> TiedCounts:
    """Return the counts with the order of the scores and the two labels reversed."""
    return TiedCounts(
        scores=-counts.scores[::-1],
        totals=counts.totals[::-1],
        positives=(counts.totals - counts.positives)[::-1],
    )


def _with_one_positive(x: Ints, y: Ints) -> tuple[Ints, Ints]:
    """Return, for each distinct score, its isotonic block once a positive example joins there.

    Parameters
    ----------
    x, y : ndarray of shape (k + 1,)
        The diagram of the calibration set.

    Returns
    -------
    positives, examples : ndarray of shape (k,)
        Counts in the block, the added example included; their ratio is p1. A score in the gap
        below a distinct score has the same block, because a positive one pulls it in.
    """
    return _bridges(x, y, hull_links(x, y))


@jit
def _bridges(x: Ints, y: Ints, links: Ints) -> tuple[Ints, Ints]:
    """Find the edge of the minorant that crosses the added example, for each place of it.

    Adding a positive at the i-th distinct score moves points 0..i-1 of the diagram by (-1, -1)
    against the others. The isotonic value there is the slope of the edge from a moved point, the
    corner, to a later one, the tip. As i grows, so does the value: a newly moved point on or above
    the line changes nothing; one below it becomes the corner, and the tip only moves up the hull.
    Both indices only grow, so the pass is linear.
    """
    k = len(x) - 1
    rise, run = np.empty(k, dtype=np.int64), np.empty(k, dtype=np.int64)
    corner, tip = 0, 0
    dx, dy = 1, 1
    for i in range(k):
        # 1. Where point i lies against the line.
        # The line from the corner has slope dy / dx; points i and after it are still in place.
        gap = (y[i] - y[corner]) * dx - (x[i] - x[corner]) * dy
        # 2. Below it: the point is the new corner.
        if i == 0 or gap < 0:
            corner = i
            tip = max(tip, i + 1)
            # 3. The tip moves up the hull while the slope to the next corner is not larger.
            while links[tip] != tip:
                after = links[tip]
                flatter = (y[after] - y[i] + 1) * (x[tip] - x[i] + 1)
                if flatter > (y[tip] - y[i] + 1) * (x[after] - x[i] + 1):
                    break
                tip = after
            dx, dy = x[tip] - x[i] + 1, y[tip] - y[i] + 1
        # 4. The isotonic value: the slope of the line.
        rise[i], run[i] = dy, dx
    return rise, run
