"""An ensemble of experts: the mean of their probabilities, weighted by their past likelihood."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from online_svm.compiled.elementary import exps
from online_svm.compiled.elementary import logs as logarithms
from online_svm.compiled.kernel import kernel
from online_svm.config import MIXED, PredictorConfig
from online_svm.storage.state_schema import StateSchema, StoredArrays, floats
from online_svm.stream.prediction import PredictionBlock
from online_svm.types import Floats, Ints


class WeightUpdate(NamedTuple):
    """How a label changes the weights of the experts."""

    share: float  # part of the weight that each label redistributes, in [0, 1]; 0 never forgets
    rate: float = 1.0  # exponent of p_i(y); below 1 the weights change more slowly
    # Parts in weight and share: of the first expert, or of each; None: equal.
    first: float | tuple[float, ...] | None = None


class MixtureArrays(NamedTuple):
    """What a kernel needs of an ensemble; it changes `logs`."""

    logs: Floats  # shape (K,); logarithms
    moved: Floats  # shape (K,); each expert's part of the redistributed share
    share: float
    rate: float


CALIBRATORS_UPDATE = WeightUpdate(0.001)
"""Update of the calibrator "mixed": primary prediction and published calibrators."""


class Ensemble(StoredArrays):
    """p = sum of w_i p_i, where w_i follows the product of the p_i(y) of past labels.

    With share 0 this is the Bayes mixture: its cumulative log loss is -ln of the mean over i of the
    products, so at most the loss of the best p_i plus ln K. With a share, each label redistributes
    that part of the weight to all K experts. No weight dies, and the ensemble tracks the p_i that
    is best now (Herbster & Warmuth 1998, with part of the share returning to its source). Against
    the best sequence of p_i with s changes it loses little more than s ln(K / share) + n share.

    The p_i are clipped: a class below 1e-6 (or half of 1 / n_classes, if that is less) is raised to
    that floor, and the others are scaled so that the row sums to one. Rows without such a class are
    unchanged, bit for bit. A refit changes no weight.

    Parameters
    ----------
    n_experts : int
        K.

    References
    ----------
    M. Herbster, M. K. Warmuth (1998), Tracking the best expert.

    Examples
    --------
    >>> ensemble = Ensemble(2, WeightUpdate(share=0.0))
    >>> first, second = np.array([[0.9, 0.1]] * 2), np.array([[0.5, 0.5]] * 2)
    >>> ensemble.answer([first, second], np.array([0, -1])).round(4).tolist()
    [[0.7, 0.3], [0.7571, 0.2429]]
    >>> ensemble.weights.round(4).tolist()  # 0.9 to 0.5
    [0.6429, 0.3571]
    """

    _stored = StateSchema(floats("_logs"))

    def __init__(self, n_experts: int, update: WeightUpdate) -> None:
        self._share, self._rate, first = update
        self._logs = np.zeros(n_experts)
        self._moved = np.full(n_experts, self._share / n_experts)
        if isinstance(first, float):
            first = (first, *[(1.0 - first) / (n_experts - 1)] * (n_experts - 1))
        if first is not None:
            begin = np.array(first)
            self._logs, self._moved = logarithms(begin), self._share * begin

    @classmethod
    def of_calibrators(cls, config: PredictorConfig) -> "Ensemble | None":
        """Return the ensemble behind the calibrator "mixed"; None if it is not published."""
        names = config.published
        return cls(len(names), CALIBRATORS_UPDATE) if MIXED in names else None

    @property
    def weights(self) -> Floats:
        """The present w_i, shape (K,)."""
        weights = exps(self._logs - self._logs.max())
        return np.asarray(weights / math.fsum(weights))

    @property
    def mixture(self) -> MixtureArrays:
        """The weights as kernels take them."""
        return MixtureArrays(self._logs, self._moved, self._share, self._rate)

    def answer(self, experts: Floats | Sequence[Floats], columns: Ints) -> Floats:
        """Average rows in order; a labelled row changes the weights after its answer.

        Parameters
        ----------
        experts : ndarray of shape (K, m, n_classes), or a sequence of its K parts
            Probabilities; rows sum to one.
        columns : ndarray of shape (m,)
            Class column of each label; -1 for a row without a label. A column beyond the classes is
            not learned.

        Returns
        -------
        ndarray of shape (m, n_classes)
        """
        stacked = np.ascontiguousarray(experts)
        mixed = np.empty(stacked.shape[1:])
        parts = np.empty((len(stacked), stacked.shape[2]))
        _mix(stacked, columns, self.mixture, parts, mixed)
        return mixed

    def added_to(self, block: PredictionBlock, columns: Ints) -> PredictionBlock:
        """Append the calibrator "mixed" to those of `block`; learn the labels."""
        mixed = self.answer([block.point, *block.maps.values()], columns)
        return replace(block, maps={**block.maps, MIXED: mixed})


@kernel
def _mix(
    components: Floats,
    columns: Ints,
    weights: MixtureArrays,
    parts: Floats,
    mixed: Floats,
) -> None:
    """Write the averaged rows, and update the log weights after each label.

    Shapes: `components` (K, m, n_classes), `mixed` (m, n_classes). `parts`, shape (K, n_classes),
    is scratch.
    """
