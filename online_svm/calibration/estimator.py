"""What makes an estimator of a calibrator, by scikit-learn's conventions."""

from typing import Any, ClassVar

from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags
from sklearn.utils.metadata_routing import UNUSED

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
