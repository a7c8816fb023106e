"""The state of several machines over one set of points, and what is done to it, compiled.

Every machine keeps F_i = sum_j beta_j k(x_j, x_i) for all points held, the observers included,
up to date through the solver's own steps, so a decision value F_i + b costs nothing.
"""

from typing import NamedTuple

import numpy as np

from online_svm._intrinsics import fma
from online_svm._jit import jit
from online_svm.kernels import Floats, Kernel, kernel_row, kernel_value
from online_svm.svm.lanes import LANES, add_to_lanes, sum_of_lanes
from online_svm.svm.rows import (
    FEW,
    SEEN_SIZE,
    SEEN_TAIL,
    TRAIN_SIZE,
    TRAIN_TAIL,
    Ints,
    Rows,
    empty_rows,
    fetch,
)
from online_svm.svm.solver import FLAT, intercept, maximise, snapped


class Bank(NamedTuple):
    """Points, labels and machines; T training slots, W slots in all, S machines.

    Attributes
    ----------
    rows : Rows
    codes : ndarray of shape (W,)
        Class of the point in each slot.
    arrival : ndarray of shape (W,)
        Its number in order of arrival.
    z, lower, upper, beta : ndarray of shape (S, T)
        Linear term (the label, +1 or -1), bounds and signed coefficients; 0 in a vacant slot.
    F : ndarray of shape (S, W)
    b : ndarray of shape (S,)
    before : ndarray of shape (S, T)
        Scratch: the coefficients that the F of the observers stands for.
    work : ndarray of shape (3, T)
        Scratch of the solver.
    """

    rows: Rows
    codes: Ints
    arrival: Ints
    z: Floats
    lower: Floats
    upper: Floats
    beta: Floats
    F: Floats
    b: Floats
    before: Floats
    work: Floats


def empty_bank(
    kernel: Kernel, dimension: int, machines: int, train: int, seen: int, cache_bytes: int
) -> Bank:
    """Return a bank without points, with room for `train` training points and `seen` observers."""
    return Bank(
        rows=empty_rows(kernel, dimension, train, seen, cache_bytes),
        codes=np.zeros(train + seen, dtype=np.int64),
        arrival=np.zeros(train + seen, dtype=np.int64),
        z=np.zeros((machines, train)),
        lower=np.zeros((machines, train)),
        upper=np.zeros((machines, train)),
        beta=np.zeros((machines, train)),
        F=np.zeros((machines, train + seen)),
        b=np.full(machines, -1.0),
        before=np.zeros((machines, train)),
        work=np.zeros((3, train)),
    )


@jit
def _add(F: Floats, change: float, row: Floats, first: int, stop: int) -> None:
    """Add `change` times a kernel row to a range of F."""
    target, source = F[first:stop], row[first:stop]
    for i in range(len(target)):
        target[i] = fma(change, np.float64(source[i]), target[i])


@jit
def _supports(beta: Floats, slot: int) -> bool:
    support = False
    for s in range(len(beta)):
        support = support or beta[s, slot] != 0.0
    return support


@jit
def _sum_by_support(rows: Rows, beta: Floats, F: Floats, slots: Ints, span: int) -> None:
    """Set F of the points in `slots` from the rows of the support vectors."""
    values = rows.values
    lanes = np.zeros((len(beta), len(slots), LANES))
    for j in range(span):
        if _supports(beta, j):
            place, lane = fetch(rows, j, 2), j % LANES
            for s in range(len(beta)):
                for i in range(len(slots)):
                    value = np.float64(values[place, slots[i]])
                    lanes[s, i, lane] = fma(beta[s, j], value, lanes[s, i, lane])
    for s in range(len(beta)):
        for i in range(len(slots)):
            F[s, slots[i]] = sum_of_lanes(lanes[s, i])


@jit
def _sum_by_point(rows: Rows, beta: Floats, F: Floats, slots: Ints, span: int) -> None:
    """Do what `_sum_by_support` does, in the same order, from the rows of the points."""
    lanes = np.empty(LANES)
    for slot in slots:
        kernel_row(rows.shape, rows.X, rows.points[slot], 0, span, rows.sums, rows.row)
        for s in range(len(beta)):
            lanes[:] = 0.0
            add_to_lanes(rows.row[:span], beta[s, :span], lanes)
            F[s, slot] = sum_of_lanes(lanes)


@jit
def sum_afresh(bank: Bank, slots: Ints) -> None:
    """Set F of the points in `slots` from the coefficients alone."""
    span = min(bank.rows.rings[TRAIN_TAIL], bank.rows.rings[TRAIN_SIZE])
    support = 0
    if len(slots) > FEW:
        for j in range(span):
            support += _supports(bank.beta, j)
    if len(slots) <= FEW or support > 4 * len(slots):
        _sum_by_point(bank.rows, bank.beta, bank.F, slots, span)
    else:  # the rows of the support vectors will be wanted anyway
        _sum_by_support(bank.rows, bank.beta, bank.F, slots, span)


@jit
def values_of(F: Floats, b: Floats, slots: Ints) -> Floats:
    """Return the decision values of the points in `slots`, shape (len(slots), S)."""
    values = np.empty((len(slots), len(b)))
    for i in range(len(slots)):
        for s in range(len(b)):
            values[i, s] = F[s, slots[i]] + b[s]
    return values


@jit
def arrive(bank: Bank, slots: Ints, X: Floats, codes: Ints, first: int) -> Floats:
    """Put new points, the first of them with arrival number `first`, into their slots.

    Returns
    -------
    values : ndarray of shape (m, S)
        Their decision values.
    """
    rows = bank.rows
    for i in range(len(slots)):
        slot = slots[i]
        for f in range(X.shape[1]):
            rows.X[f, slot] = X[i, f]
            rows.points[slot, f] = X[i, f]
        rows.diagonal[slot] = kernel_value(rows.shape, X[i], X[i])
        bank.codes[slot] = codes[i]
        bank.arrival[slot] = first + i
    sum_afresh(bank, slots)
    return values_of(bank.F, bank.b, slots)


@jit
def move(bank: Bank, source: Ints, target: Ints) -> None:
    """Copy what is known of points, apart from their part in training, to other slots."""
    rows = bank.rows
    for i in range(len(source)):
        old, new = source[i], target[i]
        for f in range(rows.X.shape[0]):
            rows.X[f, new] = rows.X[f, old]
            rows.points[new, f] = rows.points[old, f]
        rows.diagonal[new] = rows.diagonal[old]
        bank.codes[new] = bank.codes[old]
        bank.arrival[new] = bank.arrival[old]
        for s in range(len(bank.b)):
            bank.F[s, new] = bank.F[s, old]


@jit
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


@jit
def _recipient(
    slacks: Floats,
    beta: Floats,
    lower: Floats,
    upper: Floats,
    diagonal: Floats,
    row: Floats,
    slot: int,
    amount: float,
) -> tuple[int, float]:
    """Return who can best take over `amount` of the coefficient in `slot` (-1: nobody), and room.

    The best is the one that costs the objective least among those with room for all of it, or,
    if there is none, the one with the most room.
    """
    best, best_room, best_gain = -1, 0.0, 0.0
    size, sign = abs(amount), 1.0 if amount > 0.0 else -1.0
    for j in range(len(beta)):
        room = min(upper[j] - beta[j] if amount > 0.0 else beta[j] - lower[j], size)
        if room <= 0.0 or room < best_room or j == slot:
            continue
        curvature = max(diagonal[slot] + diagonal[j] - 2.0 * row[j], FLAT)
        gain = sign * slacks[j] - 0.5 * curvature * size
        if room > best_room or gain > best_gain:
            best, best_room, best_gain = j, room, gain
    return best, sign * best_room


@jit
def _clip_machine(bank: Bank, s: int, span: int) -> None:
    """Bring the coefficients of one machine within their bounds; others take over the excess."""
    rows, values = bank.rows, bank.rows.values
    beta, F, z = bank.beta[s, :span], bank.F[s], bank.z[s, :span]
    lower, upper, slacks = bank.lower[s, :span], bank.upper[s, :span], bank.work[0, :span]
    for slot in range(span):
        bound = min(max(beta[slot], lower[slot]), upper[slot])
        excess = beta[slot] - bound
        beta[slot] = bound
        while excess != 0.0:
            for i in range(span):
                slacks[i] = z[i] - F[i]
            place = fetch(rows, slot, 1)
            j, part = _recipient(
                slacks, beta, lower, upper, rows.diagonal, values[place], slot, excess
            )
            if j < 0:
                part = excess
            _add(F, -part, values[place], 0, span)
            if j >= 0:
                _add(F, part, values[fetch(rows, j, 1)], 0, span)
                beta[j] = snapped(beta[j] + part, lower[j], upper[j])
            excess -= part


@jit
def _update_observers(bank: Bank, span: int) -> None:
    """Bring F of the observers from the coefficients `before` to the present ones."""
    rows, beta, before, F = bank.rows, bank.beta, bank.before, bank.F
    values = rows.values
    first = rows.rings[TRAIN_SIZE]
    stop = first + min(rows.rings[SEEN_TAIL], rows.rings[SEEN_SIZE])
    for j in range(span):
        place = -1
        for s in range(len(beta)):
            change = beta[s, j] - before[s, j]
            if change != 0.0 and first < stop:
                if place < 0:
                    place = fetch(rows, j, 2)
                _add(F[s], change, values[place], first, stop)
            before[s, j] = beta[s, j]


@jit
def clip(bank: Bank) -> None:
    """Bring all coefficients within their bounds; points whose bounds are 0 may then leave."""
    span = min(bank.rows.rings[TRAIN_TAIL], bank.rows.rings[TRAIN_SIZE])
    for s in range(len(bank.b)):
        _clip_machine(bank, s, span)
    _update_observers(bank, span)


@jit
def _one_sided(z: Floats) -> float:
    """Return +1 or -1 if the training points of a machine are all of that side, else 0."""
    positive, negative = False, False
    for label in z:
        positive = positive or label > 0.0
        negative = negative or label < 0.0
    if positive and negative:
        return 0.0
    return 1.0 if positive else -1.0


@jit
def solve(bank: Bank, tol: float, max_steps: int) -> int:
    """Bring every machine to its optimum; return the pair steps taken."""
    span = min(bank.rows.rings[TRAIN_TAIL], bank.rows.rings[TRAIN_SIZE])
    total = 0
    for s in range(len(bank.b)):
        z, lower, upper = bank.z[s, :span], bank.lower[s, :span], bank.upper[s, :span]
        beta, F = bank.beta[s, :span], bank.F[s, :span]
        side = _one_sided(z)
        if side != 0.0:
            for j in range(span):
                beta[j] = 0.0
                bank.before[s, j] = 0.0
            for i in range(bank.F.shape[1]):
                bank.F[s, i] = 0.0
            bank.b[s] = side
            continue
        steps, highest, lowest = maximise(
            bank.rows, z, lower, upper, beta, F, tol, max_steps, bank.work
        )
        bank.b[s] = intercept(F, z, lower, upper, beta, highest, lowest)
        total += steps
    _update_observers(bank, span)
    return total
