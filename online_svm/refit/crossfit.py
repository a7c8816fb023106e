"""Cross-fitting: each machine leaves out one fold of the window and scores it."""

from collections.abc import Sequence
from typing import Self

import numpy as np

from online_svm.compiled.kernels import Kernel
from online_svm.storage.state import State, nest, under
from online_svm.svm.exact.rolling_machine import RollingMachine
from online_svm.svm.kernel_model import KernelModel
from online_svm.types import Arrays, Floats, Ints

FOLDS = 5  # number of folds of the window, and of machines


class FoldMachines:
    """k machines over one window: machine f trains on all folds but f, and scores fold f.

    An answer uses the mean score of the machines. A single machine with the mean coefficients has
    the same score, in one pass over the union of the support vectors. Each machine trains on
    (k - 1)/k of the window, for answers as for out-of-fold scores.

    `kernel`, `penalties`, `tol`, `window`: as for `RollingMachine`.
    `folds`: k, at least 2.
    """

    def __init__(
        self,
        kernel: Kernel,
        penalties: Sequence[float] | Floats,
        tol: float,
        window: int | None,
        folds: int,
    ) -> None:
        self._machines = [RollingMachine(kernel, penalties, tol, window) for _ in range(folds)]
        self._folds = np.empty(0, dtype=np.int64)

    @property
    def folds(self) -> int:
        """Number of machines."""
        return len(self._machines)

    def __len__(self) -> int:
        return len(self._folds)

    def extend(self, X: Floats, codes: Ints, folds: Ints) -> None:
        """Add points; each trains all machines except the one of its fold.

        `X`, shape (m, d).
        `codes`, `folds`, shape (m,): class and fold of each point.
        """
        for f, machine in enumerate(self._machines):
            machine.extend(X, codes, training=folds != f)
        self._folds = np.concatenate([self._folds, folds])

    def forget(self, count: int) -> None:
        """Remove the oldest `count` points."""
        for machine in self._machines:
            machine.forget(count)
        self._folds = self._folds[count:]

    def set_penalties(self, penalties: Floats) -> None:
        """Change the penalty of each class."""
        for machine in self._machines:
            machine.set_penalties(penalties)

    def solve(self) -> None:
        """Solve every machine to its optimum."""
        for machine in self._machines:
            machine.solve()

    def observer_values(self) -> Floats:
        """Return each point's decision value by the machine that did not train on it, shape (n, S).

        S is `RollingMachine.n_machines`.
        """
        values = np.empty((len(self), self._machines[0].n_machines))
        for f, machine in enumerate(self._machines):
            values[self._folds == f] = machine.observer_values()
        return values

    def training_values(self) -> Floats:
        """Return the mean decision value of each point over all machines, shape (n, S)."""
        return self._mean([machine.decision_values() for machine in self._machines])

    def model(self) -> KernelModel:
        """Return the mean of the machines as a scorer of new points."""
        first = self._machines[0]
        points = np.empty((len(self), first.training_points().shape[1]))
        coefs = np.zeros((self.folds, first.n_machines, len(self)))
        for f, machine in enumerate(self._machines):
            trains = self._folds != f
            points[trains] = machine.training_points()
            coefs[f][:, trains] = machine.coefficients()
        coef = self._mean(list(coefs))
        support = np.flatnonzero((coef != 0.0).any(axis=0))
        intercept = self._mean([machine.intercept for machine in self._machines])
        return KernelModel.build(first.kernel, points[support], coef[:, support], intercept)

    def state(self) -> State:
        """Return a header and arrays from which `from_state` continues bit for bit."""
        states = [machine.state() for machine in self._machines]
        arrays: Arrays = {"folds": self._folds}
        for f, state in enumerate(states):
            arrays |= nest(str(f), state.arrays)
        return State({"machines": [state.header for state in states]}, arrays)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Return the machines described by `state`."""
        header, arrays = state
        restored = cls.__new__(cls)
        restored._machines = [
            RollingMachine.from_state(State(machine, under(str(f), arrays)))
            for f, machine in enumerate(header["machines"])
        ]
        restored._folds = arrays["folds"].copy()
        return restored

    def _mean(self, values: list[Floats]) -> Floats:
        total = values[0].copy()
        for of_fold in values[1:]:
            total += of_fold
        return total / self.folds
