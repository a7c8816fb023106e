"""Provide a support vector machine that learns from class labels and probabilities."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from online_svm.errors import InvalidInput
from online_svm.svm.exact.batch_solver import fixed_rows
from online_svm.svm.kernel_model import (
    KernelModel,
    is_number,
    kernel_for,
    positive,
    positive_integer,
)
from online_svm.svm.machine_parameters import SolverParameters
from online_svm.svm.probability_tube import Targets, posterior, solve_targets, steepness
from online_svm.svm.validation import (
    MarginClassifier,
    checked_examples,
    declared_classes,
    warn_of_max_steps,
)
from online_svm.types import Bools, Floats


@dataclass(eq=False, repr=False)
class ProbabilisticSVC(SolverParameters, MarginClassifier):
    """P-SVM: hinge loss on class labels, a tube around probabilities (Niaf et al.).

    Some examples have a class, others an annotator's probability p of the class +1. The machine
    minimises 1/2 |w|^2 + C sum(hinge loss of the labels) + C_prob sum(distance of f from the tube
    of each probability). The tube [z-, z+] consists of the f with |1/(1 + exp(-a f)) - p| <= eta,
    where a = ln(1/eta - 1). Then P(y = 1 | x) = 1/(1 + exp(-a f(x))), without a calibrator.

    Parameters
    ----------
    C : float
        Penalty of the hinge loss of a label.
    C_prob : float
        Penalty of the distance from a tube (the paper's C~).
    kernel, gamma, degree, coef0, tol, cache_mb
        As in `OnlineSVC`.
    eta : float
        Half the height of a tube, in (0, 1/2): precision of the probabilities plus the desired
        confidence. It also determines a: f = 1 means the probability 1 - eta.
    max_steps : int
        Limit on pair steps; reaching it raises a ConvergenceWarning.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
    n_features_in_ : int
    gamma_ : float
    a_ : float
        Steepness of the sigmoid, ln(1/eta - 1).
    support_ : ndarray of shape (n_support,)
    support_vectors_ : ndarray of shape (n_support, d)
    dual_coef_ : ndarray of shape (1, n_support)
        alpha y of a label, mu- - mu+ of a probability (one of the two is zero).
    intercept_ : ndarray of shape (1,)
        From the free multipliers; if there are none, the midpoint of the interval of optimal
        values, or its finite end.
    objective_ : float
        Optimal value of the objective.
    n_iter_ : int
        Number of pair steps.

    References
    ----------
    E. Niaf, R. Flamary, S. Canu, C. Lartizien, Handling uncertainties in SVM classification.

    Examples
    --------
    >>> X, y = [[-2.0], [-0.5], [0.5], [2.0]], [-1, 0, 0, 1]
    >>> prob = [np.nan, 0.4, 0.6, np.nan]
    >>> svm = ProbabilisticSVC(C=100, C_prob=100, kernel="linear", eta=0.05).fit(X, y, prob)
    >>> svm.predict_proba([[0.0], [3.0]]).round(2).tolist()
    [[0.5, 0.5], [0.01, 0.99]]
    """

    C_prob: float = 1.0
    _: KW_ONLY
    eta: float = 0.1
    tol: float = 1e-8
    max_steps: int = 10_000_000
    cache_mb: float = 500.0

    def fit(self, X: ArrayLike, y: ArrayLike, prob: ArrayLike | None = None) -> Self:
        """Fit the machine.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : array-like of shape (n,)
            With `prob`: -1 or +1, or 0 for a row with a probability. Without `prob`: any two
            labels; the machine is then the ordinary support vector classifier.
        prob : array-like of shape (n,), optional
            Probability of the class +1; NaN for a row with a label.

        Raises
        ------
        InvalidInput
            If X is not a finite matrix, a label or probability is invalid, an example has both or
            neither, all examples have labels of one class, or eta is not in (0, 1/2).
        InvalidConfig
            If another parameter is out of its range.
        """
        self._check_parameters()
        rows, labels = checked_examples(self, X, y)
        if prob is None:
            signs, targets = self._two_classes(labels), np.full(len(rows), np.nan)
        else:
            signs, targets = _checked_targets(labels, prob)
            self.classes_ = np.array([-1, 1])
        return self._solve(rows, signs, targets)

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Return the probability of either class, shape (n, 2): 1/(1 + exp(-a f)) in column 1."""
        check_is_fitted(self)
        return posterior(self.decision_function(X), self.a_)

    def _check_parameters(self) -> None:
        positive_integer(self.max_steps, "max_steps")
        for name in ("C", "C_prob", "tol", "cache_mb"):
            positive(getattr(self, name), name)
        if not is_number(self.eta) or not 0.0 < self.eta < 0.5:
            raise InvalidInput(
                f"eta: must lie strictly between 0 and 1/2, got {self.eta!r}; a tube around p "
                "reaches from p - eta to p + eta"
            )

    def _two_classes(self, labels: NDArray[Any]) -> Floats:
        self.classes_ = declared_classes(labels)
        if len(self.classes_) > 2:
            raise InvalidInput(
                "Only binary classification is supported. y holds more than two labels: "
                f"{self.classes_[:5]}; pass `prob` where y is 0 for a probability"
            )
        return np.where(labels == self.classes_[1], 1.0, -1.0)

    def _solve(self, X: Floats, signs: Floats, prob: Floats) -> Self:
        kernel = kernel_for(self, X, wide=True)
        self.gamma_, self.a_ = kernel.gamma, steepness(self.eta)
        found = solve_targets(
            fixed_rows(kernel, X, self.cache_mb),
            Targets.of(signs, prob, self.C, self.C_prob, self.eta),
            self.tol,
            self.max_steps,
        )
        if not found.converged:
            warn_of_max_steps(self.max_steps, self.tol)
        self.support_ = np.flatnonzero(found.beta)
        self.support_vectors_ = X[self.support_]
        self.dual_coef_ = found.beta[np.newaxis, self.support_]
        self.intercept_ = np.array([found.b])
        self.objective_, self.n_iter_ = found.objective, found.steps
        self._model = KernelModel.build(
            kernel, self.support_vectors_, self.dual_coef_, self.intercept_
        )
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def _checked_targets(labels: NDArray[Any], prob: ArrayLike) -> tuple[Floats, Floats]:
    """Return labels and probabilities as float64; each example has exactly one of the two."""
    try:
        signs = np.asarray(labels, dtype=np.float64)
        values = np.asarray(prob, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput("y, prob: with `prob` both must be numbers") from error
    if values.shape != signs.shape:
        raise InvalidInput(
            f"prob: expected one value for each of {len(signs)} examples, NaN where y is a class; "
            f"got shape {values.shape}"
        )
    is_label, has_prob = signs != 0.0, ~np.isnan(values)
    _refuse(~np.isin(signs, (-1.0, 0.0, 1.0)), signs, "y", "must be -1, +1 or 0 (a probability)")
    _refuse(has_prob & ~((values >= 0.0) & (values <= 1.0)), values, "prob", "must lie in [0, 1]")
    _refuse(is_label & has_prob, values, "prob", "must be NaN where y is a class")
    _refuse(~is_label & ~has_prob, values, "prob", "must be given where y is 0")
    if is_label.all() and abs(signs.sum()) == len(signs):
        raise InvalidInput("y: one class only and no probability; nothing to separate")
    return signs, values


def _refuse(wrong: Bools, values: Floats, name: str, rule: str) -> None:
    if wrong.any():
        first = int(np.flatnonzero(wrong)[0])
        raise InvalidInput(f"{name}: value {first} is {values[first]:g}; it {rule}")
