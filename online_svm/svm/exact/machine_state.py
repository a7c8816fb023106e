"""The state of several machines over one set of points: kernel rows, coefficients, decision values.

The rows of the kernel matrix are cached (`kernel_cache.h`), over a ring of training points and a
ring of observers: points that have a decision value but do not train. Every machine keeps
F_i = sum_j beta_j k(x_j, x_i) of all points, observers included. The solver's own steps update F,
so a decision value F_i + b costs nothing. Points are added and removed incrementally: a new point
has coefficient zero, and F by the last solution; the solution without a point starts from the
present one. Active sets (shrinking) are described in `active_set.h`.
"""

import math
from typing import NamedTuple

import numpy as np

from online_svm.compiled.kernel import kernel
from online_svm.compiled.kernels import Kernel, Shape
from online_svm.compiled.ordered_sums import LANES
from online_svm.types import Bools, Floats, Ints, Values

MEGABYTE = 1 << 20

# Entries of `Rows.rings`.
TRAIN_HEAD, TRAIN_TAIL, TRAIN_SIZE, SEEN_HEAD, SEEN_TAIL, SEEN_SIZE, CLOCK = range(7)


class Rows(NamedTuple):
    """Points and the cached rows of their kernel matrix: plain arrays, for compiled code."""

    shape: Shape  # `Kernel.shape`
    X: Floats  # shape (d, n_slots): the points, feature-major
    points: Floats  # shape (n_slots, d): the points again, point-major
    diagonal: Floats  # shape (n_slots,)
    values: Values  # shape (n_rows, n_slots): cached rows
    row_of: Ints  # shape (n_slots,): index of the cached row of a slot; -1 if it is not cached
    owner: Ints  # shape (n_rows,): slot of each cached row; -1 if free
    # shape (n_rows,): clock of the last use; the row with the smallest is replaced first
    used: Ints
    # shape (n_rows, 2): ordinals of the first training point and the first observer whose columns
    # are not computed
    known: Ints
    # shape (7,): for each ring the ordinal of the oldest point, the ordinal of the next point, and
    # the capacity; then a clock. The point with ordinal q is in slot q mod capacity of its ring.
    rings: Ints
    row: Values  # shape (n_slots,): scratch for a row that is not cached


def empty_rows(kernel: Kernel, dimension: int, train: int, seen: int, cache_bytes: int) -> Rows:
    """Return empty rings for `train` training points and `seen` observers, and an empty cache."""
    width = train + seen
    itemsize = np.dtype(kernel.dtype).itemsize
    n_rows = max(2, min(train, cache_bytes // (itemsize * width)))  # a solver step needs two
    rings = np.zeros(7, dtype=np.int64)
    rings[TRAIN_SIZE], rings[SEEN_SIZE] = train, seen
    return Rows(
        shape=kernel.shape,
        X=np.zeros((dimension, width)),
        points=np.zeros((width, dimension)),
        diagonal=np.zeros(width),
        # np.zeros, because kernels read vacant slots, and pages never touched cost no memory.
        values=np.zeros((n_rows, width), dtype=kernel.dtype),
        row_of=np.full(width, -1, dtype=np.int64),
        owner=np.full(n_rows, -1, dtype=np.int64),
        used=np.full(n_rows, -1, dtype=np.int64),
        known=np.zeros((n_rows, 2), dtype=np.int64),
        rings=rings,
        row=np.zeros(width, dtype=kernel.dtype),
    )


MAX_MATRIX_BYTES = 64 << 20  # kernel matrices of all machines together
MAX_PLACES = 4096  # the number of places that a key of `packed_search.h` distinguishes
# Extra columns, because kernels read whole vectors, and rows a power of two apart would share cache
# sets.
PADDING = 16
INITIAL_MARGIN = 0.05  # adapts: see `active_set_solver.h`
VACANT = -1

# Entries of `ActiveSet.counts`.
SIZE, FITS, CHECKED = range(3)


class ActiveSet(NamedTuple):
    """The active sets of S machines over T training slots, with at most A places each."""

    K: Values  # shape (S, A, A + padding): kernel values between the active variables
    slots: Ints  # shape (S, A): slot of the variable in each place; VACANT if there is none
    place: Ints  # shape (S, T): place of the variable in each slot; VACANT if it is not active
    # shape (S, 3): number of leading places that include all used ones; whether all variables that
    # should be active have a place; ordinal of the first training point added since the set was
    # last assessed
    counts: Ints
    # shape (S, 1): a variable becomes active if its slack is within the margin of violating
    # optimality
    margin: Floats
    bounds: Floats  # shape (4, A): scratch for bounds, coefficients and their changes
    slacks: Values  # shape (3, A + padding): scratch for slacks and diagonal
    chosen: Ints  # shape (2, A): scratch for slots and places


def n_places(kernel: Kernel, machines: int, train: int) -> int:
    """Return the number of places of an active set: at most half of the training slots."""
    n_values = MAX_MATRIX_BYTES / machines / np.dtype(kernel.dtype).itemsize
    return max(2, min(train // 2, int(math.sqrt(n_values)) - PADDING, MAX_PLACES))


def empty_active(kernel: Kernel, machines: int, train: int) -> ActiveSet:
    """Return empty active sets."""
    places = n_places(kernel, machines, train)
    return ActiveSet(
        # np.zeros, because pages never touched cost no memory.
        K=np.zeros((machines, places, places + PADDING), dtype=kernel.dtype),
        slots=np.full((machines, places), VACANT, dtype=np.int64),
        place=np.full((machines, train), VACANT, dtype=np.int64),
        counts=np.zeros((machines, 3), dtype=np.int64),
        margin=np.full((machines, 1), INITIAL_MARGIN),
        bounds=np.zeros((4, places)),
        slacks=np.zeros((3, places + PADDING), dtype=kernel.dtype),
        chosen=np.zeros((2, places), dtype=np.int64),
    )


@kernel
def restore_active(active: ActiveSet, rows: Rows, slots: Ints) -> None:
    """Put the training points of `slots`, shape (S, size), in the places with the same indices."""


class Bank(NamedTuple):
    """Points, labels and machines; T training slots, W slots in all, S machines."""

    rows: Rows
    codes: Ints  # shape (W,): class of the point in each slot
    arrival: Ints  # shape (W,): arrival number of the point
    z: Floats  # shape (S, T): linear term: the label, +1 or -1; 0 in a vacant slot
    lower: Floats  # shape (S, T): bounds of the coefficients; 0 in a vacant slot
    upper: Floats
    weights: Floats  # shape (2S, T): `beta`, then `members`, which are views of it
    beta: Floats  # shape (S, T): the signed coefficients
    members: Floats  # shape (S, T): 1.0 for members of the machine's common shift, else 0.0
    # shape (2S, W): sums of kernel rows with these weights: `F`, then `R`, which are views of it
    sums: Floats
    F: Floats
    R: Floats
    b: Floats  # shape (S,)
    before: Floats  # shape (S, T): the coefficients that the F of the observers is based on
    work: Floats  # shape (4, T): scratch of the solver
    active: ActiveSet


def empty_bank(
    kernel: Kernel, dimension: int, machines: int, train: int, seen: int, cache_bytes: int
) -> Bank:
    """Return an empty bank for `train` training points and `seen` observers."""
    weights, sums = np.zeros((2 * machines, train)), np.zeros((2 * machines, train + seen))
    return Bank(
        rows=empty_rows(kernel, dimension, train, seen, cache_bytes),
        codes=np.zeros(train + seen, dtype=np.int64),
        arrival=np.zeros(train + seen, dtype=np.int64),
        z=np.zeros((machines, train)),
        lower=np.zeros((machines, train)),
        upper=np.zeros((machines, train)),
        weights=weights,
        beta=weights[:machines],
        members=weights[machines:],
        sums=sums,
        F=sums[:machines],
        R=sums[machines:],
        b=np.full(machines, -1.0),
        before=np.zeros((machines, train)),
        work=np.zeros((4, train)),
        active=empty_active(kernel, machines, train),
    )


def lanes_for(bank: Bank, count: int) -> Floats:
    """Return scratch for summing F and R of `count` points, shape (2S, LANES, count)."""
    return np.empty((len(bank.sums), LANES, count))


def sum_afresh(bank: Bank) -> None:
    """Recompute F and R of all points from coefficients and members alone."""
    head, tail, _, seen_head, seen_tail, _, _ = bank.rows.rings.tolist()
    _sum_afresh(bank, lanes_for(bank, tail - head + seen_tail - seen_head))


@kernel
def _sum_afresh(bank: Bank, lanes: Floats) -> None:
    """Implement `sum_afresh` with scratch."""


def ring_values(bank: Bank, observers: bool) -> Floats:
    """Return decision values of the observers or the training points, (n, S), oldest first."""
    head, tail = bank.rows.rings[3:5].tolist() if observers else bank.rows.rings[:2].tolist()
    values = np.empty((tail - head, len(bank.b)))
    _ring_values(bank, observers, values)
    return values


@kernel
def _ring_values(bank: Bank, observers: bool, values: Floats) -> None:
    """Write the decision values of a ring."""


def values_of(F: Floats, b: Floats, slots: Ints) -> Floats:
    """Return the decision values of the points in `slots`, shape (len(slots), S).

    F has shape (S, W), b (S,) and slots (n,).
    """
    values = np.empty((len(slots), len(b)))
    _values_of(F, b, slots, values)
    return values


@kernel
def _values_of(F: Floats, b: Floats, slots: Ints, values: Floats) -> None:
    """Write the decision values of the points in `slots`."""


@kernel
def set_bounds(bank: Bank, slots: Ints, penalties: Floats) -> None:
    """Set the labels and bounds of the training points in `slots` in every machine.

    `penalties` has shape (n_classes,).
    """


@kernel
def count_training(codes: Ints, training: Bools, n_classes: int) -> int:
    """Return how many of the new points train; -1 if a code is not a class."""


def arrive(
    bank: Bank, X: Floats, codes: Ints, training: Bools, first: int, penalties: Floats
) -> Floats:
    """Append new points to their rings, which must have room; return their decision values, (m, S).

    `first` is the arrival number of the first point.
    """
    values = np.empty((len(X), len(bank.b)))
    points = X, codes, training
    _arrive(bank, points, first, penalties, lanes_for(bank, len(X)), values)
    return values


@kernel
def _arrive(
    bank: Bank,
    points: tuple[Floats, Ints, Bools],
    first: int,
    penalties: Floats,
    lanes: Floats,
    values: Floats,
) -> None:
    """Implement `arrive` with scratch; write the decision values to `values`."""


@kernel
def promote(bank: Bank, count: int, penalties: Floats) -> None:
    """Move the `count` oldest observers to the end of the training ring, which must have room.

    `penalties` has shape (n_classes,).
    """


@kernel
def clip(bank: Bank, slots: Ints) -> None:
    """Clip the coefficients in `slots`, shape (n,), to their bounds, and update F."""


def forget_training(bank: Bank, count: int) -> None:
    """Remove the `count` oldest training points; other variables absorb their coefficients."""
    _forget_training(bank, np.empty(count, dtype=np.int64))


@kernel
def _forget_training(bank: Bank, slots: Ints) -> None:
    """Remove the len(slots) oldest training points, and write their slots to `slots`."""


@kernel
def solve(bank: Bank, tol: float, max_steps: int) -> int:
    """Bring every machine to its optimum; return the pair steps taken.

    No pair then violates optimality by `tol`. `max_steps` limits the steps of one machine.
    """
