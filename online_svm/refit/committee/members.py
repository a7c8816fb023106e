"""The machines that may sit in a committee, by name."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from online_svm.compiled.kernels import Kernel
from online_svm.config.groups import MemberName
from online_svm.refit.committee.ridge_logistic import Regression, fit_ridge_logistic
from online_svm.svm.kernel_model import KernelModel
from online_svm.types import Floats, Ints

INTERCEPT_RIDGE = 0.1
# A fit goes on where the last one ended, so a few steps suffice: with twenty, and a tenth of the
# tolerance, the log loss on streams of 9, 108 and 300 features was the same to .0004, at up to 1.7
# times the time.
STEPS = 4
TOL = 1e-2  # of the gradient, a sum over the examples


@dataclass(frozen=True, slots=True)
class Member:
    """One kind of machine.

    Attributes
    ----------
    kind : {"rbf", "trees", "logistic"}
        A support vector machine with that kernel, boosted trees, or a ridge logistic regression.
    C, gamma : float
        Times the C and the gamma of the settings.
    """

    kind: Literal["rbf", "trees", "logistic"]
    C: float = 1.0
    gamma: float = 1.0


# C and gamma of the default three were chosen by the log loss of the headline on streams (3,000
# examples of each, train_fraction .8). Thirteen, clipped stack: .2973 with an rbf machine (3, 2),
# .2977 with the narrow one instead, .2977 with the wide one, .2976 with both at 1.6 times the time.
# Twelve, as it is mixed now: .2939 with (3, 2), .2930 with (1, 2), which also is solved sooner.
MEMBERS: dict[MemberName, Member] = {
    "rbf": Member("rbf", gamma=2.0),
    "rbf-wide": Member("rbf", C=10.0),
    "rbf-narrow": Member("rbf", gamma=3.0),
    "trees": Member("trees"),
    "logistic": Member("logistic"),
}


class LogisticMachine:
    """One logistic regression for two classes (positive means class 1), else one a class.

    It minimises 1/2 |w|^2 + sum_i C_i log(1 + exp(-y_i f(x_i))), f(x) = w.x + b, with a weak
    penalty on b, without which a training set of one class would have no minimum.

    Parameters
    ----------
    n_classes, n_features : int

    Attributes
    ----------
    weights : ndarray of shape (S, n_features + 1)
        The intercept last.

    Examples
    --------
    >>> machine = LogisticMachine(2, 1)
    >>> X, codes = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([0, 0, 1, 1])
    >>> machine.fit(X, codes, np.ones(2))
    >>> machine.model().scores(np.array([[1.0]])).round(2)
    array([[1.01]])
    """

    def __init__(self, n_classes: int, n_features: int) -> None:
        self.weights: Floats = np.zeros((1 if n_classes == 2 else n_classes, n_features + 1))

    def fit(self, X: Floats, codes: Ints, penalties: Floats) -> None:
        """Fit on the rows of X, shape (n, n_features), from where the last fit ended.

        Parameters
        ----------
        X : ndarray of shape (n, n_features)
        codes : ndarray of shape (n,)
        penalties : ndarray of shape (n_classes,)
            C_i of the examples of each class.
        """
        features = np.vstack([X.T, np.ones(len(X))])
        costs = np.asarray(penalties, dtype=np.float64)[codes]
        ridge = np.ones(len(features))
        ridge[-1] = INTERCEPT_RIDGE
        centre = np.zeros(len(features))
        first = 1 if len(self.weights) == 1 else 0
        for s, weights in enumerate(self.weights):
            targets = (codes == s + first).astype(np.float64)
            problem = Regression(features, targets, costs, centre, ridge)
            fit_ridge_logistic(problem, weights, STEPS, TOL)

    def model(self) -> KernelModel:
        """Return the regressions as a scorer: each is one vector of a linear kernel."""
        # A copy: the next fit moves the weights, and this model may still answer then.
        vectors, intercept = self.weights[:, :-1].copy(), self.weights[:, -1]
        return KernelModel.build(Kernel("linear"), vectors, np.eye(len(vectors)), intercept)
