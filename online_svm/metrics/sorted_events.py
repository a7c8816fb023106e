"""Probabilities of an event and whether it happened, in one order that has no ties left open."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from online_svm.calibration.argument_checks import check_labels, check_scores
from online_svm.errors import InvalidInput
from online_svm.types import Bools, Floats, Ints


class SortedEvents(NamedTuple):
    """Events by ascending probability; among equal ones those that did not happen come first.

    Equal pairs cannot be told apart, so what is computed from them in order does not depend on the
    order in which they came, to the last bit.

    Attributes
    ----------
    probabilities : ndarray of shape (n_samples,)
    happened : ndarray of bool of shape (n_samples,)
    """

    probabilities: Floats
    happened: Bools


def sorted_events(probabilities: ArrayLike, outcomes: ArrayLike) -> SortedEvents:
    """Return checked probabilities and outcomes in that order.

    Parameters
    ----------
    probabilities : array-like of shape (n_samples,)
        Of any event: P(positive), or the confidence in the predicted class.
    outcomes : array-like of shape (n_samples,)
        1 where the event happened, else 0.

    Raises
    ------
    InvalidInput
        If a probability is not in [0, 1], an outcome not 0 or 1, or there is no example.

    Examples
    --------
    >>> sorted_events([0.5, 0.25, 0.5], [1, 1, 0])
    SortedEvents(probabilities=array([0.25, 0.5 , 0.5 ]), happened=array([ True, False,  True]))
    """
    values = check_scores(probabilities)
    if not len(values):
        raise InvalidInput("probabilities: there is no example to score")
    if not ((values >= 0.0) & (values <= 1.0)).all():
        raise InvalidInput("probabilities: must lie in [0, 1]")
    happened = check_labels(outcomes, len(values))
    order = np.argsort(sort_keys(values, happened))
    return SortedEvents(values[order], happened[order])


def sort_keys(probabilities: Floats, happened: Bools) -> Ints:
    """Return integers that sort as the pairs do: twice the bits of the probability, plus one.

    The bits of floats from 0 to 1 ascend as the floats do, and leave the two highest bits unused.

    Examples
    --------
    >>> bool(np.diff(sort_keys(np.array([0.2, 0.2, 0.3]), np.array([False, True, False]))).all())
    True
    """
    bits = np.ascontiguousarray(probabilities + 0.0).view(np.int64)  # -0.0 becomes 0.0
    return (bits << 1) | happened
