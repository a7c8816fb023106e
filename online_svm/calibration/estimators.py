"""Platt scaling, isotonic regression, binning and Venn-Abers as estimators of scikit-learn.

Each method has a file of its own, which needs no scikit-learn; here it gets the conventions and the
documentation of an estimator. `evidential/estimators.py` does the same for the evidential maps.
"""

from typing import Any, ClassVar

from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags
from sklearn.utils.metadata_routing import UNUSED

from online_svm.calibration.binning import BinningCalibrator
from online_svm.calibration.isotonic import IsotonicCalibrator
from online_svm.calibration.platt import PlattCalibrator
from online_svm.calibration.venn_abers import VennAbersCalibrator
from online_svm.errors import InvalidInput


class NotFittedMap(InvalidInput, NotFittedError):
    """A map that was asked before it was fitted."""


class MapEstimator(BaseEstimator):
    """Parameters, copies, text and tags of a calibrator; to be the first base class.

    Scores are one-dimensional, as the input of scikit-learn's `IsotonicRegression`.

    Examples
    --------
    >>> from sklearn.base import clone
    >>> from online_svm import ScoreBinning
    >>> clone(ScoreBinning(n_bins=5)).set_params(n_bins=3)
    ScoreBinning(n_bins=3)
    """

    _learned: ClassVar[str]
    # In scikit-learn's terms they are X and y, no further arguments.
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"scores": UNUSED, "labels": UNUSED}
    __metadata_request__predict: ClassVar[dict[str, Any]] = {"scores": UNUSED}

    def _require_fit(self) -> None:
        if not hasattr(self, self._learned):
            raise NotFittedMap(
                f"{type(self).__name__}: not fitted yet; call fit(scores, labels) first"
            )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array, tags.input_tags.two_d_array = True, False
        tags.target_tags.required = True
        return tags


class PlattScaling(MapEstimator, PlattCalibrator):
    """P(positive | f) = 1 / (1 + exp(A f + B)), by maximum likelihood (Platt 1999).

    Parameters
    ----------
    method : {"newton", "model-trust"}, default="newton"
        Newton's method with backtracking (Lin, Lin & Weng 2007), or the model-trust iteration of
        Platt's appendix. They reach the same loss within 1e-6 relative.
    targets : {"platt", "raw"}, default="platt"
        Platt's targets (N+ + 1)/(N+ + 2) and 1/(N- + 2), or the labels themselves.

    Attributes
    ----------
    A_, B_ : float
        Slope and offset; A_ <= 0, so that a larger score never means a smaller probability.
    loss_ : float
        Cross-entropy between the targets and the fitted probabilities, summed, in nats.
    wrong_sign_ : bool
        Whether the best slope was positive: the scores point the wrong way. The loss is convex, so
        its minimum over A <= 0 is then at A = 0, and the map is the best constant.

    Notes
    -----
    With one class only, or without two different scores, the best constant is returned: by
    Platt's targets (N+ + 1)/(N+ + 2) when all are positive, 1/(N- + 2) when all are negative, and
    1/2 without any example. Separable scores have a finite optimum by Platt's targets. By raw
    targets they have none, nor has a single class; then `fit` raises InvalidInput.

    The fit runs on scores moved and scaled to [-1, 1], so that scores of any finite size neither
    overflow nor make the Hessian singular.

    References
    ----------
    J. Platt (1999), Probabilistic outputs for support vector machines. H.-T. Lin, C.-J. Lin,
    R. C. Weng (2007), A note on Platt's probabilistic outputs for support vector machines.

    Examples
    --------
    >>> fitted = PlattScaling().fit([-2.0, -1.0, 1.0, 2.0], [0, 0, 1, 1])
    >>> fitted.predict([-1.0, 0.0, 1.0]).round(3)
    array([0.338, 0.5  , 0.662])
    """


class IsotonicMap(MapEstimator, IsotonicCalibrator):
    """The non-decreasing map from scores to P(positive) that is closest to the labels.

    Tied scores are pooled, then adjacent violators. Inside a block of scores the map is constant,
    the lowest block reaches down to minus infinity and the highest up to infinity (Lambrou et al.
    2012, section 2.3, which leaves the gap between two blocks open); across a gap it is linear.
    These are the values of scikit-learn's ``IsotonicRegression(y_min=0, y_max=1,
    out_of_bounds="clip")``; the counts here are integers, so that the blocks are exact. Fitted on
    no example it answers 1/2.

    Attributes
    ----------
    lower_, upper_ : ndarray of shape (n_blocks,)
        Lowest and highest score of each block.
    values_ : ndarray of shape (n_blocks,)
        Its frequency of positives, strictly increasing.

    References
    ----------
    B. Zadrozny, C. Elkan (2002), Transforming classifier scores into accurate multiclass
    probability estimates.

    Examples
    --------
    >>> fitted = IsotonicMap().fit([0.0, 1.0, 2.0, 3.0], [0, 1, 0, 1])
    >>> fitted.predict([-9.0, 0.5, 1.5, 9.0])
    array([0.  , 0.25, 0.5 , 1.  ])
    """


class ScoreBinning(MapEstimator, BinningCalibrator):
    """P(positive) is the frequency of positives in the bin that holds the score.

    The sorted examples are cut into `n_bins` bins whose sizes differ by at most one. Tied examples
    stay together: all go to the bin of the middle one. A bin that this leaves empty does not
    exist, nor do more bins than distinct scores. A score outside every bin, below, above or
    between two, takes the nearest; half way between two, the lower. Fitted on no example it
    answers 1/2.

    Parameters
    ----------
    n_bins : int, default=10

    Attributes
    ----------
    edges_ : ndarray of shape (bins - 1,)
        Upper edge of each bin but the last, inclusive: half way to the next bin's lowest score.
    totals_, positives_ : ndarray of shape (bins,)
        Examples, and positive examples, in each bin; or the sums of their weights, where these are
        not whole. Then the bins are of equal weight.

    References
    ----------
    J. Drish (1998), Obtaining calibrated probability estimates from support vector machines.

    Examples
    --------
    >>> fitted = ScoreBinning(n_bins=2).fit([0.0, 1.0, 2.0, 3.0], [0, 0, 0, 1])
    >>> fitted.predict([-9.0, 1.4, 1.6, 9.0])
    array([0. , 0. , 0.5, 0.5])
    """


class VennAbers(MapEstimator, VennAbersCalibrator):
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
