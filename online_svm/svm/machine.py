"""RollingMachine: exact support vector machines over a stream of examples.

One object holds the points of a stream in order of arrival and one machine for two classes
(positive means class 1) or one a class (one-against-all), all over one set of kernel rows. A
point is a *training point* or an *observer*: its decision value is wanted and kept up to date by
the solver, but it does not train.

    machine = RollingMachine(Kernel("rbf", gamma=0.2), penalties=[1.0, 1.0], tol=1e-3)
    values = machine.extend(X, codes)          new observers; their values by the present model
    machine.extend(X, codes, training=mask)    or some of them train from the next solve on
    machine.promote(3)                         the oldest three observers become training points
    machine.forget(10)                         the ten oldest points, of either kind, leave
    machine.solve()                            every machine is at its optimum again
    machine.observer_values()                  (n_observers, S), b included, by that optimum
    machine.model()                            KernelModel: scores any other point
    machine.state() / RollingMachine.from_state(state)     continue elsewhere, bit for bit

Training points leave in the order in which they joined, so a new training point must be younger
than all present ones: either the oldest observers are promoted (an oldest-first split), or a
point's part is settled when it arrives (an interleaved split).

Results depend on the calls of `promote`, `forget`, `set_penalties` and `solve`, and not
on how many rows each call of `extend` brings. A machine whose training points are all positive
answers +1, all negative (or none) -1. A class that is discovered later needs a new machine.
"""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from online_svm.errors import InvalidInput
from online_svm.kernels import Floats, Kernel
from online_svm.svm.bank import (
    Bank,
    arrive,
    clip,
    empty_bank,
    move,
    set_bounds,
    solve,
    sum_afresh,
    values_of,
)
from online_svm.svm.model import KernelModel
from online_svm.svm.rows import (
    CLOCK,
    SEEN_HEAD,
    SEEN_SIZE,
    SEEN_TAIL,
    TRAIN_HEAD,
    TRAIN_SIZE,
    TRAIN_TAIL,
    Ints,
    drop_rows,
)

Flags = NDArray[np.bool_]
State = dict[str, Any]

GRANULE = 64  # ring capacities are multiples of it
MEGABYTE = 1 << 20

# A warm start leaves the slacks spread over all the tolerance allows, a cold one does not: at half
# of it the objective is nearer to the optimum than that of a cold start at all of it.
STRICTNESS = 0.5

# F is summed afresh after this many pair steps: each adds at most two roundings of F, so the
# drift stays below 1e-9 of the largest F.
REFRESH_STEPS = 1_000_000


class RollingMachine:
    """Exact kernel SVMs that add examples, forget the oldest, and start each solve where they were.

    Parameters
    ----------
    kernel : Kernel
    penalties : sequence of float, one a class
        Upper bound of the multipliers of the examples of each class: C times the class weight.
        An example keeps its class's penalty in every machine.
    tol : float
        The largest violation of optimality a solution may have.
    window : int, optional
        Points that will usually be held: the rings do not grow far beyond it.
    cache_mb : float
        Limit on the memory for kernel rows, in MiB.
    max_steps : int
        Limit on pair steps of one machine in one solve.

    Examples
    --------
    >>> machine = RollingMachine(Kernel("linear"), [1.0, 1.0], tol=1e-6)
    >>> X = np.array([[-2.0], [-1.0], [1.0], [3.0]])
    >>> _ = machine.extend(X, np.array([0, 0, 1, 1]), training=np.ones(4, dtype=bool))
    >>> _ = machine.solve()
    >>> machine.extend(np.array([[0.5]]), np.array([1])).round(6)
    array([[0.5]])
    """

    def __init__(
        self,
        kernel: Kernel,
        penalties: Sequence[float] | Floats,
        tol: float = 1e-3,
        window: int | None = None,
        cache_mb: float = 200.0,
        max_steps: int = 10_000_000,
    ) -> None:
        self.kernel = kernel
        self.tol = tol
        self.window = window
        self.cache_mb = cache_mb
        self.max_steps = max_steps
        self.steps = 0
        self._penalties = _checked_penalties(penalties)
        self._arrivals = 0
        self._refreshed_at = 0
        self._is_solved = True
        self._bank = self._empty(0, GRANULE, GRANULE)

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
        return self._ring(TRAIN_TAIL) - self._ring(TRAIN_HEAD)

    @property
    def n_observers(self) -> int:
        """Number of observers held."""
        return self._ring(SEEN_TAIL) - self._ring(SEEN_HEAD)

    def __len__(self) -> int:
        return self.n_training + self.n_observers

    def extend(self, X: Floats, codes: Ints, training: Flags | None = None) -> Floats:
        """Add points as observers, or as training points where `training` says so.

        Parameters
        ----------
        X : ndarray of shape (m, d)
        codes : ndarray of shape (m,)
            Class of each point, from 0 to n_classes - 1.
        training : ndarray of shape (m,), optional

        Returns
        -------
        values : ndarray of shape (m, S)
            Decision values of the new points by the last solution.

        Raises
        ------
        InvalidInput
            If the shapes do not fit or a code is no class.
        """
        X = np.ascontiguousarray(X, dtype=np.float64)
        codes = np.ascontiguousarray(codes, dtype=np.int64)
        self._check_points(X, codes, training)
        trains = 0 if training is None else int(np.count_nonzero(training))
        bank = self._with_room(X.shape[1], trains, len(X) - trains)
        slots = self._new_slots(training, trains, len(X))
        values = arrive(bank, slots, X, codes, self._arrivals)
        self._arrivals += len(X)
        if training is not None and trains:
            self._set_bounds(slots[training])
        return values

    def promote(self, count: int) -> None:
        """Make the oldest `count` observers training points.

        Raises
        ------
        InvalidInput
            If there are fewer observers, or a training point is younger than the oldest of them.
        """
        if not 0 <= count <= self.n_observers:
            raise InvalidInput(f"count: {count} of {self.n_observers} observers cannot be promoted")
        if count:
            self._with_room(self._bank.rows.X.shape[0], count, 0)
            head = self._ring(SEEN_HEAD)
            self._train_slots_of(self._seen_slots(head, head + count))
            self._bank.rows.rings[SEEN_HEAD] += count

    def forget(self, count: int) -> None:
        """Let the oldest `count` points leave; the rest of the solution is kept as a start.

        Decision values stand for a machine without them only after the next `solve`.

        Raises
        ------
        InvalidInput
            If fewer points are held.
        """
        if not 0 <= count <= len(self):
            raise InvalidInput(f"count: cannot forget {count} of {len(self)} points")
        training = self._count_training(count)
        bank, head = self._bank, self._ring(TRAIN_HEAD)
        bank.rows.rings[SEEN_HEAD] += count - training
        if training:
            slots = self._train_slots(head, head + training)
            bank.lower[:, slots] = bank.upper[:, slots] = 0.0
            clip(bank)
            bank.z[:, slots] = 0.0
            drop_rows(bank.rows, slots)
            bank.rows.rings[TRAIN_HEAD] += training
            self._is_solved = False

    def set_penalties(self, penalties: Sequence[float] | Floats) -> None:
        """Change the penalty of each class (for class weights that follow the class counts).

        Raises
        ------
        InvalidInput
            If there is not one positive number a class.
        """
        checked = _checked_penalties(penalties)
        if len(checked) != self.n_classes:
            raise InvalidInput(f"penalties: expected {self.n_classes}, got {len(checked)}")
        if not np.array_equal(checked, self._penalties):
            self._penalties = checked
            self._set_bounds(self._training_slots())
            clip(self._bank)

    def solve(self) -> int:
        """Bring every machine to its optimum and return the number of pair steps it took."""
        if self._is_solved:
            return 0
        if self.steps - self._refreshed_at > REFRESH_STEPS:
            sum_afresh(self._bank, self._slots())
            self._refreshed_at = self.steps
        taken = solve(self._bank, STRICTNESS * self.tol, self.max_steps)
        self.steps += taken
        self._is_solved = True
        return taken

    def decision_values(self) -> Floats:
        """Return the decision values of all points in order of arrival, shape (n, S)."""
        return self._values(self._slots())

    def observer_values(self) -> Floats:
        """Return the decision values of the observers in order of arrival, shape (n, S)."""
        return self._values(self._observer_slots())

    def training_values(self) -> Floats:
        """Return the decision values of the training points in order of arrival, shape (n, S)."""
        return self._values(self._training_slots())

    @property
    def codes(self) -> Ints:
        """Classes of all points in order of arrival."""
        return self._bank.codes[self._slots()]

    @property
    def training_mask(self) -> Flags:
        """Which points train, in order of arrival."""
        return np.asarray(self._slots() < self._ring(TRAIN_SIZE))

    @property
    def intercept(self) -> Floats:
        """The constant b of each machine, shape (S,)."""
        return self._bank.b.copy()

    def coefficients(self) -> Floats:
        """Return beta = alpha y of the training points in order of arrival, shape (S, n)."""
        return self._bank.beta[:, self._training_slots()]

    def training_points(self) -> Floats:
        """Return the training points in order of arrival, shape (n, d)."""
        return self._bank.rows.points[self._training_slots()]

    def dual_objective(self) -> Floats:
        """Return sum alpha_i - 1/2 sum beta_i beta_j k(x_i, x_j) of each machine, shape (S,)."""
        slots = self._training_slots()
        beta, F = self._bank.beta[:, slots], self._bank.F[:, slots]
        return np.asarray((beta * (self._bank.z[:, slots] - 0.5 * F)).sum(axis=1))

    def model(self) -> KernelModel:
        """Return the present solution as a scorer of new points."""
        beta = self.coefficients()
        support = np.flatnonzero((beta != 0.0).any(axis=0))
        vectors = self.training_points()[support]
        return KernelModel.build(self.kernel, vectors, beta[:, support], self._bank.b)

    def state(self) -> State:
        """Return a header and arrays from which `from_state` continues bit for bit.

        Kernel rows are left out: they come back, with the same bits, as they are needed.
        """
        bank, training = self._bank, self._training_slots()
        slots = np.concatenate([training, self._observer_slots()])
        kernel = self.kernel
        header = {
            "kernel": [kernel.name, kernel.gamma, kernel.degree, kernel.coef0],
            "tol": self.tol,
            "window": self.window,
            "cache_mb": self.cache_mb,
            "max_steps": self.max_steps,
            "steps": self.steps,
            "arrivals": self._arrivals,
            "refreshed_at": self._refreshed_at,
            "is_solved": self._is_solved,
        }
        arrays = {
            "penalties": self._penalties.copy(),
            "rings": bank.rows.rings[:CLOCK].copy(),
            "X": bank.rows.points[slots],
            "codes": bank.codes[slots],
            "arrival": bank.arrival[slots],
            "weights": bank.weights[:, training],
            "sums": bank.sums[:, slots],
            "b": bank.b.copy(),
        }
        return {"header": header, "arrays": arrays}

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Return the machine whose `state` this is."""
        header, arrays = state["header"], state["arrays"]
        machine = cls(
            Kernel(*header["kernel"]),
            arrays["penalties"],
            header["tol"],
            header["window"],
            header["cache_mb"],
            header["max_steps"],
        )
        machine.steps = header["steps"]
        machine._arrivals = header["arrivals"]
        machine._refreshed_at = header["refreshed_at"]
        machine._restore(arrays)
        machine._is_solved = header["is_solved"]
        return machine

    def __getstate__(self) -> State:
        return self.state()

    def __setstate__(self, state: State) -> None:
        self.__dict__ = type(self).from_state(state).__dict__

    def _restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        rings = arrays["rings"]
        train, seen = int(rings[TRAIN_SIZE]), int(rings[SEEN_SIZE])
        bank = self._bank = self._empty(arrays["X"].shape[1], train, seen)
        bank.rows.rings[:CLOCK] = rings
        training = self._training_slots()
        slots = np.concatenate([training, self._observer_slots()])
        bank.rows.X[:, slots] = arrays["X"].T
        bank.rows.points[slots] = arrays["X"]
        bank.rows.diagonal[slots] = self.kernel.diagonal(np.ascontiguousarray(arrays["X"]))
        bank.codes[slots] = arrays["codes"]
        bank.arrival[slots] = arrays["arrival"]
        bank.sums[:, slots] = arrays["sums"]
        bank.b[:] = arrays["b"]
        bank.weights[:, training] = arrays["weights"]
        bank.before[:, training] = bank.beta[:, training]
        self._set_bounds(training)

    def _ring(self, entry: int) -> int:
        return int(self._bank.rows.rings[entry])

    def _train_slots(self, begin: int, end: int) -> Ints:
        return np.asarray(np.arange(begin, end) % self._ring(TRAIN_SIZE))

    def _seen_slots(self, begin: int, end: int) -> Ints:
        ordinals = np.arange(begin, end)
        return np.asarray(self._ring(TRAIN_SIZE) + ordinals % self._ring(SEEN_SIZE))

    def _training_slots(self) -> Ints:
        return self._train_slots(self._ring(TRAIN_HEAD), self._ring(TRAIN_TAIL))

    def _observer_slots(self) -> Ints:
        return self._seen_slots(self._ring(SEEN_HEAD), self._ring(SEEN_TAIL))

    def _slots(self) -> Ints:
        """Return the slots of all points in order of arrival."""
        slots = np.concatenate([self._training_slots(), self._observer_slots()])
        arrival = self._bank.arrival[slots]
        in_order = bool((arrival[1:] > arrival[:-1]).all())
        return slots if in_order else slots[np.argsort(arrival)]

    def _values(self, slots: Ints) -> Floats:
        return values_of(self._bank.F, self._bank.b, slots)

    def _new_slots(self, training: Flags | None, trains: int, m: int) -> Ints:
        """Take slots at the ends of the rings for m new points."""
        rings = self._bank.rows.rings
        seen = self._seen_slots(rings[SEEN_TAIL], rings[SEEN_TAIL] + m - trains)
        rings[SEEN_TAIL] += m - trains
        if training is None:
            return seen
        slots = np.empty(m, dtype=np.int64)
        slots[~training] = seen
        slots[training] = self._train_slots(rings[TRAIN_TAIL], rings[TRAIN_TAIL] + trains)
        rings[TRAIN_TAIL] += trains
        return slots

    def _set_bounds(self, slots: Ints) -> None:
        """Give training points their labels and bounds in every machine."""
        set_bounds(self._bank, slots, self._penalties)
        self._is_solved = False

    def _train_slots_of(self, observers: Ints) -> None:
        """Copy observers, in order of arrival, to the end of the training ring."""
        bank, tail = self._bank, self._ring(TRAIN_TAIL)
        last = bank.arrival[(tail - 1) % self._ring(TRAIN_SIZE)]
        if self.n_training and last > bank.arrival[observers[0]]:
            raise InvalidInput("a younger point already trains; promote the oldest observers first")
        slots = self._train_slots(tail, tail + len(observers))
        bank.rows.rings[TRAIN_TAIL] += len(observers)
        move(bank, observers, slots)
        self._set_bounds(slots)

    def _count_training(self, count: int) -> int:
        """Return how many of the `count` oldest points train."""
        if count == 0 or self.n_observers == 0 or count == len(self):
            return count - (self.n_observers if count == len(self) else 0)
        training = self._training_slots()[:count]
        observer = self._bank.arrival[self._observer_slots()[0]]
        if len(training) == count and self._bank.arrival[training[-1]] < observer:
            return count
        return int(np.count_nonzero(self.training_mask[:count]))

    def _check_points(self, X: Floats, codes: Ints, training: Flags | None) -> None:
        if X.ndim != 2 or codes.shape != X.shape[:1]:
            raise InvalidInput("X and codes: expected shapes (m, d) and (m,)")
        if training is not None and training.shape != codes.shape:
            raise InvalidInput("training: expected one flag for each row of X")
        if len(self) and X.shape[1] != self._bank.rows.X.shape[0]:
            expected = self._bank.rows.X.shape[0]
            raise InvalidInput(f"X: expected {expected} features, got {X.shape[1]}")
        # As unsigned numbers, negative ones are too large as well.
        if len(codes) and codes.view(np.uint64).max() >= self.n_classes:
            raise InvalidInput(f"codes: expected classes from 0 to {self.n_classes - 1}")

    def _with_room(self, dimension: int, training: int, observers: int) -> Bank:
        """Return the bank, grown if it lacks room for that many more points."""
        train, seen = self._ring(TRAIN_SIZE), self._ring(SEEN_SIZE)
        new_train = self._grown(train, self.n_training + training)
        new_seen = self._grown(seen, self.n_observers + observers)
        if (new_train, new_seen, dimension) != (train, seen, self._bank.rows.X.shape[0]):
            self._move_to(self._empty(dimension, new_train, new_seen))
        return self._bank

    def _grown(self, size: int, need: int) -> int:
        """Return a capacity for `need` points: by half again, but not far beyond the window."""
        if need <= size:
            return size
        wanted = _granules(size + size // 2)
        if self.window is not None:
            wanted = min(wanted, _granules(self.window + 1))
        return max(wanted, _granules(need))

    def _empty(self, dimension: int, train: int, seen: int) -> Bank:
        cache_bytes = int(self.cache_mb * MEGABYTE)
        return empty_bank(self.kernel, dimension, self.n_machines, train, seen, cache_bytes)

    def _move_to(self, new: Bank) -> None:
        """Copy all points to a bank with more room, in ring order from its first slots."""
        old, training, observers = self._bank, self._training_slots(), self._observer_slots()
        rings = new.rows.rings
        rings[TRAIN_TAIL], rings[SEEN_TAIL] = len(training), len(observers)
        self._bank = new
        new_training = self._training_slots()
        if len(training) + len(observers):
            _copy(old, training, new, new_training)
            _copy(old, observers, new, self._observer_slots())
        for name in ("z", "lower", "upper", "weights", "before"):
            getattr(new, name)[:, new_training] = getattr(old, name)[:, training]
        new.b[:] = old.b


def _copy(old: Bank, source: Ints, new: Bank, target: Ints) -> None:
    """Copy what is known of points, apart from their part in training, to other slots."""
    new.rows.X[:, target] = old.rows.X[:, source]
    new.rows.points[target] = old.rows.points[source]
    new.rows.diagonal[target] = old.rows.diagonal[source]
    new.codes[target] = old.codes[source]
    new.arrival[target] = old.arrival[source]
    new.sums[:, target] = old.sums[:, source]


def _checked_penalties(penalties: Sequence[float] | Floats) -> Floats:
    values = np.array(penalties, dtype=np.float64)
    if values.ndim != 1 or len(values) < 2 or not (np.isfinite(values).all() and values.min() > 0):
        raise InvalidInput("penalties: expected a positive number for each of two or more classes")
    return values


def _granules(n: int) -> int:
    return -(-n // GRANULE) * GRANULE
