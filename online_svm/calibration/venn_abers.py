"""Venn-Abers prediction: an interval from two isotonic fits (Vovk, Petej & Fedorova 2015)."""

import numpy as np
from numpy.typing import ArrayLike

from online_svm.calibration.diagram import TiedCounts, hull_links
from online_svm.calibration.score_map import CountsMap, IntervalMap
from online_svm.compiled.kernel import kernel
from online_svm.errors import InvalidInput
from online_svm.storage.state_schema import StateSchema, floats
from online_svm.types import Floats, Ints


def log_loss_point(p0: ArrayLike, p1: ArrayLike) -> Floats:
    """Return the point of the interval with the smallest worst-case regret in log loss.

    It is p1 / (1 - p0 + p1) (Vovk, Petej & Fedorova 2015, section 4) and has no validity guarantee.
    Raises InvalidInput if the shapes differ, or 0 <= p0 <= p1 <= 1 does not hold.
    """
    lower, upper = _check_interval(p0, p1)
    return np.asarray(upper / (1.0 - lower + upper), dtype=np.float64)


def brier_point(p0: ArrayLike, p1: ArrayLike) -> Floats:
    """Return the point of the interval with the smallest worst-case regret in Brier score.

    It is p1 - p1^2 / 2 + p0^2 / 2 and has no validity guarantee. Errors are as in `log_loss_point`.
    """
    lower, upper = _check_interval(p0, p1)
    return np.asarray(upper - upper * upper / 2.0 + lower * lower / 2.0, dtype=np.float64)


class VennAbers(CountsMap, IntervalMap):
    """P(positive) as an interval, from isotonic fits with the example as negative and as positive.

    For a score s, p0 is the isotonic value at s after (s, negative) joins the calibration set, and
    p1 after (s, positive) joins it; tied scores are pooled. A fit takes one sort of the k
    calibration scores and two linear passes, a prediction one binary search. Fitted on no examples,
    the interval is [0, 1].

    The pair is valid for i.i.d. examples: the member selected by the true label is calibrated. A
    point derived from it (`predict`, `log_loss_point`, `brier_point`) carries no guarantee. `fit`
    takes no weights, because weighted examples are not exchangeable with the test example.

    Attributes
    ----------
    scores_ : ndarray of shape (k,)
        Distinct calibration scores, ascending.
    p0_, p1_ : ndarray of shape (k + 1,)
        p0 by the number of distinct scores <= s; p1 by the number of distinct scores < s.

    References
    ----------
    V. Vovk, I. Petej, V. Fedorova (2015), Large-scale probabilistic predictors with and without
    guarantees of validity.

    Examples
    --------
    >>> fitted = VennAbers().fit([0.0, 1.0, 2.0, 3.0], [0, 0, 1, 1])
    >>> fitted.predict_interval([-1.0, 1.5, 9.0]).round(3).tolist()
    [[0.0, 0.333], [0.0, 1.0], [0.667, 1.0]]
    """

    _learned = "p1_"
    _fields = StateSchema(
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
        # Adding a negative equals adding a positive to the mirrored set.
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
    """Return the counts with the scores reversed and the two labels swapped."""
    return TiedCounts(
        scores=-counts.scores[::-1],
        totals=counts.totals[::-1],
        positives=(counts.totals - counts.positives)[::-1],
    )


def _with_one_positive(x: Ints, y: Ints) -> tuple[Ints, Ints]:
    """Return positives and examples of each distinct score's block after a positive joins it.

    Both have shape (k,) for the diagram of shape (k + 1,); their ratio is p1. A score in the gap
    below a distinct score has the same block: a positive example there is pooled with the next
    score.
    """
    positives, examples = np.empty(len(x) - 1, np.int64), np.empty(len(x) - 1, np.int64)
    _bridges(x, y, hull_links(x, y), positives, examples)
    return positives, examples


@kernel
def _bridges(x: Ints, y: Ints, links: Ints, rise: Ints, run: Ints) -> None:
    """Write rise and run, shape (k,), of the minorant edge that crosses each added example.

    The diagram and its `hull_links` have shape (k + 1,).
    """
