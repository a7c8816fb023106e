"""Targets of learning: labels, and in the place of some an annotator's probabilities."""

from collections.abc import Sequence

import numpy as np

from online_svm.errors import InvalidInput
from online_svm.types import Bools, Floats


def checked_probabilities(
    probabilities: Floats | None, labels: Sequence[str | None], *, are_taken: bool
) -> Floats:
    """Return the probability of each row, NaN where it has none.

    Parameters
    ----------
    probabilities : ndarray of shape (m,), optional
    labels : sequence of (str or None), length m
    are_taken : bool
        Whether the learner can learn from a probability.

    Raises
    ------
    InvalidInput
        If there is not one for each row, one is not in [0, 1] or stands beside a label, or the
        learner takes none.

    Examples
    --------
    >>> checked_probabilities(None, ["a", None], are_taken=False)
    array([nan, nan])
    >>> checked_probabilities(np.array([0.5, 0.5]), ["a", None], are_taken=True)
    Traceback (most recent call last):
    online_svm.errors.InvalidInput: probabilities: row 0 has a label as well; give one of the two
    """
    if probabilities is None:
        return np.full(len(labels), np.nan)
    has_label = np.array([label is not None for label in labels], dtype=np.bool_)
    probs = np.asarray(probabilities, dtype=np.float64)
    if probs.shape != has_label.shape:
        raise InvalidInput(
            f"probabilities: shape {probs.shape} for {len(has_label)} rows; NaN stands for none"
        )
    given = ~np.isnan(probs)
    if given.any() and not are_taken:
        raise InvalidInput("probabilities: the learner takes labels only; use learner psvm")
    _refuse(given & has_label, "has a label as well; give one of the two")
    _refuse(given & ~((probs >= 0.0) & (probs <= 1.0)), "has one that is not in [0, 1]")
    return probs


def _refuse(wrong: Bools, why: str) -> None:
    if wrong.any():
        raise InvalidInput(f"probabilities: row {int(np.argmax(wrong))} {why}")
