"""The headline of more than two classes: joint maps of the scores, mixed by how well they do."""

from typing import Self

import numpy as np

from online_svm.calibration.joint.maps import (
    JointMap,
    MatrixScaling,
    TemperatureScaling,
    VectorScaling,
)
from online_svm.compiled.elementary import exp_nonpositive, log1p
from online_svm.compiled.jit import jit
from online_svm.predictor.headline import Headline, HeadlineAnswers, held_answers
from online_svm.predictor.mixture import Mixture
from online_svm.predictor.recent_map import RecentMap
from online_svm.storage.arrays import nest, under
from online_svm.types import Arrays, Floats, Ints
from online_svm.venn.protocol import VennAnswers

SHARE = 0.005
"""Part of its weights that the mixture spreads evenly after each label."""

KINDS: dict[str, type[JointMap]] = {
    "temperature": TemperatureScaling,
    "vector": VectorScaling,
    "matrix": MatrixScaling,
    "log-matrix": MatrixScaling,
}
"""The maps; the last one is of the logarithms of the one-against-all probabilities."""


N_COMPONENTS = len(KINDS) + 2
RECENT = 500
"""Examples that the map of recent scores is fitted to."""


class JointHeadline:
    """A mixture of temperature, vector and matrix scaling, and of the Venn predictor's point.

    The scores are log-odds of each class against the rest. Where one class is nearly certain,
    softmax of log-odds is the sharper map; where several are probable it exaggerates, and what
    should be scaled is log p = -log(1 + exp(-s)). So matrix scaling is fitted to both. The Venn
    predictor's point counts categories; it is coarse, and late to go wrong under drift. One more
    matrix is fitted to what the models said of the last 500 examples before they learned them, see
    `RecentMap`: where the stream moves, that one is right.

    Weights follow the labels, and outlive the maps: see `Mixture`. A class that is not known yet
    has the Venn predictor's share.

    Examples
    --------
    >>> scores, codes = np.eye(3)[[0, 1, 2] * 20] * 4.0, np.array([0, 1, 2] * 20)
    >>> headline = JointHeadline()
    >>> headline.fit(scores, codes)
    >>> venn = VennAnswers.counted(np.array([[8, 1, 1]]), np.array([0]))
    >>> bool(headline.answer(scores[:1], venn, np.array([0])).point[0, 0] > 0.9)
    True
    """

    method = "joint"
    interval_level = None

    def __init__(self) -> None:
        self._maps: dict[str, JointMap] = {}
        self._mixture = Mixture(N_COMPONENTS, SHARE)
        self._recent = RecentMap(RECENT, _recent_matrix, MatrixScaling.from_state)

    def fit(self, scores: Floats, columns: Ints) -> None:
        """Fit the maps to scores, shape (n, K), and class columns, shape (n,)."""
        self._maps = {
            name: kind().fit(_input(name, scores), columns) for name, kind in KINDS.items()
        }

    def follow(self, before: Headline) -> None:
        """Begin with the weights that the headline of the model before has now."""
        if isinstance(before, JointHeadline):
            self._mixture, self._recent = before._mixture, before._recent

    def answer(self, scores: Floats, venn: VennAnswers, columns: Ints) -> HeadlineAnswers:
        """Mix rows in turn; each labelled one changes the weights after its answer."""
        n_known = scores.shape[1]
        said = [map_.predict(_input(name, scores)) for name, map_ in self._maps.items()]
        of_known = np.where(columns < n_known, columns, -1)
        said.append(self._recent.answer(_input("log-matrix", scores), of_known, said[0]))
        components = [_with_rest(values, venn.point) for values in said]
        point = self._mixture.answer([*components, venn.point], columns)
        return held_answers(point, venn)

    def state(self) -> Arrays:
        """Return the fitted maps, and the weights."""
        arrays = nest("mixture", self._mixture.state()) | nest("recent", self._recent.state())
        for name, map_ in self._maps.items():
            arrays |= nest(name, map_.state())
        return arrays

    @classmethod
    def from_state(cls, state: Arrays) -> Self:
        """Return the headline that `state` describes.

        Raises
        ------
        InvalidSnapshot
            If an array is absent or has another type, length or range.
        """
        restored = cls()
        weights = under("mixture", state)
        restored._mixture = Mixture.from_state(weights, N_COMPONENTS, SHARE)
        restored._maps = {name: kind.from_state(under(name, state)) for name, kind in KINDS.items()}
        restored._recent = RecentMap.from_state(
            under("recent", state), RECENT, _recent_matrix, MatrixScaling.from_state,
            restored._maps["matrix"].n_classes_,
        )  # fmt: skip
        return restored


def _recent_matrix(logs: Floats, columns: Ints) -> MatrixScaling:
    return MatrixScaling().fit(logs, columns)


def _with_rest(known: Floats, venn_point: Floats) -> Floats:
    """Return probabilities of known classes, and what the Venn predictor gives to others."""
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


@jit
def _log_probabilities(scores: Floats, logs: Floats) -> None:
    """Write -log(1 + exp(-s)) of each score, by the exponential that cannot overflow."""
    for i in range(scores.shape[0]):
        for k in range(scores.shape[1]):
            s = scores[i, k]
            logs[i, k] = min(s, 0.0) - log1p(exp_nonpositive(-abs(s)))
