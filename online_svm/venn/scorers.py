"""Score held examples by the machine of an inductive Venn predictor, trained on T."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from typing_extensions import override

from online_svm.errors import InvalidInput
from online_svm.stream.available_examples import SlidingArray
from online_svm.stream.split import Parts
from online_svm.svm import wrapped_classifier
from online_svm.svm.exact.rolling_machine import RollingMachine
from online_svm.svm.kernel_model import class_penalties, kernel_for, positive
from online_svm.svm.online_svc import OnlineSVC
from online_svm.types import Bools, Floats, Ints


class ExampleScorer(ABC):
    """Holds examples in order of arrival and scores them by the last trained machine."""

    def __init__(self) -> None:
        self._rows: SlidingArray | None = None
        self._codes = SlidingArray(np.empty(0, dtype=np.int64))

    @property
    def rows(self) -> Floats:
        """The held rows, shape (n, d)."""
        assert self._rows is not None
        return self._rows.held

    @property
    def codes(self) -> Ints:
        """The classes of the held rows, shape (n,)."""
        return self._codes.held

    @abstractmethod
    def extend(self, X: Floats, codes: Ints, trains: Bools | None) -> Floats | None:
        """Hold more examples and return their scores; None before the first training.

        `trains` marks the examples that enter T at the next training; None leaves it to `train`.
        """

    def forget(self, count: int) -> None:
        """Drop the oldest examples."""
        assert self._rows is not None
        self._rows.drop_before(self._rows.first + count)
        self._codes.drop_before(self._codes.first + count)

    @abstractmethod
    def train(self, parts: Parts) -> Floats:
        """Train on one part of the held examples; return the scores of the other."""

    @abstractmethod
    def training_scores(self) -> Floats:
        """Return the scores of the T of the last `train`, shape (n_training, n_scores)."""

    @abstractmethod
    def score(self, X: Floats) -> Floats:
        """Return the scores of new examples, shape (m, n_scores)."""

    def _hold(self, X: Floats, codes: Ints) -> None:
        if self._rows is None:
            self._rows = SlidingArray(X)
        else:
            self._rows.append(X)
        self._codes.append(codes)


def make_scorer(estimator: Any, classes: NDArray[Any], window: int | None) -> ExampleScorer:
    """Return the scorer for `estimator`: with warm starts for `OnlineSVC`, else with refits."""
    if estimator is None or type(estimator) is OnlineSVC:
        return MachineScorer(estimator or OnlineSVC(), classes, window)
    return EstimatorScorer(estimator, classes)


class MachineScorer(ExampleScorer):
    """Scores by an exact online SVM with warm starts, whose solver updates the held scores.

    gamma="scale" is computed from T, and again each time T has doubled.
    """

    def __init__(self, svc: OnlineSVC, classes: NDArray[Any], window: int | None) -> None:
        super().__init__()
        self._svc, self._classes, self._window = svc, classes, window
        self._machine: RollingMachine | None = None
        self._fitted_on = 0
        # Reject invalid parameters before anything is learned.
        positive(svc.tol, "tol")
        kernel_for(svc, np.empty((0, 1)))
        self._penalties(self.codes)

    @override
    def extend(self, X: Floats, codes: Ints, trains: Bools | None) -> Floats | None:
        self._hold(X, codes)
        return None if self._machine is None else self._machine.extend(X, codes, training=trains)

    @override
    def forget(self, count: int) -> None:
        super().forget(count)
        if self._machine is not None:
            self._machine.forget(count)

    @override
    def train(self, parts: Parts) -> Floats:
        machine, size = self._machine, parts.size
        if machine is None or (self._svc.gamma == "scale" and size >= 2 * self._fitted_on):
            machine = self._machine = self._new_machine(parts)
            self._fitted_on = size
        elif size > machine.n_training:
            machine.promote(size - machine.n_training)
        if self._svc.class_weight is not None:
            machine.set_penalties(self._penalties(self.codes[parts.training]))
        machine.solve()
        return machine.observer_values()

    @override
    def training_scores(self) -> Floats:
        assert self._machine is not None
        return self._machine.training_values()

    @override
    def score(self, X: Floats) -> Floats:
        assert self._machine is not None
        return self._machine.model().scores(X)

    def _new_machine(self, parts: Parts) -> RollingMachine:
        svc, X = self._svc, self.rows
        machine = RollingMachine(
            kernel_for(svc, X[parts.training]), np.full(len(self._classes), float(svc.C)),
            tol=svc.tol, window=self._window, cache_mb=svc.cache_mb,
        )  # fmt: skip
        mask = np.zeros(len(X), dtype=np.bool_)
        mask[parts.training] = True
        machine.extend(X, self.codes, training=mask)
        return machine

    def _penalties(self, codes: Ints) -> Floats:
        return class_penalties(self._svc.C, self._svc.class_weight, self._classes, codes)


class EstimatorScorer(ExampleScorer):
    """Scores by any scikit-learn classifier with a decision function, cloned and refitted on T."""

    def __init__(self, estimator: Any, classes: NDArray[Any]) -> None:
        super().__init__()
        if not hasattr(estimator, "decision_function"):
            raise InvalidInput(
                f"estimator: {type(estimator).__name__} has no decision_function; OnlineCalibrator "
                "takes a classifier that states probabilities"
            )
        self._estimator, self._classes = estimator, classes
        self._fitted: Any = None
        self._present: Ints = np.empty(0, dtype=np.int64)
        self._training: slice | Bools = slice(0)

    @override
    def extend(self, X: Floats, codes: Ints, trains: Bools | None) -> Floats | None:
        self._hold(X, codes)
        return None if len(self._present) == 0 else self.score(X)

    @override
    def train(self, parts: Parts) -> Floats:
        X, codes = self.rows, self.codes
        self._training = parts.training
        labels = codes[self._training]
        self._present = np.unique(labels)
        if len(self._present) > 1:
            self._fitted = clone(self._estimator).fit(X[self._training], self._classes[labels])
        return self.score(X[parts.calibration])

    @override
    def training_scores(self) -> Floats:
        return self.score(self.rows[self._training])

    @override
    def score(self, X: Floats) -> Floats:
        """Return one score a class: -1 for a class absent from T, +1 for the only class in T."""
        scores = np.full((len(X), len(self._classes)), -1.0)
        if len(self._present) == 1:
            scores[:, self._present[0]] = 1.0
        elif len(X):
            present = self._classes[self._present].tolist()
            decision = wrapped_classifier.scores(self._fitted, X, present, "margin")
            if decision.shape[1] == 1:
                decision = np.concatenate([-decision, decision], axis=1)
            scores[:, self._present] = decision
        return scores[:, 1:].copy() if len(self._classes) == 2 else scores
