"""The machine under an inductive Venn predictor: trained on T, it scores everything it holds."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.class_weight import compute_class_weight

from online_svm.history import Tail
from online_svm.kernels import Kernel
from online_svm.svm.machine import RollingMachine
from online_svm.svm.online import OnlineSVC

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Scorer(Protocol):
    """Holds examples in order of arrival and scores them by what it was last trained on."""

    def extend(self, X: Floats, codes: Ints, trains: Bools) -> Floats | None:
        """Hold more examples and return their scores; None before the first training.

        `trains` marks those that join T at the next training, where the split knows that as they
        come.
        """

    def forget(self, count: int) -> None:
        """Give up the oldest examples."""

    def train(self, mask: Bools) -> Floats:
        """Train on the held examples that `mask` marks; return the scores of the others."""

    def training_scores(self) -> Floats:
        """Return the scores of T, right after `train`, shape (n_training, n_scores)."""

    def score(self, X: Floats) -> Floats:
        """Return the scores of other examples, shape (m, n_scores)."""


def make_scorer(estimator: Any, classes: NDArray[Any], window: int | None) -> Scorer:
    """Return the scorer for `estimator`: warm-started for `OnlineSVC`, refitted for any other."""
    if estimator is None or type(estimator) is OnlineSVC:
        return MachineScorer(estimator or OnlineSVC(), classes, window)
    return EstimatorScorer(estimator, classes)


class MachineScorer:
    """An exact online SVM: warm starts, and held scores kept up by the solver itself.

    Parameters
    ----------
    svc : OnlineSVC
        Its hyper-parameters are used. gamma="scale" is taken from T, and again each time T has
        doubled since.
    classes : ndarray of shape (n_classes,)
    window : int or None
        Examples that are usually held.
    """

    def __init__(self, svc: OnlineSVC, classes: NDArray[Any], window: int | None) -> None:
        self._svc, self._classes, self._window = svc, classes, window
        self._machine: RollingMachine | None = None
        self._rows: Tail | None = None
        self._codes = Tail(np.empty(0, dtype=np.int64))
        self._fitted_on = 0

    def extend(self, X: Floats, codes: Ints, trains: Bools) -> Floats | None:
        """Hold more examples and return their scores; None before the first training."""
        if self._rows is None:
            self._rows = Tail(X)
        else:
            self._rows.append(X)
        self._codes.append(codes)
        return None if self._machine is None else self._machine.extend(X, codes, training=trains)

    def forget(self, count: int) -> None:
        """Give up the oldest examples."""
        assert self._rows is not None
        self._rows.drop_before(self._rows.first + count)
        self._codes.drop_before(self._codes.first + count)
        if self._machine is not None:
            self._machine.forget(count)

    def train(self, mask: Bools) -> Floats:
        """Train from the last solution; return the scores of the observers."""
        size = int(mask.sum())
        stale = self._svc.gamma == "scale" and size >= 2 * self._fitted_on
        if self._machine is None or stale:
            self._machine, self._fitted_on = self._new_machine(mask), size
        elif size > self._machine.n_training:
            self._machine.promote(size - self._machine.n_training)
        if self._svc.class_weight is not None:
            self._machine.set_penalties(self._penalties(mask))
        self._machine.solve()
        return self._machine.observer_values()

    def training_scores(self) -> Floats:
        """Return the scores of T, right after `train`, shape (n_training, n_scores)."""
        assert self._machine is not None
        return self._machine.training_values()

    def score(self, X: Floats) -> Floats:
        """Return the scores of other examples, shape (m, n_scores)."""
        assert self._machine is not None
        return self._machine.model().scores(X)

    def _new_machine(self, mask: Bools) -> RollingMachine:
        assert self._rows is not None
        svc, X = self._svc, self._rows.since(self._rows.first)
        kernel = Kernel(svc.kernel, _gamma(svc.gamma, X[mask]), svc.degree, svc.coef0)
        machine = RollingMachine(
            kernel,
            np.full(len(self._classes), float(svc.C)),
            tol=svc.tol,
            window=self._window,
            cache_mb=svc.cache_mb,
        )
        machine.extend(X, self._codes.since(self._codes.first), training=mask)
        return machine

    def _penalties(self, mask: Bools) -> Floats:
        """Return C times the weight of each class, for T as `mask` marks it."""
        codes = self._codes.since(self._codes.first)[mask]
        present = np.unique(codes)
        weights = np.ones(len(self._classes))
        weights[present] = compute_class_weight(
            self._svc.class_weight, classes=self._classes[present], y=self._classes[codes]
        )
        return float(self._svc.C) * weights


class EstimatorScorer:
    """Any scikit-learn classifier with a decision function, cloned and fitted anew on T.

    Parameters
    ----------
    estimator : classifier
    classes : ndarray of shape (n_classes,)
    """

    def __init__(self, estimator: Any, classes: NDArray[Any]) -> None:
        self._estimator, self._classes = estimator, classes
        self._rows: Tail | None = None
        self._codes = Tail(np.empty(0, dtype=np.int64))
        self._fitted: Any = None
        self._present: Ints = np.empty(0, dtype=np.int64)
        self._mask: Bools = np.empty(0, dtype=np.bool_)

    def extend(self, X: Floats, codes: Ints, trains: Bools) -> Floats | None:  # noqa: ARG002  (the mask at training decides)
        """Hold more examples and return their scores; None before the first training."""
        if self._rows is None:
            self._rows = Tail(X)
        else:
            self._rows.append(X)
        self._codes.append(codes)
        return None if len(self._present) == 0 else self.score(X)

    def forget(self, count: int) -> None:
        """Give up the oldest examples."""
        assert self._rows is not None
        self._rows.drop_before(self._rows.first + count)
        self._codes.drop_before(self._codes.first + count)

    def train(self, mask: Bools) -> Floats:
        """Fit a clone of the estimator on the held examples that `mask` marks."""
        assert self._rows is not None
        X, codes = self._rows.since(self._rows.first), self._codes.since(self._codes.first)
        self._present = np.unique(codes[mask])
        if len(self._present) > 1:
            self._fitted = clone(self._estimator).fit(X[mask], self._classes[codes[mask]])
        self._mask = mask
        return self.score(X[~mask])

    def training_scores(self) -> Floats:
        """Return the scores of T, right after `train`, shape (n_training, n_scores)."""
        assert self._rows is not None
        return self.score(self._rows.since(self._rows.first)[self._mask])

    def score(self, X: Floats) -> Floats:
        """Return one score a class (-1 for one absent from T, +1 for an only one)."""
        scores = np.full((len(X), len(self._classes)), -1.0)
        if len(self._present) == 1:
            scores[:, self._present[0]] = 1.0
        elif len(X):
            decision = np.asarray(self._fitted.decision_function(X), dtype=np.float64)
            if decision.ndim == 1:
                decision = np.stack([-decision, decision], axis=1)
            scores[:, self._present] = decision
        return scores[:, 1:] if len(self._classes) == 2 else scores


def _gamma(gamma: float | str, X: Floats) -> float:
    if not isinstance(gamma, str):
        return float(gamma)
    variance = float(X.var())
    return 1.0 / (X.shape[1] * variance) if variance > 0.0 else 1.0
