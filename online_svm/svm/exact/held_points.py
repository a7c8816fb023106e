"""HeldPoints: which points a machine holds, in which slots of its two rings, and their growth."""

from typing import Self

import numpy as np

from online_svm.compiled.kernels import Kernel
from online_svm.errors import InvalidInput
from online_svm.svm.exact import bank_reference as compiled
from online_svm.svm.exact.active_set import CHECKED, SIZE, VACANT
from online_svm.svm.exact.kernel_cache import (
    CLOCK,
    SEEN_HEAD,
    SEEN_SIZE,
    SEEN_TAIL,
    TRAIN_HEAD,
    TRAIN_SIZE,
    TRAIN_TAIL,
)
from online_svm.svm.exact.machine_state import Bank, empty_bank
from online_svm.types import Arrays, Bools, Floats, Ints

MEGABYTE = 1 << 20
GRANULE = 64  # capacities of rings are multiples of it


class HeldPoints:
    """Training points and observers in two rings of slots, oldest first.

    Parameters
    ----------
    kernel : Kernel
    machines : int
        S, the machines whose coefficients and sums are kept beside the points.
    window : int or None
        Points usually held: the rings do not grow far beyond it.
    cache_mb : float
        Limit on the memory for kernel rows, in MiB.

    Attributes
    ----------
    bank : Bank
        The arrays; replaced by larger ones as the rings grow.
    reference : BankReference
        The same bank, as the compiled functions take it.

    Examples
    --------
    >>> held = HeldPoints(Kernel("linear"), machines=1, window=None, cache_mb=1.0)
    >>> codes, nobody, penalties = np.zeros(3, dtype=np.int64), np.zeros(3, dtype=bool), np.ones(2)
    >>> values = held.add(np.ones((3, 2)), codes, nobody, 0, penalties)
    >>> held.promote(2, penalties)
    >>> held.n_training, held.n_observers
    (2, 1)
    """

    def __init__(self, kernel: Kernel, machines: int, window: int | None, cache_mb: float) -> None:
        self._kernel = kernel
        self._machines = machines
        self._window = window
        self._cache_bytes = int(cache_mb * MEGABYTE)
        self._arrivals = 0
        self._hold(self._empty(0, GRANULE, GRANULE))

    @property
    def dimension(self) -> int:
        """Number of features, once a point came."""
        return int(self.bank.rows.X.shape[0])

    @property
    def n_training(self) -> int:
        """Number of training points."""
        return self._ring(TRAIN_TAIL) - self._ring(TRAIN_HEAD)

    @property
    def n_observers(self) -> int:
        """Number of observers."""
        return self._ring(SEEN_TAIL) - self._ring(SEEN_HEAD)

    def __len__(self) -> int:
        head, tail, _, seen_head, seen_tail, _, _ = self.bank.rows.rings.tolist()
        return int(tail - head + seen_tail - seen_head)

    def training_slots(self) -> Ints:
        """Return the slots of the training points in order of arrival."""
        ordinals = np.arange(self._ring(TRAIN_HEAD), self._ring(TRAIN_TAIL))
        return np.asarray(ordinals % self._ring(TRAIN_SIZE))

    def observer_slots(self) -> Ints:
        """Return the slots of the observers in order of arrival."""
        ordinals = np.arange(self._ring(SEEN_HEAD), self._ring(SEEN_TAIL))
        return np.asarray(self._ring(TRAIN_SIZE) + ordinals % self._ring(SEEN_SIZE))

    def slots(self) -> Ints:
        """Return the slots of all points in order of arrival."""
        slots = np.concatenate([self.training_slots(), self.observer_slots()])
        arrival = self.bank.arrival[slots]
        in_order = bool((arrival[1:] > arrival[:-1]).all())
        return slots if in_order else slots[np.argsort(arrival)]

    def training_mask(self) -> Bools:
        """Return which points train, in order of arrival."""
        return np.asarray(self.slots() < self._ring(TRAIN_SIZE))

    def add(
        self, X: Floats, codes: Ints, training: Bools, trains: int, penalties: Floats
    ) -> Floats:
        """Take in new points, of which `trains` train; return their decision values, (m, S)."""
        self._make_room(X.shape[1], trains, len(X) - trains)
        values = compiled.arrive(self.reference, X, codes, training, self._arrivals, penalties)
        self._arrivals += len(X)
        return values

    def promote(self, count: int, penalties: Floats) -> None:
        """Move the oldest observers to the end of the training ring.

        Raises
        ------
        InvalidInput
            If a younger point already trains.
        """
        self._make_room(self.dimension, count, 0)
        rings, arrival = self.bank.rows.rings, self.bank.arrival
        youngest = (rings[TRAIN_TAIL] - 1) % rings[TRAIN_SIZE]
        oldest = rings[TRAIN_SIZE] + rings[SEEN_HEAD] % rings[SEEN_SIZE]
        if self.n_training and arrival[youngest] > arrival[oldest]:
            raise InvalidInput("a younger point already trains; promote the oldest observers first")
        compiled.promote(self.reference, count, penalties)

    def count_training(self, count: int) -> int:
        """Return how many of the `count` oldest points train."""
        if self.n_observers == 0:
            return count
        # Points leave in the order in which they came, so those held are the last to arrive.
        oldest = self._arrivals - len(self)
        arrival = self.bank.arrival[self.training_slots()]
        return int(np.searchsorted(arrival, oldest + count))

    def sum_afresh(self) -> None:
        """Sum what is kept for each point from the coefficients alone."""
        compiled.sum_afresh(self.reference, self._ring(TRAIN_HEAD), self._ring(SEEN_HEAD))

    def forget(self, count: int) -> int:
        """Give up the oldest points, and return how many of them trained."""
        training = self.count_training(count)
        if count > training:
            self.bank.rows.rings[SEEN_HEAD] += count - training
        if training:
            compiled.forget_training(self.reference, training)
        return training

    def state(self) -> Arrays:
        """Return what is held, in ring order, and how the rings stand."""
        bank, training = self.bank, self.training_slots()
        return self._points() | {
            "arrivals": np.array([self._arrivals]),
            "rings": bank.rows.rings[:CLOCK].copy(),
            "weights": bank.weights[:, training],
            "b": bank.b.copy(),
            "active": self._active_positions(training),
            "active_counts": bank.active.counts.copy(),
            "margin": bank.active.margin.copy(),
        }

    @classmethod
    def from_state(
        cls, state: Arrays, kernel: Kernel, machines: int, window: int | None, cache_mb: float
    ) -> Self:
        """Return the points that `state` describes; the bounds of those that train are not set."""
        held = cls(kernel, machines, window, cache_mb)
        rings = state["rings"]
        train, seen = int(rings[TRAIN_SIZE]), int(rings[SEEN_SIZE])
        held._hold(held._empty(state["X"].shape[1], train, seen))
        bank = held.bank
        bank.rows.rings[:CLOCK] = rings
        training = held.training_slots()
        held._put(state)
        bank.b[:] = state["b"]
        bank.weights[:, training] = state["weights"]
        bank.before[:, training] = bank.beta[:, training]
        bank.active.margin[:] = state["margin"]
        bank.active.counts[:] = state["active_counts"]
        held._activate(state["active"], training)
        held._arrivals = int(state["arrivals"][0])
        return held

    def _ring_slots(self) -> Ints:
        return np.concatenate([self.training_slots(), self.observer_slots()])

    def _points(self) -> Arrays:
        """Return what is known of the points, apart from their part in training, in ring order."""
        bank, slots = self.bank, self._ring_slots()
        return {
            "X": bank.rows.points[slots],
            "codes": bank.codes[slots],
            "arrival": bank.arrival[slots],
            "sums": bank.sums[:, slots],
        }

    def _put(self, points: Arrays) -> None:
        """Give as many slots, in ring order, what `_points` returned."""
        bank, slots = self.bank, self._ring_slots()
        bank.rows.X[:, slots] = points["X"].T
        bank.rows.points[slots] = points["X"]
        bank.rows.diagonal[slots] = self._kernel.diagonal(np.ascontiguousarray(points["X"]))
        bank.codes[slots] = points["codes"]
        bank.arrival[slots] = points["arrival"]
        bank.sums[:, slots] = points["sums"]

    def _active_positions(self, training: Ints) -> Ints:
        """Return who has each place of the active sets: training points by number from 1, or 0."""
        number = np.zeros(self._ring(TRAIN_SIZE) + 1, dtype=np.int64)
        number[training] = np.arange(1, len(training) + 1)
        active = self.bank.active
        return np.asarray(number[active.slots[:, : active.counts[:, SIZE].max()]])

    def _activate(self, positions: Ints, training: Ints) -> None:
        """Give the training points with these numbers their places in the active sets."""
        slots = np.concatenate([[VACANT], training])[positions]
        compiled.restore_active(self.reference, slots)

    def _hold(self, bank: Bank) -> None:
        self.bank, self.reference = bank, compiled.reference_to(bank)

    def _ring(self, entry: int) -> int:
        return int(self.bank.rows.rings[entry])

    def _make_room(self, dimension: int, training: int, observers: int) -> None:
        """Let the rings grow if they lack room for that many more points."""
        head, tail, train, seen_head, seen_tail, seen, _ = self.bank.rows.rings.tolist()
        new_train = self._grown(train, tail - head + training)
        new_seen = self._grown(seen, seen_tail - seen_head + observers)
        if (new_train, new_seen, dimension) != (train, seen, self.dimension):
            self._move_to(self._empty(dimension, new_train, new_seen))

    def _grown(self, size: int, need: int) -> int:
        """Return a capacity for `need` points: by half again, but not far beyond the window."""
        if need <= size:
            return size
        wanted = capacity_for(size + size // 2)
        if self._window is not None:
            wanted = min(wanted, largest_ring(self._window))
        return max(wanted, capacity_for(need))

    def _empty(self, dimension: int, train: int, seen: int) -> Bank:
        return empty_bank(self._kernel, dimension, self._machines, train, seen, self._cache_bytes)

    def _move_to(self, new: Bank) -> None:
        """Copy all points to a bank with more room, in ring order from its first slots."""
        old, points, training = self.bank, self._points(), self.training_slots()
        active = self._active_positions(training)
        rings = new.rows.rings
        rings[TRAIN_TAIL], rings[SEEN_TAIL] = len(training), self.n_observers
        self._hold(new)
        new_training = self.training_slots()
        if len(self):
            self._put(points)
        for name in ("z", "lower", "upper", "weights", "before"):
            getattr(new, name)[:, new_training] = getattr(old, name)[:, training]
        new.b[:] = old.b
        new.active.margin[:] = old.active.margin
        new.active.counts[:] = old.active.counts
        new.active.counts[:, CHECKED] -= old.rows.rings[TRAIN_HEAD]
        self._activate(active, new_training)


def largest_ring(window: int) -> int:
    """Return the capacity beyond which no ring grows while at most `window` points are held.

    Examples
    --------
    >>> largest_ring(100)
    128
    """
    return capacity_for(window + 1)


def capacity_for(n: int) -> int:
    """Return the least capacity for n points.

    Examples
    --------
    >>> capacity_for(65)
    128
    """
    return -(-n // GRANULE) * GRANULE
