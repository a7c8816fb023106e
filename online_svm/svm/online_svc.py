"""Provide an exact kernel support vector classifier over a stream, for scikit-learn."""

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from online_svm.svm.exact.rolling_machine import RollingMachine
from online_svm.svm.kernel_model import class_penalties, kernel_for, positive
from online_svm.svm.machine_parameters import SolverParameters, WeightParameters
from online_svm.svm.validation import (
    MarginClassifier,
    check_same_classes,
    checked_examples,
    class_codes,
    declared_classes,
)
from online_svm.types import Floats


@dataclass(eq=False, repr=False)
class OnlineSVC(SolverParameters, WeightParameters, MarginClassifier):
    """Support vector classifier that adds examples and forgets the oldest, exactly.

    After each call it equals `sklearn.svm.SVC` fitted to the held examples, within the tolerance,
    but the solver starts from the previous solution. More than two classes are solved one against
    all.

    Parameters
    ----------
    C : float
        Penalty of a margin violation.
    kernel : {"rbf", "linear", "poly"}
    gamma : "scale" or float
        For "rbf" and "poly". "scale" is 1 / (n_features * X.var()) of the first examples and then
        stays fixed: a stream has one kernel until `fit` is called again.
    degree : int
        For "poly".
    coef0 : float
        For "poly", not negative.
    tol : float
        Largest violation of optimality.
    class_weight : dict, "balanced" or None
        Multiplies C for the examples of a class, in every machine. "balanced" is n / (n_classes *
        count of the class) of the held examples. A class that is not in a dict has weight 1.
    cache_mb : float
        Memory for kernel rows, in MiB.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        Sorted.
    n_features_in_ : int
    gamma_ : float
    n_held_ : int
        Number of examples held.
    support_ : ndarray of shape (n_support,)
        Positions among the held examples, in order of arrival, of the support vectors of any
        machine.
    support_vectors_ : ndarray of shape (n_support, d)
    dual_coef_ : ndarray of shape (S, n_support)
        alpha y; S = 1 machine for two classes, else K.
    intercept_ : ndarray of shape (S,)
    dual_objective_ : ndarray of shape (S,)
        Maximum of sum alpha - 1/2 sum alpha_i alpha_j y_i y_j k(x_i, x_j).
    n_iter_ : int
        Pair steps of the last call.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [4.0], [5.0]])
    >>> svc = OnlineSVC(kernel="linear").partial_fit(X, ["no", "no", "yes", "yes"])
    >>> svc.predict([[0.4], [4.2]])
    array(['no', 'yes'], dtype='<U3')
    >>> svc.partial_fit([[2.0], [2.2]], ["no", "yes"]).forget(2).n_held_
    4
    """

    _machine: RollingMachine = field(init=False)

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Discard the held examples and learn these instead; errors as in `partial_fit`."""
        rows, labels = checked_examples(self, X, y)
        self._start(rows, declared_classes(labels, may_declare=True))
        return self._learn(rows, labels)

    def partial_fit(self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None) -> Self:
        """Learn more examples on top of those held.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : array-like of shape (n,)
        classes : array-like of shape (K,), optional
            All labels that will ever occur. Required in the first call unless y contains them all.
            While all examples are of one class, its machine answers +1 and the others -1.

        Raises
        ------
        InvalidInput
            If X is not a finite matrix with as many features as before, a label is not one of the
            classes, or there are fewer than two classes.
        InvalidConfig
            If a parameter is out of its range.
        """
        is_first = not hasattr(self, "_machine")
        rows, labels = checked_examples(self, X, y, reset=is_first)
        if is_first:
            self._start(rows, declared_classes(labels, classes, may_declare=True))
        else:
            check_same_classes(self.classes_, classes)
        return self._learn(rows, labels)

    def forget(self, n: int) -> Self:
        """Forget the n oldest examples.

        Raises ValueError if fewer are held.
        """
        check_is_fitted(self)
        self._machine.forget(n)
        return self._solve()

    @property
    def n_held_(self) -> int:
        """Number of examples held."""
        return len(self._machine)

    @property
    def dual_objective_(self) -> Floats:
        """The maximised objective of each machine, shape (S,)."""
        return self._machine.dual_objective()

    def _start(self, X: Floats, classes: NDArray[Any]) -> None:
        """Start a stream: fix its classes and its kernel."""
        positive(self.tol, "tol")
        self.classes_ = classes
        kernel = kernel_for(self, X)
        self.gamma_ = kernel.gamma
        self._machine = RollingMachine(
            kernel,
            class_penalties(self.C, self.class_weight, classes, np.zeros(0, dtype=np.int64)),
            tol=self.tol,
            cache_mb=self.cache_mb,
        )

    def _learn(self, X: Floats, labels: NDArray[Any]) -> Self:
        codes = class_codes(self.classes_, labels)
        self._machine.extend(X, codes, training=np.ones(len(X), dtype=np.bool_))
        return self._solve()

    def _solve(self) -> Self:
        machine = self._machine
        machine.set_penalties(
            class_penalties(self.C, self.class_weight, self.classes_, machine.codes)
        )
        self.n_iter_ = machine.solve()
        self._model = model = machine.model()
        self.support_ = np.flatnonzero((machine.coefficients() != 0.0).any(axis=0))
        self.support_vectors_ = np.ascontiguousarray(model.vectors.T)
        self.dual_coef_ = model.coef
        self.intercept_ = model.intercept
        return self
