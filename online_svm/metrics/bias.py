"""How far the frequencies of the classes lie from their probabilities, with standard errors."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from online_svm.calibration.labelled_columns import check_codes
from online_svm.errors import InvalidInput
from online_svm.types import Floats


@dataclass(frozen=True, slots=True)
class ClassBias:
    """Mean of 1{y = c} - p(c) for each class c, and its standard error.

    Attributes
    ----------
    mean, standard_error : ndarray of shape (n_classes,)
    """

    mean: Floats
    standard_error: Floats


def class_bias(probabilities: ArrayLike, codes: ArrayLike) -> ClassBias:
    """Return how far each class's frequency lies from its mean probability.

    The theorem of Venn prediction says that the mean is zero when row n is p^{y_n}, the
    distribution that the true label picks, over independent pairs of a calibration set and an
    example.

    Parameters
    ----------
    probabilities : array-like of shape (n_samples, n_classes)
    codes : array-like of int of shape (n_samples,)
        True class of each example, from 0.

    Raises
    ------
    InvalidInput
        If a code is out of range, the lengths differ, or there are fewer than two examples.

    Examples
    --------
    >>> class_bias([[0.5, 0.5], [0.5, 0.5], [0.5, 0.5], [0.5, 0.5]], [0, 1, 1, 1]).mean
    array([-0.25,  0.25])
    """
    values = np.asarray(probabilities, dtype=np.float64)
    if values.ndim != 2 or len(values) < 2:
        raise InvalidInput(f"probabilities: expected at least two rows, got shape {values.shape}")
    truth = check_codes(codes, *values.shape)
    gaps = (truth[:, np.newaxis] == np.arange(values.shape[1])) - values
    return ClassBias(gaps.mean(axis=0), gaps.std(axis=0, ddof=1) / math.sqrt(len(values)))
