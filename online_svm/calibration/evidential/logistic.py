"""Belief functions from logistic regression (Xu et al. 2016, section 4.3)."""

from dataclasses import astuple
from typing import Literal

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
from online_svm.calibration.evidential.line import FittedLine, Likelihood, fit_line
from online_svm.calibration.evidential.masses import stack, vacuous
from online_svm.calibration.evidential.table import IgnoranceTable
from online_svm.calibration.platt import TARGETS, Targets
from online_svm.compiled.elementary import expm1s
from online_svm.compiled.logistic import logistics
from online_svm.compiled.special import normal_quantile
from online_svm.errors import InvalidInput, InvalidSnapshot
from online_svm.storage.fields import Fields, floats, ints
from online_svm.types import Arrays, Bools, Floats

LogisticModel = Literal["likelihood", "confidence"]
LOGISTIC_MODELS: tuple[LogisticModel, ...] = ("likelihood", "confidence")

_STORED = Fields(
    ints("options", "2", below=2), floats("alpha", "1"), floats("line", optional=True),
    floats("knots", optional=True), floats("coefficients", optional=True),
)  # fmt: skip


class EvidentialLogistic(EvidentialMap):
    """Masses of logistic regression: how far each log-odds at a score can be believed.

    Parameters
    ----------
    model : {"likelihood", "confidence"}, default="likelihood"
        "likelihood": the contour at s is, for each proportion, the highest relative likelihood of
        a line that passes through it at s (eqs 34-40); Bel and Pl are its integrals (eqs 22, 23),
        read off a table (see `IgnoranceTable`). "confidence": the Wald interval of the log-odds
        (eqs 26, 27); its Bel is not monotone in the score.
    alpha : float, default=0.05
        One minus the confidence level, for "confidence".
    targets : {"platt", "raw"}, default="platt"
        What the likelihood is of: Platt's targets, or the labels themselves. The paper leaves it
        open; the masses differ (20 examples: Bel .46 against .58).

    Attributes
    ----------
    line_ : FittedLine or None
        The line of maximum likelihood; None without examples. `line_.slope < 0` says that the
        scores point the wrong way: the evidence is kept as it is, whereas `PlattScaling` then
        returns a constant.

    Notes
    -----
    With one distinct score the examples say nothing about any other: there the map is vacuous.
    With one class only Platt's targets make every target equal, the line is flat and the masses
    are those of that evidence. Raw targets have no optimum there, nor on separable scores.

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
    def _mass(self, scores: Floats) -> Floats:
        if self.line_ is None:
            return vacuous(len(scores))
        t = self.line_.standardise(scores)
        if self.table_ is None:
            masses = self._interval_mass(self.line_, t)
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
        return self._examples().contour(float(t[0]), proportions)

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

    def _examples(self) -> Likelihood:
        if self._likelihood is None:
            raise InvalidInput("EvidentialLogistic: there are no examples here; fit it on some")
        return self._likelihood

    def _wald(self, line: FittedLine, t: Floats) -> tuple[Floats, Floats]:
        u, half = line.log_odds(t), -normal_quantile(0.5 * self.alpha) * line.deviation(t)
        return logistics(u - half), logistics(u + half)

    def _interval_mass(self, line: FittedLine, t: Floats) -> Floats:
        return interval_mass(*self._wald(line, t), self.alpha)


def _likelihood_mass(line: FittedLine, table: IgnoranceTable, t: Floats) -> Floats:
    """Return the masses by the mean plausibilities on either side of the best proportion.

    Bel is that proportion, less the share of it that is plausible; likewise m({0}).
    """
    u, (below, above) = line.log_odds(t), table.evaluate(t)
    return stack(-expm1s(below) * logistics(u), -expm1s(above) * logistics(-u))
