"""Primary prediction of more than two classes: an ensemble of joint calibrators."""

import numpy as np

from online_svm.calibration.joint import (
    JointMap,
    MatrixScaling,
    TemperatureScaling,
    VectorScaling,
)
from online_svm.compiled.kernel import kernel
from online_svm.predictor.calibrators import RecentCalibrator
from online_svm.predictor.ensemble import Ensemble
from online_svm.predictor.pair_prediction import PrimaryAnswers, PrimaryPrediction
from online_svm.storage.state import nest, under
from online_svm.types import Arrays, Floats, Ints
from online_svm.venn.counted_set import VennAnswers

CALIBRATORS: dict[str, type[JointMap]] = {
    "temperature": TemperatureScaling,
    "vector": VectorScaling,
    "matrix": MatrixScaling,
    "log-matrix": MatrixScaling,
}
"""The calibrators; the last one takes the logarithms of the one-against-all probabilities."""

N_EXPERTS = len(CALIBRATORS) + 2
RECENT_EXAMPLES = 500
"""Newest examples to which the calibrator of recent scores is fitted."""


class JointPrediction(PrimaryPrediction):
    """An ensemble of temperature, vector and matrix scaling with the Venn predictor's point.

    The scores are log-odds of each class against the rest. If one class is nearly certain, the
    softmax of log-odds is the sharper calibrator. If several classes are probable it exaggerates,
    and log p = -log(1 + exp(-s)) should be scaled instead. So matrix scaling is fitted to both. The
    Venn predictor's point counts categories: it is coarse but robust under drift. One more matrix
    is fitted to the models' answer-time scores of the last 500 examples (`RecentCalibrator`); it
    follows a moving stream. The weights span models.
    """

    method = "joint"
    uses_recent_ensemble = True

    def __init__(self) -> None:
        self._calibrators: dict[str, JointMap] = {}
        self._ensemble = Ensemble(N_EXPERTS)
        self._recent = RecentCalibrator(RECENT_EXAMPLES, _recent_matrix, MatrixScaling.from_state)

    def fit(self, scores: Floats, columns: Ints) -> None:
        """Fit the calibrators to scores, shape (n, K), and class columns, shape (n,)."""
        self._calibrators = {
            name: kind().fit(_input(name, scores), columns) for name, kind in CALIBRATORS.items()
        }
        self._recent.expect(scores.shape[1])

    def follow(self, before: PrimaryPrediction) -> None:
        """Carry over the weights and the recent scores from the previous model."""
        if isinstance(before, JointPrediction):
            self._ensemble, self._recent = before._ensemble, before._recent

    def answer(self, scores: Floats, venn: VennAnswers, columns: Ints) -> PrimaryAnswers:
        """Answer rows in turn; a labelled row is learned after its answer."""
        n_known = scores.shape[1]
        known = [map_.predict(_input(name, scores)) for name, map_ in self._calibrators.items()]
        of_known = np.where(columns < n_known, columns, -1)
        known.append(self._recent.answer(_input("log-matrix", scores), of_known, known[0]))
        experts = [_with_rest(values, venn.point) for values in known]
        point = self._ensemble.answer([*experts, venn.point], columns)
        return PrimaryAnswers.within(point, venn)

    def state(self) -> Arrays:
        """Return the fitted calibrators, the recent scores and the weights."""
        arrays = nest("mixture", self._ensemble.state()) | nest("recent", self._recent.state())
        for name, map_ in self._calibrators.items():
            arrays |= nest(name, map_.state())
        return arrays

    def restore(self, state: Arrays) -> None:
        """Continue from a state."""
        self._ensemble.restore(under("mixture", state))
        self._calibrators = {
            name: kind.from_state(under(name, state)) for name, kind in CALIBRATORS.items()
        }
        self._recent.restore(under("recent", state), self._calibrators["matrix"].n_classes_)


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
