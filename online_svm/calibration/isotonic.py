"""Isotonic regression of the labels on the scores (Zadrozny & Elkan 2002)."""

from online_svm.calibration.calibrators.isotonic import IsotonicCalibrator
from online_svm.calibration.estimator import MapEstimator


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
