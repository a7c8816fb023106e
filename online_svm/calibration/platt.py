"""Platt scaling: a sigmoid of the score, fitted by maximum likelihood."""

import math
from typing import Literal, get_args

import numpy as np

from online_svm.calibration.score_map import WeightedMap
from online_svm.compiled.elementary import exp, log, log1p
from online_svm.compiled.kernel import kernel
from online_svm.errors import InvalidInput
from online_svm.storage.state_schema import StateSchema, floats, ints
from online_svm.types import Arrays, Bools, Floats, Weights

Point = tuple[float, float, float]


@kernel
def newton(scores: Floats, targets: Floats, masses: Floats, b: float) -> Point:
    """Minimise by Newton's method with backtracking (Lin, Lin & Weng 2007)."""


@kernel
def model_trust(scores: Floats, targets: Floats, masses: Floats, b: float) -> Point:
    """Minimise by the Levenberg-Marquardt iteration of Platt's appendix."""


Method = Literal["newton", "model-trust"]
Targets = Literal["platt", "raw"]
Sides = tuple[float, float]
METHODS: tuple[Method, ...] = get_args(Method)
NO_WEIGHTS = np.empty(0)  # every example counts once
TARGETS: tuple[Targets, ...] = get_args(Targets)

_STORED = StateSchema(ints("options", "3", below=2), floats("parameters", "3", optional=True))


class PlattScaling(WeightedMap):
    """P(positive | f) = 1 / (1 + exp(A f + B)), fitted by maximum likelihood (Platt 1999).

    With a single class, or a single distinct score, the map is the best constant: with Platt's
    targets (N+ + 1)/(N+ + 2) if all labels are positive, 1/(N- + 2) if all are negative, and 1/2
    without examples. Separable scores have a finite optimum with Platt's targets. With raw targets,
    separable scores and a single class have none, and `fit` raises InvalidInput.

    Parameters
    ----------
    method : {"newton", "model-trust"}, default="newton"
        Newton's method with backtracking (Lin, Lin & Weng 2007), or the model-trust iteration of
        Platt's appendix. Their losses agree within 1e-6 relative.
    targets : {"platt", "raw"}, default="platt"
        Platt's targets (N+ + 1)/(N+ + 2) and 1/(N- + 2), or the 0/1 labels.

    Attributes
    ----------
    A_, B_ : float
        Slope and offset; A_ <= 0, so that a larger score never means a smaller probability.
    loss_ : float
        Summed cross-entropy between the targets and the fitted probabilities, in nats.
    wrong_sign_ : bool
        True if the best slope was positive: the scores rank the classes in reverse. The loss is
        convex, so its minimum over A <= 0 is then at A = 0, and the map is the best constant.

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
        self.method = method
        self.targets = targets
        self._check_parameters()

    def _check_parameters(self) -> None:
        if self.method not in METHODS:
            raise InvalidInput(f"method: must be one of {METHODS}, not {self.method!r}")
        if self.targets not in TARGETS:
            raise InvalidInput(f"targets: must be one of {TARGETS}, not {self.targets!r}")

    def _fit(self, scores: Floats, positive: Bools) -> None:
        n_positive = int(np.count_nonzero(positive))
        sides = (n_positive, len(positive) - n_positive)
        self._fit_sides(scores, positive, NO_WEIGHTS, sides)

    def _fit_weighted(self, scores: Floats, positive: Bools, weights: Weights) -> None:
        masses = weights.astype(np.float64)
        sides = (math.fsum(masses[positive]), math.fsum(masses[~positive]))
        self._fit_sides(scores, positive, masses, sides)

    def _fit_sides(self, scores: Floats, positive: Bools, weights: Floats, sides: Sides) -> None:
        """Fit; `sides` is the number (or weight) of positive and of negative examples."""
        if self.targets == "raw":
            _check_finite_optimum(scores, positive)
        high, low = target_values(self.targets, sides)
        self._set_constant(sides, high, low)
        self.wrong_sign_ = False
        if min(sides) > 0 and scores.min() < scores.max():
            self._set_optimum(scores, positive, weights, (high, low))

    def _predict(self, scores: Floats) -> Floats:
        found = np.empty(len(scores))
        _write_probabilities(scores, self.A_, self.B_, found)
        return found

    def _state(self) -> Arrays:
        options = (METHODS.index(self.method), TARGETS.index(self.targets), self.wrong_sign_)
        return {
            "parameters": np.array([self.A_, self.B_, self.loss_]),
            "options": np.array(options, dtype=np.int64),
        }

    def _load(self, state: Arrays) -> None:
        stored = _STORED.values(type(self), None, state)
        method, targets, wrong_sign = stored["options"].tolist()
        self.method, self.targets = METHODS[method], TARGETS[targets]
        self.A_, self.B_, self.loss_ = stored["parameters"].tolist()
        self.wrong_sign_ = bool(wrong_sign)

    def _set_constant(self, sides: Sides, high: float, low: float) -> None:
        """Set the best map of slope zero: the mean target."""
        n_positive, n_negative = sides
        for_it = n_positive * high + n_negative * low
        against = n_positive * (1.0 - high) + n_negative * (1.0 - low)
        self.A_ = 0.0
        self.B_ = log(against / for_it) if max(sides) > 0 else 0.0
        self.loss_ = for_it * log1p(exp(self.B_))
        self.loss_ += against * log1p(exp(-self.B_))

    def _set_optimum(
        self, scores: Floats, positive: Bools, weights: Floats, targets: tuple[float, float]
    ) -> None:
        centre, width = _frame(scores)
        framed = (scores - centre) / width
        masses = weights if len(weights) else np.ones(len(scores))
        minimise = newton if self.method == "newton" else model_trust
        slope, offset, loss = minimise(framed, np.where(positive, *targets), masses, self.B_)
        self.wrong_sign_ = slope > 0.0
        slope /= width
        offset -= slope * centre
        # The slope overflows only if all scores lie within 1e-300 of each other.
        if not self.wrong_sign_ and math.isfinite(slope) and math.isfinite(offset):
            self.A_, self.B_, self.loss_ = slope, offset, loss


def target_values(targets: Targets, sides: Sides) -> Sides:
    """Return the targets of positive and of negative examples; `sides` are their numbers."""
    if targets == "raw":
        return 1.0, 0.0
    n_positive, n_negative = sides
    return (n_positive + 1.0) / (n_positive + 2.0), 1.0 / (n_negative + 2.0)


def _frame(scores: Floats) -> tuple[float, float]:
    """Return the centre of the scores and a power of two as width: dividing by it is exact."""
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


@kernel
def _write_probabilities(scores: Floats, slope: float, offset: float, found: Floats) -> None:
    """Write 1 / (1 + exp(slope score + offset)); infinite log-odds give 0 or 1."""
