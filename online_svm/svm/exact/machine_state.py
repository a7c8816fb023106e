"""The state of several machines over one set of points: coefficients, bounds and decision values.

Every machine keeps F_i = sum_j beta_j k(x_j, x_i) for all points held, the observers included,
up to date through the solver's own steps, so a decision value F_i + b costs nothing.
"""

from typing import NamedTuple

import numpy as np

from online_svm.compiled.intrinsics import fma
from online_svm.compiled.jit import inner, jit, making
from online_svm.compiled.kernels import Kernel, kernel_row
from online_svm.compiled.ordered_sums import LANES, add_to_lanes, sum_of_lanes, sum_rows_of_lanes
from online_svm.svm.exact.active_set import ActiveSet, empty_active
from online_svm.svm.exact.kernel_cache import (
    FEW,
    SEEN_SIZE,
    SEEN_TAIL,
    TRAIN_SIZE,
    TRAIN_TAIL,
    Rows,
    columns_since,
    empty_rows,
    fetch,
)
from online_svm.types import Floats, Ints, Values


class Bank(NamedTuple):
    """Points, labels and machines; T training slots, W slots in all, S machines.

    Attributes
    ----------
    rows : Rows
    codes : ndarray of shape (W,)
        Class of the point in each slot.
    arrival : ndarray of shape (W,)
        Its number in order of arrival.
    z, lower, upper : ndarray of shape (S, T)
        Linear term (the label, +1 or -1) and bounds; 0 in a vacant slot.
    weights : ndarray of shape (2S, T)
        Weights whose sums over kernel rows are kept: first `beta`, the signed coefficients, then
        `members`, 1.0 for those of the machine's common shift. Both are views of it.
    sums : ndarray of shape (2S, W)
        The sums over kernel rows by each of the weights: first `F`, then `R`.
    b : ndarray of shape (S,)
    before : ndarray of shape (S, T)
        Scratch: the coefficients that the F of the observers stands for.
    work : ndarray of shape (4, T)
        Scratch of the solver.
    active : ActiveSet
    """

    rows: Rows
    codes: Ints
    arrival: Ints
    z: Floats
    lower: Floats
    upper: Floats
    weights: Floats
    beta: Floats
    members: Floats
    sums: Floats
    F: Floats
    R: Floats
    b: Floats
    before: Floats
    work: Floats
    active: ActiveSet


def empty_bank(
    kernel: Kernel, dimension: int, machines: int, train: int, seen: int, cache_bytes: int
) -> Bank:
    """Return a bank without points, with room for `train` training points and `seen` observers."""
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


@inner
def add_row(F: Floats, change: float, row: Floats, first: int, stop: int) -> None:
    """Add `change` times a kernel row to a range of F."""
    target, source = F[first:stop], row[first:stop]
    for i in range(len(target)):
        target[i] = fma(change, np.float64(source[i]), target[i])


@inner
def _has_weight(weights: Floats, slot: int) -> bool:
    found = False
    for w in range(len(weights)):
        found = found or weights[w, slot] != 0.0
    return found


@inner
def _add_to_lane(lane: Floats, weight: float, row: Values, ranges: Ints) -> None:
    """Add `weight` times the columns of a kernel row in `ranges`, one range after the other."""
    at = 0
    for r in range(len(ranges)):
        source = row[ranges[r, 0] : ranges[r, 1]]
        target = lane[at : at + len(source)]
        for i in range(len(target)):
            target[i] = fma(weight, np.float64(source[i]), target[i])
        at += len(source)


@making
def _sum_by_support(rows: Rows, weights: Floats, sums: Floats, ranges: Ints, span: int) -> None:
    """Set the sums of the points in `ranges` from the rows of those that have weight."""
    # 1. Add the row of each support vector, to its lane.
    lanes = np.zeros((len(weights), LANES, int((ranges[:, 1] - ranges[:, 0]).sum())))
    for j in range(span):
        if _has_weight(weights, j):
            row = rows.values[fetch(rows, j, 2)]
            for w in range(len(weights)):
                if weights[w, j] != 0.0:
                    _add_to_lane(lanes[w, j % LANES], weights[w, j], row, ranges)
    # 2. Sum over the lanes.
    for w in range(len(weights)):
        sum_rows_of_lanes(lanes[w])
        at = 0
        for r in range(len(ranges)):
            for slot in range(ranges[r, 0], ranges[r, 1]):
                sums[w, slot] = lanes[w, 0, at]
                at += 1


@making
def _sum_by_point(rows: Rows, weights: Floats, sums: Floats, ranges: Ints, span: int) -> None:
    """Do what `_sum_by_support` does, in the same order, from the rows of the points."""
    lanes = np.empty(LANES)
    for r in range(len(ranges)):
        for slot in range(ranges[r, 0], ranges[r, 1]):
            row = rows.row
            if slot < rows.rings[TRAIN_SIZE]:  # its row will be wanted as a column of the others
                row = rows.values[fetch(rows, slot, 1)]
            else:
                kernel_row(rows.shape, rows.X, rows.points[slot], 0, span, rows.sums, row)
            for w in range(len(weights)):
                lanes[:] = 0.0
                add_to_lanes(row[:span], weights[w, :span], lanes)
                sums[w, slot] = sum_of_lanes(lanes)


@making
def sum_afresh(bank: Bank, first_training: int, first_observer: int) -> None:
    """Set F and R of the points from these ordinals on from coefficients and members alone."""
    rings = bank.rows.rings
    ranges = columns_since(rings, first_training, first_observer)
    count = rings[TRAIN_TAIL] - first_training + rings[SEEN_TAIL] - first_observer
    span = min(rings[TRAIN_TAIL], rings[TRAIN_SIZE])
    support = 0
    if count > FEW:
        for j in range(span):
            support += _has_weight(bank.weights, j)
    if count <= FEW or support > 4 * count:
        _sum_by_point(bank.rows, bank.weights, bank.sums, ranges, span)
    else:  # the rows of the support vectors will be wanted anyway
        _sum_by_support(bank.rows, bank.weights, bank.sums, ranges, span)


@making
def ring_values(bank: Bank, ring: int) -> Floats:
    """Return the decision values of the points of a ring, 0 or 1, oldest first."""
    rings, F, b = bank.rows.rings, bank.F, bank.b
    head, tail, size = rings[3 * ring], rings[3 * ring + 1], rings[3 * ring + 2]
    values, offset = np.empty((tail - head, len(b))), ring * rings[TRAIN_SIZE]
    for s in range(len(b)):
        slot = head % size
        for i in range(tail - head):
            values[i, s] = F[s, offset + slot] + b[s]
            slot = slot + 1 if slot + 1 < size else 0
    return values


@jit
def values_of(F: Floats, b: Floats, slots: Ints) -> Floats:
    """Return the decision values of the points in `slots`, shape (len(slots), S)."""
    values = np.empty((len(slots), len(b)))
    for i in range(len(slots)):
        for s in range(len(b)):
            values[i, s] = F[s, slots[i]] + b[s]
    return values


@inner
def set_bounds(bank: Bank, slots: Ints, penalties: Floats) -> None:
    """Give training points their labels and bounds in every machine."""
    machines = len(bank.b)
    first = 1 if machines == 1 else 0
    for slot in slots:
        penalty = penalties[bank.codes[slot]]
        for s in range(machines):
            positive = bank.codes[slot] == s + first
            bank.z[s, slot] = 1.0 if positive else -1.0
            bank.lower[s, slot] = 0.0 if positive else -penalty
            bank.upper[s, slot] = penalty if positive else 0.0


@inner
def spans(rows: Rows) -> tuple[int, int, int]:
    """Return the end of the training slots in use, and the first and the end of the observers'."""
    train, seen = rows.rings[TRAIN_SIZE], rows.rings[SEEN_SIZE]
    return (
        min(rows.rings[TRAIN_TAIL], train),
        train,
        train + min(rows.rings[SEEN_TAIL], seen),
    )


@inner
def update_observers(bank: Bank) -> None:
    """Bring F of the observers from the coefficients `before` to the present ones."""
    rows, beta, before, F = bank.rows, bank.beta, bank.before, bank.F
    values = rows.values
    span, first, stop = spans(rows)
    for j in range(span):
        place = -1
        for s in range(len(beta)):
            change = beta[s, j] - before[s, j]
            if change != 0.0 and first < stop:
                if place < 0:
                    place = fetch(rows, j, 2)
                add_row(F[s], change, values[place], first, stop)
            before[s, j] = beta[s, j]


@inner
def set_member(bank: Bank, s: int, slot: int, member: bool) -> None:
    """Let a training point join or leave the members of a machine's common shift."""
    rows = bank.rows
    row = rows.values[fetch(rows, slot, 2)]
    bank.members[s, slot] = 1.0 if member else 0.0
    change = 1.0 if member else -1.0
    span, first, stop = spans(rows)
    add_row(bank.R[s], change, row, 0, span)
    add_row(bank.R[s], change, row, first, stop)
