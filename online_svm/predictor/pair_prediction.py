"""Primary prediction of an answer: the Venn predictor's own, and the ensemble of two classes."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from online_svm.calibration.platt import PlattScaling
from online_svm.compiled.kernel import kernel
from online_svm.predictor.calibrators import RecentCalibrator
from online_svm.storage.state_schema import StateSchema, StoredArrays, part
from online_svm.types import Floats, Ints
from online_svm.venn.counted_set import VennAnswers


class PrimaryPrediction(StoredArrays):
    """What a model's scores say beside its Venn predictor; without a committee, nothing.

    The subclasses make the experts of a committee.
    """

    _stored = StateSchema()
    _carried: ClassVar[tuple[str, ...]] = ()

    outputs: ClassVar[tuple[str, ...]] = ()

    def fit(self, scores: Floats, columns: Ints) -> None:
        """Fit to the scores and class columns of the calibration set, known classes only."""

    def follow(self, before: "PrimaryPrediction") -> None:
        """Carry over the state that spans models, `_carried`."""
        if type(before) is type(self):
            for name in self._carried:
                setattr(self, name, getattr(before, name))

    def answer(self, _scores: Floats, _venn: VennAnswers, _columns: Ints) -> Sequence[Floats]:
        """Answer rows in turn; a labelled row may be learned after its answer.

        `scores`, shape (m, n_scores).
        `venn`: the Venn predictor's answers to the same rows.
        `columns`, shape (m,): class columns of the labels; -1 for a row without a label.
        Returns for each of `outputs` probabilities of shape (m, n_classes).
        """
        return ()


N_PAIR_EXPERTS = 3

RECENT_EXAMPLES = 250
"""Newest examples to which the recent sigmoid is fitted; a second one, of 1,000, gained nothing."""


class PairPrediction(PrimaryPrediction):
    """Experts of two classes: stack, clipped stack, mean of the pair, and a recent sigmoid.

    The scores are log-odds of class 1. The stack was fitted on member outputs for training examples
    and is the freshest. Clipping it to the Venn-Abers pair (p0, p1) corrects lasting errors; among
    the merges of a pair it does best, because the mean is biased for a rare class, where p1 - p0 is
    wide on one side. The mean is the most robust under drift.

    The calibration set is as old as the training set, so both lag behind a moving stream. The
    sigmoid is fitted to the models' answer-time scores of the newest examples
    (`RecentCalibrator`), and spans models. The guarantee belongs to the pair alone.
    """

    outputs = ("stack", "clipped-stack", "venn", "recent-sigmoid")
    _carried = ("_recent",)
    _stored = StateSchema(part("_recent"))

    def __init__(self) -> None:
        self._recent = RecentCalibrator.one_against_all(RECENT_EXAMPLES, PlattScaling)

    def answer(self, scores: Floats, venn: VennAnswers, columns: Ints) -> Sequence[Floats]:
        """Answer rows in turn; a labelled row is learned after its answer."""
        pair = np.empty((N_PAIR_EXPERTS, len(scores), 2))
        _fill(scores, venn.point, venn.lower, venn.upper, pair)
        of_known = np.where(columns < 2, columns, -1)
        experts = [*pair, self._recent.answer(scores, of_known, pair[0])]
        if venn.point.shape[1] > 2:  # unseen labels get a column of zeros
            unseen = np.zeros((len(scores), 1))
            experts = [np.concatenate([expert, unseen], axis=1) for expert in experts]
        return experts


@kernel
def _fill(scores: Floats, mean: Floats, lower: Floats, upper: Floats, components: Floats) -> None:
    """Write both classes' probabilities by the stack, the clipped stack and the mean of the pair.

    Shapes: `scores` (m, 1), the pair's arrays (m, n_classes), `components` (3, m, 2).
    """
