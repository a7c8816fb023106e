"""Assign the points of a machine to slots of two rings, and grow the rings."""

from typing import Self

import numpy as np

from online_svm.compiled.kernels import Kernel
from online_svm.errors import InvalidInput
from online_svm.svm.exact.machine_state import (
    CHECKED,
    CLOCK,
    MEGABYTE,
    SEEN_HEAD,
    SEEN_SIZE,
    SEEN_TAIL,
    SIZE,
    TRAIN_HEAD,
    TRAIN_SIZE,
    TRAIN_TAIL,
    VACANT,
    Bank,
    arrive,
    empty_bank,
    forget_training,
    promote,
    restore_active,
)
from online_svm.types import Arrays, Bools, Floats, Ints

CAPACITY_GRANULE = 64  # ring capacities are multiples of this number


class HeldPoints:
    """Training points and observers of S machines in two rings of slots, oldest first.

    The rings do not grow far beyond `window`, the usual number of points; `cache_mb` limits the
    memory for kernel rows, in MiB. Growing rings replace `bank` by a larger one.
    """

    def __init__(self, kernel: Kernel, machines: int, window: int | None, cache_mb: float) -> None:
        self._kernel = kernel
        self._machines = machines
        self._window = window
        self._cache_bytes = int(cache_mb * MEGABYTE)
        self._arrivals = 0
        self.bank = self._empty(0, CAPACITY_GRANULE, CAPACITY_GRANULE)

    @property
    def dimension(self) -> int:
        """Number of features; 0 before the first point."""
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

    def add(
        self, X: Floats, codes: Ints, training: Bools, trains: int, penalties: Floats
    ) -> Floats:
        """Append points, of which `trains` train; return their decision values, shape (m, S)."""
        self._make_room(X.shape[1], trains, len(X) - trains)
        values = arrive(self.bank, X, codes, training, self._arrivals, penalties)
        self._arrivals += len(X)
        return values

    def promote(self, count: int, penalties: Floats) -> None:
        """Move the oldest observers to the end of the training ring.

        Raises InvalidInput if a younger point already trains.
        """
        self._make_room(self.dimension, count, 0)
        rings, arrival = self.bank.rows.rings, self.bank.arrival
        youngest = (rings[TRAIN_TAIL] - 1) % rings[TRAIN_SIZE]
        oldest = rings[TRAIN_SIZE] + rings[SEEN_HEAD] % rings[SEEN_SIZE]
        if self.n_training and arrival[youngest] > arrival[oldest]:
            raise InvalidInput("a younger point already trains; promote the oldest observers first")
        promote(self.bank, count, penalties)

    def count_training(self, count: int) -> int:
        """Return how many of the `count` oldest points train."""
        if self.n_observers == 0:
            return count
        # Points leave in order of arrival, so the held points arrived last.
        oldest = self._arrivals - len(self)
        arrival = self.bank.arrival[self.training_slots()]
        return int(np.searchsorted(arrival, oldest + count))

    def forget(self, count: int) -> int:
        """Remove the oldest points, and return how many of them trained."""
        training = self.count_training(count)
        if count > training:
            self.bank.rows.rings[SEEN_HEAD] += count - training
        if training:
            forget_training(self.bank, training)
        return training

    def state(self) -> Arrays:
        """Return the points in ring order, and the positions of the rings."""
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
        """Restore the points from `state`; the caller sets the bounds of the training points."""
        held = cls(kernel, machines, window, cache_mb)
        rings = state["rings"]
        train, seen = int(rings[TRAIN_SIZE]), int(rings[SEEN_SIZE])
        held.bank = bank = held._empty(state["X"].shape[1], train, seen)
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
        """Return the data of training points and observers alike, in ring order."""
        bank, slots = self.bank, self._ring_slots()
        return {
            "X": bank.rows.points[slots],
            "codes": bank.codes[slots],
            "arrival": bank.arrival[slots],
            "sums": bank.sums[:, slots],
        }

    def _put(self, points: Arrays) -> None:
        """Write the result of `_points` to as many slots, in ring order."""
        bank, slots = self.bank, self._ring_slots()
        bank.rows.X[:, slots] = points["X"].T
        bank.rows.points[slots] = points["X"]
        bank.rows.diagonal[slots] = self._kernel.diagonal(np.ascontiguousarray(points["X"]))
        bank.codes[slots] = points["codes"]
        bank.arrival[slots] = points["arrival"]
        bank.sums[:, slots] = points["sums"]

    def _active_positions(self, training: Ints) -> Ints:
        """Return the number, from 1, of the training point in each active place; 0 for none."""
        number = np.zeros(self._ring(TRAIN_SIZE) + 1, dtype=np.int64)
        number[training] = np.arange(1, len(training) + 1)
        active = self.bank.active
        return np.asarray(number[active.slots[:, : active.counts[:, SIZE].max()]])

    def _activate(self, positions: Ints, training: Ints) -> None:
        """Restore the active sets from the result of `_active_positions`."""
        slots = np.concatenate([[VACANT], training])[positions]
        restore_active(self.bank.active, self.bank.rows, np.ascontiguousarray(slots))

    def _ring(self, entry: int) -> int:
        return int(self.bank.rows.rings[entry])

    def _make_room(self, dimension: int, training: int, observers: int) -> None:
        """Grow the rings if they lack room for that many more points."""
        head, tail, train, seen_head, seen_tail, seen, _ = self.bank.rows.rings.tolist()
        new_train = self._grown(train, tail - head + training)
        new_seen = self._grown(seen, seen_tail - seen_head + observers)
        if (new_train, new_seen, dimension) != (train, seen, self.dimension):
            self._move_to(self._empty(dimension, new_train, new_seen))

    def _grown(self, size: int, need: int) -> int:
        """Return a capacity for `need` points: grow by half, but not far beyond the window."""
        if need <= size:
            return size
        grown = capacity_for(size + size // 2)
        if self._window is not None:
            grown = min(grown, largest_ring(self._window))
        return max(grown, capacity_for(need))

    def _empty(self, dimension: int, train: int, seen: int) -> Bank:
        return empty_bank(self._kernel, dimension, self._machines, train, seen, self._cache_bytes)

    def _move_to(self, new: Bank) -> None:
        """Copy all points to a larger bank, in ring order from the first slot of each ring."""
        old, points, training = self.bank, self._points(), self.training_slots()
        active = self._active_positions(training)
        rings = new.rows.rings
        rings[TRAIN_TAIL], rings[SEEN_TAIL] = len(training), self.n_observers
        self.bank = new
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
    """Return the largest capacity of a ring while at most `window` points are held."""
    return capacity_for(window + 1)


def capacity_for(n: int) -> int:
    """Return the smallest capacity for n points."""
    return -(-n // CAPACITY_GRANULE) * CAPACITY_GRANULE
