"""Belief functions from logistic regression (Xu et al. 2016, section 4.3).

The integrals behind Bel and Pl each cost a pass over the examples. They are smooth in the score,
so they are computed at about a hundred scores, and a cubic spline interpolates their logarithms.
Quadrature and spline are implemented here because the routines of numpy and scipy call LAPACK,
whose last bits depend on the library and its threads.
"""

import math
from dataclasses import astuple, dataclass
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from typing_extensions import override

from online_svm.calibration.evidential.blocks import (
    EvidentialMap,
    check_alpha,
    check_option,
    check_proportions,
    interval_mass,
)
from online_svm.calibration.evidential.line import FittedLine, Likelihood, fit_line, log_ignorance
from online_svm.calibration.evidential.masses import stack, vacuous
from online_svm.calibration.platt import TARGETS, Targets
from online_svm.compiled.elementary import expm1s, logistics
from online_svm.compiled.kernel import kernel
from online_svm.compiled.special import normal_quantile
from online_svm.errors import InvalidInput, InvalidSnapshot
from online_svm.storage.state_schema import StateSchema, floats, ints
from online_svm.types import Arrays, Bools, Floats

# Evenly spaced knots in the centre. On the data sets of the tests the spline's error is below 5e-6.
N_CENTRAL = 121
N_NODES = 16  # Gauss-Legendre nodes; the error up to `DROP` in line.c is below 1e-7
FARTHEST_FINITE_KNOT = 1e3  # times sqrt(n): a score at which the values equal the limit


@dataclass(frozen=True, slots=True, eq=False)
class IgnoranceTable:
    """Splines of two log mean plausibilities, as functions of the score."""

    knots: Floats  # shape (m,): compactified scores, from -1 to 1; see `compactify`
    # Shape (4, m - 1, 2): cubic pieces of the values below and above the best proportion.
    coefficients: Floats

    @classmethod
    def build(cls, likelihood: Likelihood) -> "IgnoranceTable":
        """Compute the table around a fitted line."""
        if likelihood.line.width == 0.0:
            coefficients = np.zeros((4, 1, 2))
            coefficients[-1, 0] = _both_sides(likelihood, 0.0, gauss_legendre(N_NODES))
            return cls(np.array([-1.0, 1.0]), coefficients)
        knots = _knots(len(likelihood.scores))
        rule = gauss_legendre(N_NODES)
        inside = knots[1:-1]
        scores = 2.0 * inside / (1.0 - inside * inside)
        inner = [_both_sides(likelihood, score, rule) for score in scores.tolist()]
        values = np.array([_limit(likelihood, -1.0), *inner, _limit(likelihood, 1.0)])
        return cls(knots, cubic_spline(knots, values))

    def evaluate(self, scores: Floats) -> tuple[Floats, Floats]:
        """Return the two log mean plausibilities at standardised scores."""
        logs = np.minimum(evaluate(self.knots, self.coefficients, compactify(scores)), 0.0)
        return logs[:, 0], logs[:, 1]


def compactify(scores: Floats) -> Floats:
    """Map the real line onto (-1, 1) by t / (1 + sqrt(1 + t^2)), smooth at infinity."""
    finite = np.clip(scores, -1e150, 1e150)  # the result is 1 here; squares stay finite
    return np.asarray(finite / (1.0 + np.sqrt(1.0 + finite * finite)))


def _knots(n: int) -> Floats:
    """Return compactified knots: even in the centre, then with halving gaps up to -1 and 1."""
    central = np.linspace(-1.0, 1.0, N_CENTRAL)[1:-1]
    gap = (1.0 - central[-1]) / 2.0
    halvings = max(math.frexp(FARTHEST_FINITE_KNOT * math.sqrt(n) * gap)[1] - 1, 1)
    tail = 1.0 - np.ldexp(gap, -np.arange(halvings))
    return np.concatenate([[-1.0], -tail[::-1], central, tail, [1.0]])


def _both_sides(likelihood: Likelihood, t: float, rule: Floats) -> tuple[float, float]:
    """Return the log mean plausibility below and above the best proportion.

    The value above equals the value below with the classes swapped.
    """
    line, targets, top = likelihood.line, likelihood.targets, likelihood.top
    d, u = likelihood.scores - t, line.offset + line.slope * t
    below = log_ignorance(d, targets, u, line.slope, top, rule)
    return below, log_ignorance(d, 1.0 - targets, -u, -line.slope, top, rule)


def _limit(likelihood: Likelihood, side: float) -> tuple[float, float]:
    """Return the values at an infinite score.

    There, the slightest change of slope moves the log-odds by any amount. So every proportion
    strictly between 0 and 1 is as plausible as the best line of slope zero. The best proportion is
    0 or 1; beyond it the log plausibility is 0, as on the line.
    """
    rise = likelihood.line.slope * side
    flat = likelihood.log_flat()
    return (flat if rise > 0.0 else 0.0, flat if rise < 0.0 else 0.0)


NEWTON_STEPS = 8  # four suffice from a guess with an error of 1e-3


@cache
def gauss_legendre(n: int) -> Floats:
    """Return Gauss-Legendre nodes (ascending) and weights on [0, 1], shape (2, n), read-only."""
    rule = np.array([_node(n, i) for i in range(n)]).T.copy()
    rule.setflags(write=False)
    return rule


def _node(n: int, i: int) -> tuple[float, float]:
    """Return root i of the n-th Legendre polynomial and its weight, shifted to [0, 1]."""
    x = _sine(math.pi * (0.5 - (n - i - 0.25) / (n + 0.5)))
    for _ in range(NEWTON_STEPS):
        value, slope = _legendre(n, x)
        x -= value / slope
    slope = _legendre(n, x)[1]
    return 0.5 * (1.0 + x), 1.0 / ((1.0 - x * x) * slope * slope)


def _sine(x: float) -> float:
    """Return the Taylor approximation of sin(x) for Tricomi's guess: error 4e-6 for |x| <= pi/2."""
    z = x * x
    return x * (1.0 - z / 6.0 * (1.0 - z / 20.0 * (1.0 - z / 42.0 * (1.0 - z / 72.0))))


def _legendre(n: int, x: float) -> tuple[float, float]:
    """Return the n-th Legendre polynomial and its derivative, by the three-term recurrence."""
    before, value = 1.0, x
    for k in range(2, n + 1):
        before, value = value, ((2 * k - 1) * x * value - (k - 1) * before) / k
    return value, n * (before - x * value) / (1.0 - x * x)


def cubic_spline(knots: Floats, values: Floats) -> Floats:
    """Return the "not a knot" cubic spline through at least four points, shape (4, m - 1, k).

    The spline interpolates k functions with `values`, shape (m, k), at the ascending `knots`; its
    first two pieces are one polynomial, and so are the last two. A piece has the coefficients of
    (x - knot)^3, (x - knot)^2, x - knot and 1, where knot is its left end.
    """
    found = np.empty((4, len(knots) - 1, values.shape[1]))
    _fit(knots, values, found, np.empty((5, len(knots))))
    return found


def evaluate(knots: Floats, coefficients: Floats, x: Floats) -> Floats:
    """Return the values of a spline, shape (n, k); the outermost pieces extend beyond the knots."""
    piece = np.clip(np.searchsorted(knots, x, side="right") - 1, 0, len(knots) - 2)
    at = (x - knots[piece])[:, None]
    a, b, c, d = coefficients[:, piece]
    return np.asarray(((a * at + b) * at + c) * at + d)


@kernel
def _fit(knots: Floats, values: Floats, found: Floats, scratch: Floats) -> None:
    """Write the pieces of the spline, shape (4, m - 1, k); `scratch` has shape (5, m)."""


LogisticModel = Literal["likelihood", "confidence"]
LOGISTIC_MODELS: tuple[LogisticModel, ...] = ("likelihood", "confidence")

_STORED = StateSchema(
    ints("options", "2", below=2), floats("alpha", "1"), floats("line", optional=True),
    floats("knots", optional=True), floats("coefficients", optional=True),
)  # fmt: skip


class EvidentialLogistic(EvidentialMap):
    """Masses of logistic regression, from the plausibility of each log-odds at a score.

    Parameters
    ----------
    model : {"likelihood", "confidence"}, default="likelihood"
        "likelihood": the contour at s maps each proportion to the maximum relative likelihood of
        the lines through that proportion at s (eqs 34-40). Bel and Pl are integrals of the contour
        (eqs 22, 23), interpolated from a table (see `IgnoranceTable`). "confidence": the Wald
        interval of the log-odds (eqs 26, 27); its Bel is not monotone in the score.
    alpha : float, default=0.05
        One minus the confidence level, for "confidence".
    targets : {"platt", "raw"}, default="platt"
        Targets of the likelihood: Platt's targets, or the labels. The paper does not specify them;
        the masses differ (20 examples: Bel .46 against .58).

    Attributes
    ----------
    line_ : FittedLine or None
        The maximum likelihood line; None without examples. `line_.slope < 0` means that the scores
        rank the classes in reverse. The slope is kept; `PlattScaling` would fit a constant.

    Notes
    -----
    With a single distinct score the map is vacuous at every other score. With a single class,
    Platt's targets are all equal and the line is flat. Raw targets have no optimum with a single
    class or separable scores.

    References
    ----------
    P. Xu, F. Davoine, H. Zha, T. Denoeux (2016), Evidential calibration of binary SVM classifiers.

    Examples
    --------
    >>> fitted = EvidentialLogistic().fit([-2.0, -1.0, 1.0, 2.0], [0, 0, 1, 1])
    >>> fitted.predict_interval([-2.0, 0.0, 2.0]).round(2)
    array([[0.03, 0.65],
           [0.2 , 0.8 ],
           [0.35, 0.97]])
    """

    _learned = "line_"
    line_: FittedLine | None
    table_: IgnoranceTable | None
    _likelihood: Likelihood | None

    def __init__(
        self, model: LogisticModel = "likelihood", alpha: float = 0.05, targets: Targets = "platt"
    ) -> None:
        self.model: LogisticModel = model
        self.alpha = alpha
        self.targets: Targets = targets
        self._check_parameters()

    def _check_parameters(self) -> None:
        check_option(self.model, LOGISTIC_MODELS, "model")
        check_option(self.targets, TARGETS, "targets")
        check_alpha(self.alpha)

    def _fit(self, scores: Floats, positive: Bools) -> None:
        self.line_ = self.table_ = self._likelihood = None
        if len(scores):
            self._likelihood = fit_line(scores, positive, self.targets)
            self.line_ = self._likelihood.line
            if self.model == "likelihood":
                self.table_ = IgnoranceTable.build(self._likelihood)

    @override
    def _mass(self, scores: Floats) -> Floats:
        if self.line_ is None:
            return vacuous(len(scores))
        t = self.line_.standardise(scores)
        if self.table_ is None:
            masses = interval_mass(*self._wald(self.line_, t), self.alpha)
        else:
            masses = _likelihood_mass(self.line_, self.table_, t)
        unknown = self.line_.undetermined(scores)
        return np.where(unknown[:, None], vacuous(len(scores)), masses)

    @override
    def contour(self, s: float, tau: ArrayLike) -> Floats:
        score, proportions = self._asked([s]), check_proportions(tau)
        if self.line_ is None or self.line_.undetermined(score)[0]:
            return np.ones(len(proportions))
        t = self.line_.standardise(score)
        if self.model == "confidence":
            lower, upper = self._wald(self.line_, t)
            return np.where((lower <= proportions) & (proportions <= upper), 1.0, self.alpha)
        if self._likelihood is None:
            raise InvalidInput("EvidentialLogistic: there are no examples here; fit it on some")
        return self._likelihood.contour(float(t[0]), proportions)

    def _state(self) -> Arrays:
        options = (LOGISTIC_MODELS.index(self.model), TARGETS.index(self.targets))
        line, table = self.line_, self.table_
        return {
            "options": np.array(options, dtype=np.int64),
            "alpha": np.array([float(self.alpha)]),
            "line": np.array(astuple(line) if line else (), dtype=np.float64),
            "knots": table.knots if table else np.zeros(0),
            "coefficients": table.coefficients.ravel() if table else np.zeros(0),
        }

    def _load(self, state: Arrays) -> None:
        stored = _STORED.values(type(self), None, state)
        (model, targets), alpha = stored["options"].tolist(), stored["alpha"].item()
        line, knots, flat = stored["line"], stored["knots"], stored["coefficients"]
        if not 0.0 <= alpha <= 1.0:
            raise InvalidSnapshot("map state: alpha is out of range")
        if len(line) not in (0, 7) or len(flat) != 8 * max(len(knots) - 1, 0):
            raise InvalidSnapshot("map state: the line or the table has another number of values")
        self.model, self.alpha, self.targets = LOGISTIC_MODELS[model], alpha, TARGETS[targets]
        self._likelihood = None
        self.line_ = FittedLine(*line.tolist()) if len(line) else None
        self.table_ = IgnoranceTable(knots, flat.reshape(4, -1, 2)) if len(knots) else None
        if (self.table_ is not None) != (self.line_ is not None and model == 0):
            raise InvalidSnapshot("map state: a table and a line of likelihood go together")

    def _wald(self, line: FittedLine, t: Floats) -> tuple[Floats, Floats]:
        u, half = line.log_odds(t), -normal_quantile(0.5 * self.alpha) * line.deviation(t)
        return logistics(u - half), logistics(u + half)


def _likelihood_mass(line: FittedLine, table: IgnoranceTable, t: Floats) -> Floats:
    """Return the masses from the mean plausibilities below and above the best proportion.

    At the best proportion p, Bel = p (1 - mean plausibility below p). By symmetry,
    m({0}) = (1 - p) (1 - mean plausibility above p).
    """
    u, (below, above) = line.log_odds(t), table.evaluate(t)
    return stack(-expm1s(below) * logistics(u), -expm1s(above) * logistics(-u))
