"""The answer that was given before the label came: it is scored in place of the own one."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from online_svm.errors import InvalidExample
from online_svm.stream.prediction import PredictionBlock
from online_svm.types import Floats

_FROM_ONE = 1e-6
"""How far from one probabilities may sum to: far more than rounding, far less than a mistake."""


class GivenAnswer(NamedTuple):
    """What an answer put first, for each class.

    Attributes
    ----------
    point, lower, upper : tuple of float
        `lower <= point <= upper`, all in [0, 1]; `point` sums to one.
    """

    point: tuple[float, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]


def checked_answer(sent: object, classes: Sequence[str]) -> GivenAnswer:
    """Return what an answer says first; its other fields are not looked at.

    Parameters
    ----------
    sent : mapping
        With `status`, `classes`, `probabilities` and `intervals` as a `Prediction` has them.
    classes : sequence of str
        The declared labels, sorted.

    Raises
    ------
    InvalidExample
        If it is no answer of a model over these classes.

    Examples
    --------
    >>> sent = {"status": "ok", "classes": ["a", "b"], "probabilities": [0.25, 0.75],
    ...         "intervals": [[0.2, 0.3], [0.7, 0.8]]}
    >>> checked_answer(sent, ("a", "b")).lower
    (0.2, 0.7)
    >>> checked_answer(sent | {"probabilities": [0.25, 0.5]}, ("a", "b"))
    Traceback (most recent call last):
    online_svm.errors.InvalidExample: a: probabilities do not sum to one
    """
    if not isinstance(sent, Mapping) or sent.get("status") != "ok":
        raise _invalid("it is no answer of a model, whose status is ok")
    if sent.get("classes") != list(classes):
        raise _invalid("its classes are not those of the feed, sorted")
    point = _numbers(sent.get("probabilities"), len(classes), "probabilities")
    intervals = sent.get("intervals")
    if not isinstance(intervals, list) or len(intervals) != len(classes):
        raise _invalid("intervals are not a list with one for each class")
    pairs = [_numbers(pair, 2, "an interval") for pair in intervals]
    if abs(math.fsum(point) - 1.0) > _FROM_ONE:
        raise _invalid("probabilities do not sum to one")
    if not all(low <= p <= high for p, (low, high) in zip(point, pairs, strict=True)):
        raise _invalid("an interval does not hold its probability")
    lower, upper = zip(*pairs, strict=True)
    return GivenAnswer(point, lower, upper)


def given_columns(given: Sequence[GivenAnswer | None], n_classes: int) -> Floats:
    """Return given answers as an array of shape (m, n_classes, 3), NaN where there is none.

    Examples
    --------
    >>> given_columns([None, GivenAnswer((0.5, 0.5), (0.25, 0.5), (0.75, 1.0))], 2)[1].tolist()
    [[0.5, 0.25, 0.75], [0.5, 0.5, 1.0]]
    """
    columns = np.full((len(given), n_classes, 3), np.nan)
    for row, answer in enumerate(given):
        if answer is not None:
            columns[row] = np.array(answer).T
    return columns


def as_given(block: PredictionBlock, given: Floats | None) -> PredictionBlock:
    """Return own answers; those for which others were given say first what these said.

    Parameters
    ----------
    block : PredictionBlock of m rows
    given : ndarray of shape (m, n_classes, 3), or None
        As `given_columns` makes it.
    """
    if given is None or np.isnan(given).all():
        return block
    is_own = np.isnan(given)
    own = np.stack([block.point, block.lower, block.upper], axis=2)
    said = np.where(is_own, own, given)
    point, lower, upper = (np.ascontiguousarray(said[:, :, i]) for i in range(3))
    label = np.argmax(point, axis=1).astype(np.int64)
    return replace(block, point=point, lower=lower, upper=upper, label=label)


def _numbers(values: object, count: int, what: str) -> tuple[float, ...]:
    """Return so many numbers in [0, 1]."""
    if not isinstance(values, list) or len(values) != count:
        raise _invalid(f"{what}: not a list of {count} numbers")
    for value in values:
        if type(value) not in (int, float) or not 0.0 <= value <= 1.0:
            raise _invalid(f"{what}: not numbers in [0, 1]")
    return tuple(map(float, values))


def _invalid(reason: str) -> InvalidExample:
    return InvalidExample("answer", f"a: {reason}")
