"""Platt scaling: a sigmoid of the score, fitted by maximum likelihood."""

import math
from collections.abc import Mapping
from typing import Literal, Self, get_args

import numpy as np
from scipy.special import expit

from online_svm.calibration import sigmoid
from online_svm.calibration.base import (
    Bools,
    Floats,
    Ints,
    State,
    read_floats,
    read_ints,
)
from online_svm.calibration.fitted import PointMap
from online_svm.errors import InvalidInput, InvalidSnapshot

Method = Literal["newton", "model-trust"]
Targets = Literal["platt", "raw"]
METHODS: tuple[Method, ...] = get_args(Method)
TARGETS: tuple[Targets, ...] = get_args(Targets)


class PlattScaling(PointMap):
    """P(positive | f) = 1 / (1 + exp(A f + B)), by maximum likelihood (Platt 1999).

    Parameters
    ----------
    method : {"newton", "model-trust"}, default="newton"
        Newton's method with backtracking (Lin, Lin & Weng 2007), or the model-trust iteration of
        Platt's appendix. They reach the same loss within 1e-6 relative.
    targets : {"platt", "raw"}, default="platt"
        Platt's targets (N+ + 1)/(N+ + 2) and 1/(N- + 2), or the labels themselves.

    Attributes
    ----------
    A_, B_ : float
        Slope and offset; A_ <= 0, so that a larger score never means a smaller probability.
    loss_ : float
        Cross-entropy between the targets and the fitted probabilities, summed, in nats.
    wrong_sign_ : bool
        Whether the best slope was positive: the scores point the wrong way. The loss is convex, so
        its minimum over A <= 0 is then at A = 0, and the map is the best constant.

    Notes
    -----
    With one class only, or without two different scores, the best constant is returned: by
    Platt's targets (N+ + 1)/(N+ + 2) when all are positive, 1/(N- + 2) when all are negative, and
    1/2 without any example. Separable scores have a finite optimum by Platt's targets. By raw
    targets they have none, nor has a single class; then `fit` raises InvalidInput.

    The fit runs on scores moved and scaled to [-1, 1], so that scores of any finite size neither
    overflow nor make the Hessian singular.

    References
    ----------
    J. Platt (1999), Probabilistic outputs for support vector machines. H.-T. Lin, C.-J. Lin,
    R. C. Weng (2007), A note on Platt's probabilistic outputs for support vector machines.

    Examples
    --------
    >>> fitted = PlattScaling().fit([-2.0, -1.0, 1.0, 2.0], [0, 0, 1, 1])
    >>> fitted.predict([-1.0, 0.0, 1.0]).round(3)
    array([0.338, 0.5  , 0.662])
    """

    _learned = "A_"
    A_: float
    B_: float
    loss_: float
    wrong_sign_: bool

    def __init__(self, method: Method = "newton", targets: Targets = "platt") -> None:
        if method not in METHODS:
            raise InvalidInput(f"method: must be one of {METHODS}, not {method!r}")
        if targets not in TARGETS:
            raise InvalidInput(f"targets: must be one of {TARGETS}, not {targets!r}")
        self.method = method
        self.targets = targets

    def _fit(self, scores: Floats, positive: Bools) -> None:
        if self.targets == "raw":
            _check_finite_optimum(scores, positive)
        high, low = self._target_values(positive)
        self._set_constant(positive, high, low)
        self.wrong_sign_ = False
        if 0 < np.count_nonzero(positive) < len(positive) and scores.min() < scores.max():
            self._set_optimum(scores, positive, high, low)

    def _predict(self, scores: Floats) -> Floats:
        with np.errstate(over="ignore"):  # an infinite product is a probability of 0 or 1
            line = self.A_ * scores + self.B_
        return np.asarray(expit(-line), dtype=np.float64)

    def _state(self) -> State:
        options = (METHODS.index(self.method), TARGETS.index(self.targets), self.wrong_sign_)
        return {
            "parameters": np.array([self.A_, self.B_, self.loss_]),
            "options": np.array(options, dtype=np.int64),
        }

    @classmethod
    def _restore(cls, state: Mapping[str, Floats | Ints]) -> Self:
        options = read_ints(state, "options", 3).tolist()
        if options[0] not in (0, 1) or options[1] not in (0, 1):
            raise InvalidSnapshot(f"map state: {options} names no method and targets")
        restored = cls(METHODS[options[0]], TARGETS[options[1]])
        restored.A_, restored.B_, restored.loss_ = read_floats(state, "parameters", 3).tolist()
        restored.wrong_sign_ = bool(options[2])
        return restored

    def _target_values(self, positive: Bools) -> tuple[float, float]:
        if self.targets == "raw":
            return 1.0, 0.0
        n_positive = int(np.count_nonzero(positive))
        return (n_positive + 1.0) / (n_positive + 2.0), 1.0 / (len(positive) - n_positive + 2.0)

    def _set_constant(self, positive: Bools, high: float, low: float) -> None:
        """Set the best map without a slope: the mean target everywhere."""
        n_positive = int(np.count_nonzero(positive))
        n_negative = len(positive) - n_positive
        for_it = n_positive * high + n_negative * low
        against = n_positive * (1.0 - high) + n_negative * (1.0 - low)
        self.A_ = 0.0
        self.B_ = math.log(against / for_it) if len(positive) else 0.0
        self.loss_ = for_it * math.log1p(math.exp(self.B_))
        self.loss_ += against * math.log1p(math.exp(-self.B_))

    def _set_optimum(self, scores: Floats, positive: Bools, high: float, low: float) -> None:
        centre, width = _frame(scores)
        framed = (scores - centre) / width
        minimise = sigmoid.newton if self.method == "newton" else sigmoid.model_trust
        slope, offset, loss = minimise(framed, positive, high, low, self.B_)
        self.wrong_sign_ = slope > 0.0
        slope /= width
        offset -= slope * centre
        # Only scores within 1e-300 of each other have a slope too steep to be held.
        if not self.wrong_sign_ and math.isfinite(slope) and math.isfinite(offset):
            self.A_, self.B_, self.loss_ = slope, offset, loss


def _frame(scores: Floats) -> tuple[float, float]:
    """Return the centre of the scores, and a power of two (division by it is exact) as width."""
    low, high = float(scores.min()), float(scores.max())
    centre = low * 0.5 + high * 0.5  # the sum itself could overflow
    _, exponent = math.frexp(max(high - centre, centre - low))
    return centre, math.ldexp(1.0, min(exponent, 1023))


def _check_finite_optimum(scores: Floats, positive: Bools) -> None:
    reason = ""
    if not 0 < np.count_nonzero(positive) < len(positive):
        reason = "labels: raw targets need both classes"
    elif scores[positive].min() >= scores[~positive].max():
        reason = "scores: they separate the classes, and raw targets have no finite optimum"
    if reason:
        raise InvalidInput(f'{reason}; use targets="platt"')
