"""Belief functions from logistic regression (Xu et al. 2016, section 4.3)."""

from dataclasses import astuple
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from typing_extensions import override

from online_svm.calibration.evidential.binomial import interval_mass
from online_svm.calibration.evidential.blocks import check_proportions
from online_svm.calibration.evidential.evidential_map import (
    EvidentialMap,
    check_alpha,
    check_option,
)
from online_svm.calibration.evidential.line import Likelihood, Line, fit_line
from online_svm.calibration.evidential.masses import stack, vacuous
from online_svm.calibration.evidential.table import IgnoranceTable
from online_svm.calibration.platt import TARGETS, Targets
from online_svm.compiled.elementary import expm1s
from online_svm.compiled.logistic import logistics
from online_svm.compiled.special import normal_quantile
from online_svm.errors import InvalidInput, InvalidSnapshot
from online_svm.storage.arrays import read_floats, read_ints
from online_svm.types import Arrays, Bools, Floats

LogisticModel = Literal["likelihood", "confidence"]
LOGISTIC_MODELS: tuple[LogisticModel, ...] = ("likelihood", "confidence")


class EvidentialLogisticCalibrator(EvidentialMap):
    """What `EvidentialLogistic` does, which documents it; this one needs no scikit-learn."""

    _learned = "line_"
    line_: Line | None
    table_: IgnoranceTable | None
    _likelihood: Likelihood | None

    def __init__(
        self,
        model: LogisticModel = "likelihood",
        alpha: float = 0.05,
        targets: Targets = "platt",
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
    def mass(self, scores: ArrayLike) -> Floats:
        values = self._asked(scores)
        if self.line_ is None:
            return vacuous(len(values))
        t = self.line_.standardise(values)
        if self.table_ is None:
            masses = self._interval_mass(self.line_, t)
        else:
            masses = _likelihood_mass(self.line_, self.table_, t)
        unknown = self.line_.undetermined(values)
        return np.where(unknown[:, None], vacuous(len(values)), masses)

    @override
    def contour(self, s: float, tau: ArrayLike) -> Floats:
        score, proportions = self._asked([s]), check_proportions(tau)
        if self.line_ is None or self.line_.undetermined(score)[0]:
            return np.ones(len(proportions))
        t = self.line_.standardise(score)
        if self.model == "confidence":
            lower, upper = self._wald(self.line_, t)
            return np.where((lower <= proportions) & (proportions <= upper), 1.0, self.alpha)
        return self._examples().contour(float(t[0]), proportions)

    def parameter_contour(self, theta0: float, theta1: float) -> float:
        """Return the relative likelihood of P(1 | s) = 1 / (1 + exp(theta0 + theta1 s)) (eq. 34).

        Parameters
        ----------
        theta0, theta1 : float

        Raises
        ------
        InvalidInput
            If the map is not fitted, was fitted on no example, or was restored from a state.

        Examples
        --------
        >>> from online_svm import EvidentialLogistic
        >>> fitted = EvidentialLogistic().fit([-2.0, -1.0, 1.0, 2.0], [0, 0, 1, 1])
        >>> round(fitted.parameter_contour(0.0, 0.0), 3)
        0.621
        """
        self._require_fit()
        examples = self._examples()
        line = examples.line
        return examples.relative(-theta0 - theta1 * line.centre, -theta1 * line.width)

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

    @classmethod
    def _from_state(cls, state: Arrays) -> Self:
        model, targets = read_ints(state, "options", 2).tolist()
        alpha = float(read_floats(state, "alpha", 1)[0])
        if model not in (0, 1) or targets not in (0, 1) or not 0.0 <= alpha <= 1.0:
            raise InvalidSnapshot("map state: the model, the targets or alpha is out of range")
        restored = cls(LOGISTIC_MODELS[model], alpha, TARGETS[targets])
        restored._likelihood = restored.table_ = restored.line_ = None
        numbers, knots = read_floats(state, "line"), read_floats(state, "knots")
        if len(numbers):
            restored.line_ = Line(*read_floats(state, "line", 7).tolist())
        if len(knots):
            flat = read_floats(state, "coefficients", 8 * (len(knots) - 1))
            restored.table_ = IgnoranceTable(knots, flat.reshape(4, -1, 2))
        if (restored.table_ is not None) != (restored.line_ is not None and model == 0):
            raise InvalidSnapshot("map state: a table and a line of likelihood go together")
        return restored

    def _examples(self) -> Likelihood:
        if self._likelihood is None:
            raise InvalidInput("EvidentialLogistic: there are no examples here; fit it on some")
        return self._likelihood

    def _wald(self, line: Line, t: Floats) -> tuple[Floats, Floats]:
        u, half = line.log_odds(t), -normal_quantile(0.5 * self.alpha) * line.deviation(t)
        return logistics(u - half), logistics(u + half)

    def _interval_mass(self, line: Line, t: Floats) -> Floats:
        return interval_mass(*self._wald(line, t), self.alpha)


def _likelihood_mass(line: Line, table: IgnoranceTable, t: Floats) -> Floats:
    """Return the masses by the mean plausibilities on either side of the best proportion.

    Bel is that proportion, less the share of it that is plausible; likewise m({0}).
    """
    u, (below, above) = line.log_odds(t), table.evaluate(t)
    return stack(-expm1s(below) * logistics(u), -expm1s(above) * logistics(-u))
