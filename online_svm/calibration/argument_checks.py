"""The checks of scores, labels, weights and settings that all maps share."""

import numpy as np
from numpy.typing import ArrayLike

from online_svm.errors import InvalidInput
from online_svm.types import Bools, Floats, Ints, Weights

MOST_COUNTED = 3_000_000_000
"""Examples up to which products of two counts fit 64 bits."""


def check_scores(scores: ArrayLike) -> Floats:
    """Return `scores` as a float64 array.

    Parameters
    ----------
    scores : array-like of shape (n_samples,)

    Raises
    ------
    InvalidInput
        If `scores` is not one-dimensional, or holds NaN or an infinity.

    Examples
    --------
    >>> check_scores([1, 2])
    array([1., 2.])
    """
    values = _as_floats(scores, "scores")
    if values.ndim != 1:
        raise InvalidInput(
            f"scores: expected one score an example, shape (n,), got shape {values.shape}"
        )
    return check_finite(values, "scores")


def check_finite(values: Floats, name: str) -> Floats:
    """Return `values` unchanged, or raise InvalidInput if one is NaN or infinite.

    Examples
    --------
    >>> check_finite(np.ones(2), "scores")
    array([1., 1.])
    """
    if not np.isfinite(values).all():
        first = int(np.flatnonzero(~np.isfinite(values.ravel()))[0])
        raise InvalidInput(
            f"{name}: value {first} is {values.ravel()[first]}; remove such examples"
        )
    return values


def check_labels(labels: ArrayLike, n_samples: int) -> Bools:
    """Return two-class `labels` as booleans.

    Parameters
    ----------
    labels : array-like of shape (n_samples,)
        1 or True for the positive class, 0 or False for the other.
    n_samples : int
        The number of scores.

    Raises
    ------
    InvalidInput
        If there is not one label a score, or a label is neither 0 nor 1.

    Examples
    --------
    >>> check_labels([0, 1], 2)
    array([False,  True])
    """
    values = np.asarray(labels)
    if values.shape != (n_samples,):
        raise InvalidInput(
            f"labels: expected one label for each of {n_samples} scores, got shape {values.shape}"
        )
    if values.dtype == np.bool_:
        return np.ascontiguousarray(values)  # another layout would compile every kernel again
    positive = np.asarray(values == 1, dtype=np.bool_)
    if not (positive | np.asarray(values == 0, dtype=np.bool_)).all():
        raise InvalidInput("labels: must be 0 or 1; encode the positive class as 1")
    return positive


def check_training(scores: ArrayLike, labels: ArrayLike) -> tuple[Floats, Bools]:
    """Return both arguments of `fit`, checked by `check_scores` and `check_labels`.

    Examples
    --------
    >>> check_training([0.5], [True])
    (array([0.5]), array([ True]))
    """
    values = check_scores(scores)
    return values, check_labels(labels, len(values))


def check_weights(sample_weight: ArrayLike, n_samples: int) -> Weights:
    """Return the weights of examples: whole numbers as int64, others as float64.

    Whole weights are counts: what is fitted to them is what repeated examples would give.

    Parameters
    ----------
    sample_weight : array-like of shape (n_samples,)
        An example of weight 0 takes no part.
    n_samples : int
        The number of scores.

    Raises
    ------
    InvalidInput
        If there is not one weight a score, or one is neither 0 nor from 1e-100 to 1e100.

    Examples
    --------
    >>> check_weights([2.0, 1.0], 2), check_weights([0.5, 1.0], 2)
    (array([2, 1]), array([0.5, 1. ]))
    """
    weights = _as_floats(sample_weight, "sample_weight")
    if weights.shape != (n_samples,):
        raise InvalidInput(
            f"sample_weight: expected one weight for each of {n_samples} scores, "
            f"got shape {weights.shape}"
        )
    check_finite(weights, "sample_weight")
    if (weights < 0.0).any():
        raise InvalidInput(f"sample_weight: {weights.min()} is negative; use 0 to leave one out")
    if ((weights != 0.0) & ((weights < 1e-100) | (weights > 1e100))).any():  # squares must fit
        raise InvalidInput("sample_weight: give 0, or sizes from 1e-100 to 1e100")
    is_whole = (weights == np.floor(weights)).all() and weights.sum() <= MOST_COUNTED
    return weights.astype(np.int64) if is_whole else weights


def check_n_bins(n_bins: int) -> None:
    """Raise InvalidInput unless a number of bins is a whole number, at least 1.

    Examples
    --------
    >>> check_n_bins(10)
    """
    if not isinstance(n_bins, int | np.integer) or n_bins < 1:
        raise InvalidInput(f"n_bins: must be at least 1, and whole, not {n_bins!r}")


def check_codes(codes: ArrayLike, n_samples: int, n_classes: int) -> Ints:
    """Return class codes as int64, or raise InvalidInput if one is not in [0, n_classes).

    Examples
    --------
    >>> check_codes([0, 2], 2, 3)
    array([0, 2])
    """
    values = np.asarray(codes)
    if values.shape != (n_samples,) or (values.dtype.kind not in "iub" and n_samples):
        raise InvalidInput(
            f"codes: expected {n_samples} integers, one a row of scores, got {values.dtype} "
            f"of shape {values.shape}"
        )
    if n_samples and not (values.min() >= 0 and values.max() < n_classes):
        raise InvalidInput(f"codes: must lie in 0..{n_classes - 1} for this number of columns")
    return values.astype(np.int64)


def check_columns(scores: ArrayLike) -> Floats:
    """Return rows of scores as float64, or raise InvalidInput if they are no finite matrix.

    Examples
    --------
    >>> check_columns([[1, 2], [3, 4]])
    array([[1., 2.],
           [3., 4.]])
    """
    try:
        columns = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput("scores: expected rows of numbers, all of one length") from error
    if columns.ndim != 2 or not columns.shape[1]:
        raise InvalidInput(
            "scores: expected shape (n, 1) for two classes, or one column a class, "
            f"got {columns.shape}"
        )
    return check_finite(columns, "scores")


def _as_floats(values: ArrayLike, name: str) -> Floats:
    try:
        return np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{name}: expected numbers, got {type(values).__name__}") from error
