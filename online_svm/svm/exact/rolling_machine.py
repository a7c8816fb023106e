"""Maintain exact support vector machines over a stream of examples.

An object holds the points of a stream in order of arrival. It has one machine for two classes
(positive means class 1), or one for each class (one against all); all use the same kernel rows. A
point is a *training point* or an *observer*: an observer has an up-to-date decision value but does
not train.

    machine = RollingMachine(Kernel("rbf", gamma=0.2), penalties=[1.0, 1.0], tol=1e-3)
    values = machine.extend(X, codes)          new observers; their values by the present model
    machine.extend(X, codes, training=mask)    some of them train from the next solve on
    machine.promote(3)                         the oldest three observers become training points
    machine.forget(10)                         the ten oldest points, of either kind, leave
    machine.solve()                            every machine is at its optimum again
    machine.observer_values()                  (n_observers, S), b included, at this optimum
    machine.model()                            KernelModel: scores any other point
    machine.state() / RollingMachine.from_state(state)     continue elsewhere, bit for bit

A new training point must be younger than all present ones: either the oldest observers are promoted
(an oldest-first split), or points train from their arrival on (an interleaved split).

Results are a function of the sequence of calls. Until the first `forget` they do not depend on the
number of rows in each `extend`. A machine whose training points are all positive answers +1
everywhere; without positive ones it answers -1. A class that is discovered later needs a new
object.
"""

import dataclasses
from collections.abc import Sequence
from typing import Self

import numpy as np

from online_svm.compiled.kernels import Kernel
from online_svm.errors import InvalidInput
from online_svm.storage.state import State
from online_svm.storage.state_schema import StateSchema, flag, number, real
from online_svm.svm.exact.held_points import HeldPoints
from online_svm.svm.exact.machine_state import (
    clip,
    count_training,
    ring_values,
    set_bounds,
    solve,
    sum_afresh,
    values_of,
)
from online_svm.svm.kernel_model import KernelModel
from online_svm.types import Bools, Floats, Ints

# A warm start leaves more violations close to the tolerance than a cold start does. With half the
# tolerance it ends closer to the optimum than a cold start with the whole.
TOLERANCE_FACTOR = 0.5

TOLERANCE = 1e-3  # tolerance of the solver in every refit of a feed, as in scikit-learn
MAX_STEPS = 10_000_000  # limit on the pair steps of one machine in one solve

# F is recomputed after so many pair steps: each step adds at most two rounding errors to F, so the
# error stays below 1e-9 of the largest F.
REFRESH_STEPS = 1_000_000

FIELDS = StateSchema(
    real("tol"), number("window", optional=True), real("cache_mb"), number("max_steps"),
    number("steps"), number("_refreshed_at"), flag("_is_solved"),
)  # fmt: skip


class RollingMachine:
    """Exact kernel SVMs that add examples, forget the oldest, and warm-start each solve.

    `penalties` are the bounds on the multipliers of the examples of each class: C times the class
    weight, in every machine. `tol` is the largest violation of optimality of a solution, and
    `window` the usual number of points.
    """

    def __init__(
        self,
        kernel: Kernel,
        penalties: Sequence[float] | Floats,
        tol: float = TOLERANCE,
        window: int | None = None,
        cache_mb: float = 200.0,
    ) -> None:
        self.kernel = kernel
        # Converted from numpy numbers, which a header cannot hold.
        self.tol, self.cache_mb = float(tol), float(cache_mb)
        self.window = None if window is None else int(window)
        self.max_steps = MAX_STEPS
        self.steps = 0
        self._penalties = _checked_penalties(penalties)
        self._refreshed_at = 0
        self._is_solved = True
        self._held = HeldPoints(kernel, self.n_machines, window, cache_mb)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self._penalties)

    @property
    def n_machines(self) -> int:
        """S: one machine for two classes, else one a class."""
        return 1 if self.n_classes == 2 else self.n_classes

    @property
    def n_training(self) -> int:
        """Number of training points held."""
        return self._held.n_training

    @property
    def n_observers(self) -> int:
        """Number of observers held."""
        return self._held.n_observers

    def __len__(self) -> int:
        return len(self._held)

    def extend(self, X: Floats, codes: Ints, training: Bools | None = None) -> Floats:
        """Add points, shape (m, d), as observers, or as training points where `training` is true.

        Returns their decision values by the last solution, shape (m, S). Raises InvalidInput if the
        shapes do not fit or a code is no class.
        """
        X = np.ascontiguousarray(X, dtype=np.float64)
        codes = np.ascontiguousarray(codes, dtype=np.int64)
        if training is None:
            training = np.zeros(len(codes), dtype=np.bool_)
        training = np.ascontiguousarray(training, dtype=np.bool_)
        self._check_shapes(X, codes, training)
        trains = count_training(codes, training, self.n_classes)
        if trains < 0:
            raise InvalidInput(f"codes: expected classes from 0 to {self.n_classes - 1}")
        if trains > 0:
            self._is_solved = False
        return self._held.add(X, codes, training, trains, self._penalties)

    def promote(self, count: int) -> None:
        """Make the oldest `count` observers training points.

        Raises InvalidInput if there are fewer, or a training point is younger than the oldest
        observer.
        """
        if not 0 <= count <= self.n_observers:
            raise InvalidInput(f"count: {count} of {self.n_observers} observers cannot be promoted")
        if count:
            self._held.promote(count, self._penalties)
            self._is_solved = False

    def forget(self, count: int) -> None:
        """Remove the oldest `count` points; the next `solve` starts from the remaining solution.

        Decision values are optimal again only after that `solve`. Raises InvalidInput if fewer
        points are held.
        """
        if not 0 <= count <= len(self):
            raise InvalidInput(f"count: cannot forget {count} of {len(self)} points")
        if self._held.forget(count):
            self._is_solved = False

    def set_penalties(self, penalties: Sequence[float] | Floats) -> None:
        """Change the penalty of each class (for class weights that follow the class counts).

        Raises InvalidInput if there is not one positive number a class.
        """
        checked = _checked_penalties(penalties)
        if len(checked) != self.n_classes:
            raise InvalidInput(f"penalties: expected {self.n_classes}, got {len(checked)}")
        if not np.array_equal(checked, self._penalties):
            self._penalties = checked
            self._is_solved = False
            training = self._held.training_slots()
            set_bounds(self._held.bank, training, self._penalties)
            clip(self._held.bank, training)

    def solve(self) -> int:
        """Bring every machine to its optimum and return the number of pair steps it took."""
        if self._is_solved:
            return 0
        if self.steps - self._refreshed_at > REFRESH_STEPS:
            sum_afresh(self._held.bank)
            self._refreshed_at = self.steps
        taken = solve(self._held.bank, TOLERANCE_FACTOR * self.tol, self.max_steps)
        self.steps += taken
        self._is_solved = True
        return taken

    def decision_values(self) -> Floats:
        """Return the decision values of all points in order of arrival, shape (n, S)."""
        return values_of(self._held.bank.F, self._held.bank.b, self._held.slots())

    def observer_values(self) -> Floats:
        """Return the decision values of the observers in order of arrival, shape (n, S)."""
        return ring_values(self._held.bank, observers=True)

    def training_values(self) -> Floats:
        """Return the decision values of the training points in order of arrival, shape (n, S)."""
        return ring_values(self._held.bank, observers=False)

    @property
    def codes(self) -> Ints:
        """Classes of all points in order of arrival."""
        return self._held.bank.codes[self._held.slots()]

    @property
    def intercept(self) -> Floats:
        """The constant b of each machine, shape (S,)."""
        return self._held.bank.b.copy()

    def coefficients(self) -> Floats:
        """Return beta = alpha y of the training points in order of arrival, shape (S, n)."""
        return self._held.bank.beta[:, self._held.training_slots()]

    def training_points(self) -> Floats:
        """Return the training points in order of arrival, shape (n, d)."""
        return self._held.bank.rows.points[self._held.training_slots()]

    def dual_objective(self) -> Floats:
        """Return sum alpha_i - 1/2 sum beta_i beta_j k(x_i, x_j) of each machine, shape (S,)."""
        slots = self._held.training_slots()
        beta, F = self._held.bank.beta[:, slots], self._held.bank.F[:, slots]
        return np.asarray((beta * (self._held.bank.z[:, slots] - 0.5 * F)).sum(axis=1))

    def model(self) -> KernelModel:
        """Return the present solution as a scorer of new points."""
        beta = self.coefficients()
        support = np.flatnonzero((beta != 0.0).any(axis=0))
        vectors = self._held.bank.rows.points[self._held.training_slots()[support]]
        return KernelModel.build(self.kernel, vectors, beta[:, support], self._held.bank.b)

    def state(self) -> State:
        """Return a header and arrays from which `from_state` continues bit for bit.

        Kernel rows are left out: they are recomputed with the same bits on use.
        """
        header = {"kernel": list(dataclasses.astuple(self.kernel)), **FIELDS.header_of(self)}
        return State(header, {"penalties": self._penalties} | self._held.state())

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Restore the machine from `state`."""
        header, arrays = state
        kernel = Kernel(*header["kernel"])
        machine = cls(kernel, arrays["penalties"], header["tol"], header["window"])
        FIELDS.fill(machine, header, {})
        machine._held = HeldPoints.from_state(
            arrays, kernel, machine.n_machines, machine.window, machine.cache_mb
        )
        held = machine._held
        set_bounds(held.bank, held.training_slots(), machine._penalties)
        return machine

    def __getstate__(self) -> State:
        return self.state()

    def __setstate__(self, state: State) -> None:
        self.__dict__ = type(self).from_state(state).__dict__

    def _check_shapes(self, X: Floats, codes: Ints, training: Bools) -> None:
        if X.ndim != 2 or codes.shape != X.shape[:1]:
            raise InvalidInput("X and codes: expected shapes (m, d) and (m,)")
        if training.shape != codes.shape:
            raise InvalidInput("training: expected one flag for each row of X")
        if X.shape[1] != self._held.dimension and len(self):
            expected = self._held.dimension
            raise InvalidInput(f"X: expected {expected} features, got {X.shape[1]}")


def _checked_penalties(penalties: Sequence[float] | Floats) -> Floats:
    values = np.array(penalties, dtype=np.float64)
    if values.ndim != 1 or len(values) < 2 or not (np.isfinite(values).all() and values.min() > 0):
        raise InvalidInput("penalties: expected a positive number for each of two or more classes")
    return values
