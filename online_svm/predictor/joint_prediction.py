"""The experts of a committee of more than two classes: joint calibrators."""

from collections.abc import Sequence

import numpy as np

from online_svm.calibration.joint import (
    JointMap,
    MatrixScaling,
    TemperatureScaling,
    VectorScaling,
)
from online_svm.compiled.kernel import kernel
from online_svm.predictor.calibrators import RecentCalibrator
from online_svm.predictor.pair_prediction import PrimaryPrediction
from online_svm.storage.state import State, under
from online_svm.storage.state_schema import StateSchema, part, record
from online_svm.types import Floats, Ints
from online_svm.venn.counted_set import VennAnswers

CALIBRATORS: dict[str, type[JointMap]] = {
    "temperature": TemperatureScaling,
    "vector": VectorScaling,
    "matrix": MatrixScaling,
    "log-matrix": MatrixScaling,
}
"""The calibrators; the last one takes the logarithms of the one-against-all probabilities."""

RECENT_EXAMPLES = 500
"""Newest examples to which the calibrator of recent scores is fitted."""


class JointPrediction(PrimaryPrediction):
    """Experts of more classes: temperature, vector and matrix scaling, and the Venn predictor.

    The scores are log-odds of each class against the rest. If one class is nearly certain, the
    softmax of log-odds is the sharper calibrator. If several classes are probable it exaggerates,
    and log p = -log(1 + exp(-s)) should be scaled instead. So matrix scaling is fitted to both. The
    Venn predictor's point counts categories: it is coarse but robust under drift. One more matrix
    is fitted to the models' answer-time scores of the last 500 examples (`RecentCalibrator`); it
    follows a moving stream, and spans models.
    """

    outputs = (*CALIBRATORS, "recent-matrix", "venn")
    _carried = ("_recent",)
    _stored = StateSchema(record("_calibrators", of="_restored_calibrators"), part("_recent"))

    def __init__(self) -> None:
        self._calibrators: dict[str, JointMap] = {}
        self._recent = RecentCalibrator(RECENT_EXAMPLES, _recent_matrix, MatrixScaling.from_state)

    def fit(self, scores: Floats, columns: Ints) -> None:
        """Fit the calibrators to scores, shape (n, K), and class columns, shape (n,)."""
        self._calibrators = {
            name: kind().fit(_input(name, scores), columns) for name, kind in CALIBRATORS.items()
        }
        self._recent.expect(scores.shape[1])

    def answer(self, scores: Floats, venn: VennAnswers, columns: Ints) -> Sequence[Floats]:
        """Answer rows in turn; a labelled row is learned after its answer."""
        n_known = scores.shape[1]
        known = [map_.predict(_input(name, scores)) for name, map_ in self._calibrators.items()]
        of_known = np.where(columns < n_known, columns, -1)
        known.append(self._recent.answer(_input("log-matrix", scores), of_known, known[0]))
        return [*(_with_rest(values, venn.point) for values in known), venn.point]

    def _restored_calibrators(self, state: State) -> dict[str, JointMap]:
        found = {
            name: kind.from_state(under(name, state.arrays)) for name, kind in CALIBRATORS.items()
        }
        self._recent.expect(found["matrix"].n_classes_)
        return found


def _recent_matrix(logs: Floats, columns: Ints) -> MatrixScaling:
    return MatrixScaling().fit(logs, columns)


def _with_rest(known: Floats, venn_point: Floats) -> Floats:
    """Append the Venn predictor's probabilities of unknown classes to those of known ones."""
    rest = venn_point[:, known.shape[1] :]
    if not rest.shape[1]:
        return known
    return np.concatenate([(1.0 - rest) * known, rest], axis=1)


def _input(name: str, scores: Floats) -> Floats:
    if name != "log-matrix":
        return scores
    logs = np.empty(scores.shape)
    _log_probabilities(scores, logs)
    return logs


@kernel
def _log_probabilities(scores: Floats, logs: Floats) -> None:
    """Write -log(1 + exp(-s)) of each score, shape (m, K), without overflow."""
