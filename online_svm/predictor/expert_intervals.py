"""The intervals of the expert ensemble, from its answers to the last labelled examples.

With delayed labels the state has learned much since the original answers, so their errors say
little about it; its own answers just before each label say more. Under drift it is the other way
round: the state has learned the examples just before the label, which no answer can. So the
intervals hold those of both, once there are enough original answers that were given with at least
half of the examples that are learned now.
"""

import numpy as np

from online_svm.predictor.expert import RowsToLearn
from online_svm.predictor.pending_examples import AnswerTimeOutputs
from online_svm.predictor.recent_interval import RecentIntervals
from online_svm.storage.state_schema import StateSchema, StoredArrays, part
from online_svm.stream.labels import ClassView
from online_svm.types import Floats

MIN_ORIGINALS = 750
"""Original answers before their intervals count; by then they fill the count of 500."""


class ExpertIntervals(StoredArrays):
    """Intervals at `level` for the classes of `view`."""

    _stored = StateSchema(part("_present"), part("_originals"))

    def __init__(self, level: float, view: ClassView, *, is_delayed: bool) -> None:
        self._level, self._is_delayed = level, is_delayed
        self._present = RecentIntervals(level, view, is_delayed=is_delayed)
        self._originals = RecentIntervals(level, view, is_delayed=True) if is_delayed else None

    def of_classes(self, view: ClassView) -> "ExpertIntervals":
        """Return the intervals of other classes, with what is known of those in `view`."""
        other = ExpertIntervals(self._level, view, is_delayed=self._is_delayed)
        other._present.follow(self._present)
        if other._originals is not None and self._originals is not None:
            other._originals.follow(self._originals)
        return other

    def answer(self, point: Floats, rows: RowsToLearn) -> tuple[Floats, Floats]:
        """Return lower and upper ends of shape (m, n_classes); count a learned row after its own.

        `point`, shape (m, n_classes): the announced probabilities.
        """
        columns, earlier = rows.columns, rows.earlier
        lower, upper = self._present.answer(columns, _of_present_state(point, earlier))
        originals = self._originals
        if originals is None:
            return lower, upper
        comparable = np.zeros(len(point), dtype=bool)
        if earlier is not None:
            comparable = earlier.comparable & earlier.learns
        columns = np.where(comparable, columns, -1)
        joins = columns >= 0
        is_enough = originals.n_labels + np.cumsum(joins) - joins >= MIN_ORIGINALS
        low, high = originals.answer(columns, point)
        lower[is_enough] = np.minimum(lower, low)[is_enough]
        upper[is_enough] = np.maximum(upper, high)[is_enough]
        return lower, upper


def _of_present_state(point: Floats, earlier: AnswerTimeOutputs | None) -> Floats:
    """Return the probabilities with those of copies in the place of their learned rows."""
    if earlier is None or earlier.copied is None:
        return point
    return point[np.arange(len(point)) - earlier.copied]
