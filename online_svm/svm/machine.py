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
than all present ones: either points train from their arrival (an interleaved split), or the
oldest observers are promoted (an oldest-first split), not both. Results depend on the sequence of
calls to `promote`, `forget`, `set_penalties` and `solve`, and not on how many rows each call of
`extend` brings.

A machine whose training points are all positive answers +1, all negative (or none) -1.
"""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from online_svm.errors import InvalidInput
from online_svm.kernels import Floats, Kernel
from online_svm.svm import bank as compiled
from online_svm.svm.bank import STEPS, Bank, empty_bank
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
)

Flags = NDArray[np.bool_]
State = dict[str, Any]

GRANULE = 64  # ring capacities are multiples of it
MEGABYTE = 1 << 20


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
        Points that will usually be held: room for them is made at once instead of by growth.
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
        self._penalties = _checked_penalties(penalties)
        self._bank: Bank | None = None

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
        return 0 if self._bank is None else self._count(TRAIN_HEAD, TRAIN_TAIL)

    @property
    def n_observers(self) -> int:
        """Number of observers held."""
        return 0 if self._bank is None else self._count(SEEN_HEAD, SEEN_TAIL)

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
        flags = np.zeros(len(X), dtype=np.bool_) if training is None else np.asarray(training)
        self._check_points(X, codes, flags)
        n_training = int(np.count_nonzero(flags))
        bank = self._with_room(X.shape[1], n_training, len(X) - n_training)
        return compiled.values_of(bank, compiled.arrive(bank, X, codes, flags))

    def promote(self, count: int) -> None:
        """Make the oldest `count` observers training points.

        Raises
        ------
        InvalidInput
            If there are fewer observers, or a training point is younger than the oldest of them.
        """
        if not 0 <= count <= self.n_observers:
            raise InvalidInput(f"count: {count} of {self.n_observers} observers cannot be promoted")
        if count == 0:
            return
        bank = self._with_room(self._dimension, count, 0)
        if self.n_training and self._last_training_arrival() > self._first_observer_arrival():
            raise InvalidInput("count: a younger point already trains; promote the oldest first")
        compiled.promote(bank, count)

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
        if self._bank is not None and count:
            compiled.forget(self._bank, count)

    def set_penalties(self, penalties: Sequence[float] | Floats) -> None:
        """Change the penalty of each class (for class weights that follow the class counts)."""
        checked = _checked_penalties(penalties)
        if len(checked) != self.n_classes:
            raise InvalidInput(f"penalties: expected {self.n_classes}, got {len(checked)}")
        if np.array_equal(checked, self._penalties):
            return
        self._penalties = checked
        if self._bank is not None:
            compiled.set_penalties(self._bank, checked)

    def solve(self) -> int:
        """Bring every machine to its optimum and return the number of pair steps it took."""
        return 0 if self._bank is None else compiled.solve(self._bank, self.tol, self.max_steps)

    def decision_values(self) -> Floats:
        """Return the decision values of all points in order of arrival, shape (n, S)."""
        if self._bank is None:
            return np.zeros((0, self.n_machines))
        return compiled.values_of(self._bank, self._slots())

    def observer_values(self) -> Floats:
        """Return the decision values of the observers in order of arrival, shape (n, S)."""
        if self._bank is None:
            return np.zeros((0, self.n_machines))
        return compiled.observer_values(self._bank)

    def training_values(self) -> Floats:
        """Return the decision values of the training points in order of arrival, shape (n, S)."""
        if self._bank is None:
            return np.zeros((0, self.n_machines))
        return compiled.values_of(self._bank, self._training_slots())

    @property
    def codes(self) -> Ints:
        """Classes of all points in order of arrival."""
        return (
            np.zeros(0, dtype=np.int64) if self._bank is None else self._bank.codes[self._slots()]
        )

    @property
    def training_mask(self) -> Flags:
        """Which points train, in order of arrival."""
        if self._bank is None:
            return np.zeros(0, dtype=np.bool_)
        return np.asarray(self._slots() < self._bank.rows.rings[TRAIN_SIZE])

    @property
    def intercept(self) -> Floats:
        """The constant b of each machine, shape (S,)."""
        return np.full(self.n_machines, -1.0) if self._bank is None else self._bank.b.copy()

    def coefficients(self) -> Floats:
        """Return beta = alpha y of the training points in order of arrival, shape (S, n)."""
        if self._bank is None:
            return np.zeros((self.n_machines, 0))
        return self._bank.beta[:, self._training_slots()]

    def training_points(self) -> Floats:
        """Return the training points in order of arrival, shape (n, d)."""
        if self._bank is None:
            return np.zeros((0, 0))
        return np.ascontiguousarray(self._bank.rows.X[:, self._training_slots()].T)

    def dual_objective(self) -> Floats:
        """Return sum alpha_i - 1/2 sum beta_i beta_j k(x_i, x_j) of each machine, shape (S,)."""
        if self._bank is None:
            return np.zeros(self.n_machines)
        slots = self._training_slots()
        beta, F = self._bank.beta[:, slots], self._bank.F[:, slots]
        return np.asarray((beta * (self._bank.z[:, slots] - 0.5 * F)).sum(axis=1))

    def model(self) -> KernelModel:
        """Return the present solution as a scorer of new points."""
        beta = self.coefficients()
        support = np.flatnonzero((beta != 0.0).any(axis=0))
        return KernelModel.build(
            self.kernel, self.training_points()[support], beta[:, support], self.intercept
        )

    def state(self) -> State:
        """Return arrays and numbers from which `from_state` continues bit for bit.

        Kernel rows are left out: they come back, with the same bits, as they are needed.
        """
        header = {
            "kernel": [self.kernel.name, self.kernel.gamma, self.kernel.degree, self.kernel.coef0],
            "tol": self.tol,
            "window": self.window,
            "cache_mb": self.cache_mb,
            "max_steps": self.max_steps,
            "empty": self._bank is None,
        }
        arrays = {"penalties": self._penalties.copy()}
        if self._bank is not None:
            arrays |= self._arrays()
        return {"header": header, "arrays": arrays}

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Return the machine whose `state` this is."""
        header, arrays = state["header"], state["arrays"]
        name, gamma, degree, coef0 = header["kernel"]
        machine = cls(
            Kernel(name, gamma, degree, coef0),
            arrays["penalties"],
            header["tol"],
            header["window"],
            header["cache_mb"],
            header["max_steps"],
        )
        if not header["empty"]:
            machine._restore(arrays)
        return machine

    @property
    def _dimension(self) -> int:
        assert self._bank is not None
        return int(self._bank.rows.X.shape[0])

    @property
    def steps(self) -> int:
        """Pair steps taken so far, over all machines."""
        return 0 if self._bank is None else int(self._bank.counters[STEPS])

    def _count(self, head: int, tail: int) -> int:
        assert self._bank is not None
        rings = self._bank.rows.rings
        return int(rings[tail] - rings[head])

    def _last_training_arrival(self) -> int:
        assert self._bank is not None
        return int(self._bank.arrival[self._training_slots()[-1]])

    def _first_observer_arrival(self) -> int:
        assert self._bank is not None
        return int(self._bank.arrival[self._observer_slots()[0]])

    def _training_slots(self) -> Ints:
        assert self._bank is not None
        rings = self._bank.rows.rings
        return np.asarray(np.arange(rings[TRAIN_HEAD], rings[TRAIN_TAIL]) % rings[TRAIN_SIZE])

    def _observer_slots(self) -> Ints:
        assert self._bank is not None
        rings = self._bank.rows.rings
        ordinals = np.arange(rings[SEEN_HEAD], rings[SEEN_TAIL])
        return np.asarray(rings[TRAIN_SIZE] + ordinals % rings[SEEN_SIZE])

    def _slots(self) -> Ints:
        assert self._bank is not None
        slots = np.concatenate([self._training_slots(), self._observer_slots()])
        return slots[np.argsort(self._bank.arrival[slots])]

    def _check_points(self, X: Floats, codes: Ints, training: Flags) -> None:
        if X.ndim != 2 or codes.shape != X.shape[:1] or training.shape != X.shape[:1]:
            raise InvalidInput("X, codes and training: expected shapes (m, d), (m,) and (m,)")
        if self._bank is not None and X.shape[1] != self._dimension:
            raise InvalidInput(f"X: expected {self._dimension} features, got {X.shape[1]}")
        if len(codes) and not (codes.min() >= 0 and codes.max() < self.n_classes):
            raise InvalidInput(f"codes: expected classes from 0 to {self.n_classes - 1}")

    def _with_room(self, dimension: int, training: int, observers: int) -> Bank:
        """Return the bank, grown if it lacks room for that many more points."""
        need_train, need_seen = self.n_training + training, self.n_observers + observers
        if self._bank is None:
            self._bank = self._empty(
                dimension,
                _granules(max(need_train, GRANULE)),
                _granules(max(need_seen, GRANULE)),
            )
        rings = self._bank.rows.rings
        train, seen = int(rings[TRAIN_SIZE]), int(rings[SEEN_SIZE])
        if need_train > train or need_seen > seen:
            self._move_to(
                self._empty(
                    dimension,
                    train if need_train <= train else self._grown(train, need_train),
                    seen if need_seen <= seen else self._grown(seen, need_seen),
                )
            )
        assert self._bank is not None
        return self._bank

    def _grown(self, size: int, need: int) -> int:
        """Return a capacity for `need` points: by half again, but not beyond a window's need."""
        wanted = size + size // 2
        if self.window is not None:
            wanted = min(wanted, _granules(self.window + 1))
        return max(_granules(wanted), _granules(need))

    def _empty(self, dimension: int, train: int, seen: int) -> Bank:
        cache_bytes = int(self.cache_mb * MEGABYTE)
        return empty_bank(self.kernel, dimension, self._penalties, train, seen, cache_bytes)

    def _move_to(self, new: Bank) -> None:
        """Copy all points to a bank with more room, in ring order from its first slot."""
        assert self._bank is not None
        old = self._bank
        training, observers = self._training_slots(), self._observer_slots()
        new.rows.rings[TRAIN_TAIL] = len(training)
        new.rows.rings[SEEN_TAIL] = len(observers)
        offset = new.rows.rings[TRAIN_SIZE]
        for slots, first in ((training, 0), (observers, offset)):
            part = slice(first, first + len(slots))
            new.rows.X[:, part] = old.rows.X[:, slots]
            new.rows.diagonal[part] = old.rows.diagonal[slots]
            new.codes[part] = old.codes[slots]
            new.arrival[part] = old.arrival[slots]
            new.F[:, part] = old.F[:, slots]
        for name in ("z", "lower", "upper", "beta"):
            getattr(new, name)[:, : len(training)] = getattr(old, name)[:, training]
        new.b[:] = old.b
        new.counters[:] = old.counters
        self._bank = new

    def _arrays(self) -> dict[str, NDArray[Any]]:
        """Return what the bank holds, in ring order, and where the rings stand."""
        assert self._bank is not None
        bank = self._bank
        training, observers = self._training_slots(), self._observer_slots()
        slots = np.concatenate([training, observers])
        return {
            "rings": bank.rows.rings[:CLOCK].copy(),
            "counters": bank.counters.copy(),
            "X": np.ascontiguousarray(bank.rows.X[:, slots].T),
            "codes": bank.codes[slots],
            "arrival": bank.arrival[slots],
            "beta": bank.beta[:, training],
            "F": bank.F[:, slots],
            "b": bank.b.copy(),
        }

    def _restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        rings = arrays["rings"]
        self._bank = self._empty(
            arrays["X"].shape[1], int(rings[TRAIN_SIZE]), int(rings[SEEN_SIZE])
        )
        bank = self._bank
        bank.rows.rings[:CLOCK] = rings
        bank.counters[:] = arrays["counters"]
        bank.b[:] = arrays["b"]
        training = self._training_slots()
        slots = np.concatenate([training, self._observer_slots()])
        bank.rows.X[:, slots] = arrays["X"].T
        bank.codes[slots] = arrays["codes"]
        bank.arrival[slots] = arrays["arrival"]
        bank.F[:, slots] = arrays["F"]
        bank.beta[:, training] = arrays["beta"]
        compiled.set_up(bank, training)


def _checked_penalties(penalties: Sequence[float] | Floats) -> Floats:
    values = np.array(penalties, dtype=np.float64)
    if values.ndim != 1 or len(values) < 2 or not (np.isfinite(values).all() and values.min() > 0):
        raise InvalidInput(
            "penalties: expected one positive number for each of two or more classes"
        )
    return values


def _granules(n: int) -> int:
    return -(-n // GRANULE) * GRANULE
