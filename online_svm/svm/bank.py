"""The state of several machines over one set of points, and what is done to it, compiled.

Every machine keeps F_i = sum_j beta_j k(x_j, x_i) for all points held, the observers included,
up to date through the solver's own steps, so a decision value F_i + b costs nothing.
"""

from typing import NamedTuple

import numpy as np

from online_svm._intrinsics import fma
from online_svm._jit import jit
from online_svm.kernels import Floats, Kernel, kernel_diagonal, kernel_row
from online_svm.svm.rows import (
    SEEN_HEAD,
    SEEN_SIZE,
    SEEN_TAIL,
    TRAIN_HEAD,
    TRAIN_SIZE,
    TRAIN_TAIL,
    Ints,
    Rows,
    drop_row,
    empty_rows,
    train_row,
    whole_row,
)
from online_svm.svm.solver import FLAT, intercept, minimise

# Entries of `Bank.counters`.
ARRIVALS, STEPS_SINCE_REFRESH, STEPS = range(3)

# F is summed afresh after this many pair steps: each adds at most two roundings of F, so the
# drift stays below 1e-9 of the largest F.
REFRESH_STEPS = 1_000_000


class Bank(NamedTuple):
    """Points, labels and machines; T training slots, W slots in all, S machines, K classes.

    Attributes
    ----------
    rows : Rows
    codes : ndarray of shape (W,)
        Class of the point in each slot.
    arrival : ndarray of shape (W,)
        Its number in order of arrival.
    penalties : ndarray of shape (K,)
        Upper bound of alpha for the examples of each class.
    z, lower, upper, beta : ndarray of shape (S, T)
        Linear term (the label, +1 or -1), bounds and signed coefficients; 0 in a vacant slot.
    F : ndarray of shape (S, W)
    b : ndarray of shape (S,)
    counters : ndarray of shape (3,)
        Points that ever arrived; pair steps since F was summed afresh; pair steps in all.
    before : ndarray of shape (T,)
        Scratch: the coefficients that the F of the observers stands for.
    work : ndarray of shape (3, T)
        Scratch of the solver.
    """

    rows: Rows
    codes: Ints
    arrival: Ints
    penalties: Floats
    z: Floats
    lower: Floats
    upper: Floats
    beta: Floats
    F: Floats
    b: Floats
    counters: Ints
    before: Floats
    work: Floats


def empty_bank(
    kernel: Kernel, dimension: int, penalties: Floats, train: int, seen: int, cache_bytes: int
) -> Bank:
    """Return a bank without points: one machine for two classes, else one a class."""
    machines = 1 if len(penalties) == 2 else len(penalties)
    width = train + seen
    return Bank(
        rows=empty_rows(kernel, dimension, train, seen, cache_bytes),
        codes=np.zeros(width, dtype=np.int64),
        arrival=np.zeros(width, dtype=np.int64),
        penalties=np.array(penalties, dtype=np.float64),
        z=np.zeros((machines, train)),
        lower=np.zeros((machines, train)),
        upper=np.zeros((machines, train)),
        beta=np.zeros((machines, train)),
        F=np.zeros((machines, width)),
        b=np.zeros(machines),
        counters=np.zeros(3, dtype=np.int64),
        before=np.zeros(train),
        work=np.zeros((3, train)),
    )


@jit
def train_span(bank: Bank) -> int:
    """Return the number of training slots in use, vacated ones among them."""
    return int(min(bank.rows.rings[TRAIN_TAIL], bank.rows.rings[TRAIN_SIZE]))


@jit
def _seen_span(bank: Bank) -> int:
    return int(min(bank.rows.rings[SEEN_TAIL], bank.rows.rings[SEEN_SIZE]))


@jit
def _train_slot(bank: Bank, ordinal: int) -> int:
    return int(ordinal % bank.rows.rings[TRAIN_SIZE])


@jit
def _seen_slot(bank: Bank, ordinal: int) -> int:
    return int(bank.rows.rings[TRAIN_SIZE] + ordinal % bank.rows.rings[SEEN_SIZE])


@jit
def _set_bounds(bank: Bank, slot: int) -> None:
    code = bank.codes[slot]
    machines = len(bank.b)
    positive = 1 if machines == 1 else 0
    for s in range(machines):
        is_positive = code == s + positive
        penalty = bank.penalties[code]
        bank.z[s, slot] = 1.0 if is_positive else -1.0
        bank.lower[s, slot] = 0.0 if is_positive else -penalty
        bank.upper[s, slot] = penalty if is_positive else 0.0


@jit
def set_up(bank: Bank, slots: Ints) -> None:
    """Derive bounds and diagonals from points and classes restored to training `slots`."""
    rows = bank.rows
    for slot in range(len(bank.codes)):
        rows.diagonal[slot] = kernel_diagonal(rows.shape, np.copy(rows.X[:, slot]))
    for slot in slots:
        _set_bounds(bank, slot)


@jit
def _vacate(bank: Bank, slot: int) -> None:
    for s in range(len(bank.b)):
        bank.z[s, slot] = 0.0
        bank.lower[s, slot] = 0.0
        bank.upper[s, slot] = 0.0
        bank.beta[s, slot] = 0.0
    drop_row(bank.rows, slot)


@jit
def _is_support(bank: Bank, slot: int) -> bool:
    support = False
    for s in range(len(bank.b)):
        support = support or bank.beta[s, slot] != 0.0
    return support


@jit
def _support_count(bank: Bank) -> int:
    count = 0
    for slot in range(train_span(bank)):
        count += _is_support(bank, slot)
    return count


@jit
def _sum_into(bank: Bank, slots: Ints) -> None:
    """Add up F of the points in `slots`, whose F is 0: over the support vectors in slot order."""
    for j in range(train_span(bank)):
        if not _is_support(bank, j):
            continue
        row = bank.rows.values[whole_row(bank.rows, j)]
        for s in range(len(bank.b)):
            coefficient, F = bank.beta[s, j], bank.F[s]
            for slot in slots:
                F[slot] = fma(coefficient, row[slot], F[slot])


@jit
def _sum_one(bank: Bank, slot: int) -> None:
    """Do what `_sum_into` does, in the same order, from the row of the new point itself."""
    rows = bank.rows
    span = train_span(bank)
    if slot < rows.rings[TRAIN_SIZE]:
        row = rows.values[train_row(rows, slot)]
    else:
        row = bank.work[0]
        kernel_row(rows.shape, rows.X, np.copy(rows.X[:, slot]), 0, span, row)
    for s in range(len(bank.b)):
        beta = bank.beta[s]
        total = 0.0
        for j in range(span):
            total = fma(beta[j], row[j], total)
        bank.F[s, slot] = total


@jit
def _sum_new(bank: Bank, slots: Ints) -> None:
    support = _support_count(bank)
    if 4 * len(slots) > support:  # then it is cheaper to lengthen the support vectors' rows
        if support:
            _sum_into(bank, slots)
        return
    for slot in slots:
        _sum_one(bank, slot)


@jit
def arrive(bank: Bank, X: Floats, codes: Ints, training: np.ndarray) -> Ints:
    """Add points, shape (m, d), each as a training point or an observer; return their slots."""
    rows = bank.rows
    slots = np.empty(len(X), dtype=np.int64)
    for i in range(len(X)):
        if training[i]:
            slot = _train_slot(bank, rows.rings[TRAIN_TAIL])
            rows.rings[TRAIN_TAIL] += 1
        else:
            slot = _seen_slot(bank, rows.rings[SEEN_TAIL])
            rows.rings[SEEN_TAIL] += 1
        slots[i] = slot
        for f in range(len(rows.x)):
            rows.X[f, slot] = X[i, f]
        rows.diagonal[slot] = kernel_diagonal(rows.shape, X[i])
        bank.codes[slot] = codes[i]
        bank.arrival[slot] = bank.counters[ARRIVALS]
        bank.counters[ARRIVALS] += 1
        for s in range(len(bank.b)):
            bank.F[s, slot] = 0.0
        if training[i]:
            _set_bounds(bank, slot)
    _sum_new(bank, slots)
    return slots


@jit
def promote(bank: Bank, count: int) -> None:
    """Make the oldest observers training points."""
    rows = bank.rows
    for _ in range(count):
        old = _seen_slot(bank, rows.rings[SEEN_HEAD])
        new = _train_slot(bank, rows.rings[TRAIN_TAIL])
        rows.rings[SEEN_HEAD] += 1
        rows.rings[TRAIN_TAIL] += 1
        for f in range(len(rows.x)):
            rows.X[f, new] = rows.X[f, old]
        rows.diagonal[new] = rows.diagonal[old]
        bank.codes[new] = bank.codes[old]
        bank.arrival[new] = bank.arrival[old]
        for s in range(len(bank.b)):
            bank.F[s, new] = bank.F[s, old]
        _set_bounds(bank, new)


@jit
def _recipient(bank: Bank, s: int, slot: int, amount: float) -> int:
    """Return who can best take over `amount` of the coefficient in `slot`; -1 if nobody can.

    The best is the one that costs the objective least among those with room for all of it, or,
    if there is none, the one with the most room.
    """
    rows = bank.rows
    row = rows.values[train_row(rows, slot)]
    best, best_room, best_gain = -1, 0.0, 0.0
    for j in range(train_span(bank)):
        beta = bank.beta[s, j]
        room = bank.upper[s, j] - beta if amount > 0.0 else beta - bank.lower[s, j]
        if room <= 0.0 or j == slot:
            continue
        room = min(room, abs(amount))
        if room < best_room:
            continue
        slack = bank.z[s, j] - bank.F[s, j]
        curvature = max(rows.diagonal[slot] + rows.diagonal[j] - 2.0 * row[j], FLAT)
        gain = (slack if amount > 0.0 else -slack) - 0.5 * curvature * abs(amount)
        if room > best_room or gain > best_gain:
            best, best_room, best_gain = j, room, gain
    return best


@jit
def _release(bank: Bank, s: int, slot: int, amount: float) -> None:
    """Take `amount` off the coefficient in `slot` and give it to others: the sum stays."""
    while amount != 0.0:
        j = _recipient(bank, s, slot, amount)
        if j < 0:
            room = 0.0
        elif amount > 0.0:
            room = bank.upper[s, j] - bank.beta[s, j]
        else:
            room = bank.lower[s, j] - bank.beta[s, j]
        part = amount if j < 0 or abs(amount) <= abs(room) else room
        _shift(bank, s, slot, -part)
        if j >= 0:
            _shift(bank, s, j, part)
            if part == room:
                bank.beta[s, j] = bank.upper[s, j] if amount > 0.0 else bank.lower[s, j]
        amount -= part


@jit
def _shift(bank: Bank, s: int, slot: int, change: float) -> None:
    """Change one coefficient, and F of the training points with it."""
    span = train_span(bank)
    row = bank.rows.values[train_row(bank.rows, slot)][:span]
    F = bank.F[s, :span]
    bank.beta[s, slot] += change
    for i in range(span):
        F[i] = fma(change, row[i], F[i])


@jit
def _observe(bank: Bank, s: int, slot: int, change: float) -> None:
    """Change F of the observers for a coefficient that changed."""
    first = bank.rows.rings[TRAIN_SIZE]
    stop = first + _seen_span(bank)
    if change == 0.0 or first == stop:
        return
    row = bank.rows.values[whole_row(bank.rows, slot)][first:stop]
    F = bank.F[s, first:stop]
    for i in range(len(F)):
        F[i] = fma(change, row[i], F[i])


@jit
def _observe_all(bank: Bank, s: int) -> None:
    for j in range(train_span(bank)):
        _observe(bank, s, j, bank.beta[s, j] - bank.before[j])


@jit
def _forget_machine(bank: Bank, s: int, leaving: int) -> None:
    """Take the oldest training points out of one machine, and keep the rest of its solution."""
    head = bank.rows.rings[TRAIN_HEAD]
    bank.before[:] = bank.beta[s]
    for ordinal in range(head, head + leaving):
        slot = _train_slot(bank, ordinal)
        bank.lower[s, slot] = 0.0  # nothing may be given to a point that leaves
        bank.upper[s, slot] = 0.0
    for ordinal in range(head, head + leaving):
        slot = _train_slot(bank, ordinal)
        _release(bank, s, slot, bank.beta[s, slot])
        bank.beta[s, slot] = 0.0
    _observe_all(bank, s)


@jit
def forget(bank: Bank, count: int) -> None:
    """Let the `count` points that arrived first leave."""
    rings = bank.rows.rings
    train, seen = 0, 0
    for _ in range(count):
        first_train, first_seen = rings[TRAIN_HEAD] + train, rings[SEEN_HEAD] + seen
        if first_seen == rings[SEEN_TAIL]:
            train += 1
        elif first_train == rings[TRAIN_TAIL]:
            seen += 1
        elif (
            bank.arrival[_train_slot(bank, first_train)]
            < bank.arrival[_seen_slot(bank, first_seen)]
        ):
            train += 1
        else:
            seen += 1
    rings[SEEN_HEAD] += seen
    for s in range(len(bank.b)):
        _forget_machine(bank, s, train)
    for _ in range(train):
        _vacate(bank, _train_slot(bank, rings[TRAIN_HEAD]))
        rings[TRAIN_HEAD] += 1


@jit
def set_penalties(bank: Bank, penalties: Floats) -> None:
    """Change the upper bounds; coefficients above the new ones are cut, the excess passed on."""
    bank.penalties[:] = penalties
    rings = bank.rows.rings
    for ordinal in range(rings[TRAIN_HEAD], rings[TRAIN_TAIL]):
        _set_bounds(bank, _train_slot(bank, ordinal))
    for s in range(len(bank.b)):
        bank.before[:] = bank.beta[s]
        for slot in range(train_span(bank)):
            beta = bank.beta[s, slot]
            bound = min(max(beta, bank.lower[s, slot]), bank.upper[s, slot])
            if beta != bound:
                _release(bank, s, slot, beta - bound)
                bank.beta[s, slot] = bound
        _observe_all(bank, s)


@jit
def _refresh(bank: Bank) -> None:
    """Sum F of every point held afresh, so that roundings cannot pile up."""
    rings = bank.rows.rings
    bank.F[:] = 0.0
    train = rings[TRAIN_TAIL] - rings[TRAIN_HEAD]
    seen = rings[SEEN_TAIL] - rings[SEEN_HEAD]
    slots = np.empty(train + seen, dtype=np.int64)
    for i in range(train):
        slots[i] = _train_slot(bank, rings[TRAIN_HEAD] + i)
    for i in range(seen):
        slots[train + i] = _seen_slot(bank, rings[SEEN_HEAD] + i)
    _sum_into(bank, slots)
    bank.counters[STEPS_SINCE_REFRESH] = 0


@jit
def _one_sided(bank: Bank, s: int) -> float:
    """Return +1 or -1 if the training points of a machine are all of that side, else 0."""
    positive, negative = False, False
    for slot in range(train_span(bank)):
        positive = positive or bank.z[s, slot] > 0.0
        negative = negative or bank.z[s, slot] < 0.0
    if positive and negative:
        return 0.0
    return 1.0 if positive else -1.0


@jit
def _solve_machine(bank: Bank, s: int, tol: float, max_steps: int) -> int:
    side = _one_sided(bank, s)
    if side != 0.0:
        bank.beta[s] = 0.0
        bank.F[s] = 0.0
        bank.b[s] = side
        return 0
    span = train_span(bank)
    z, lower, upper = bank.z[s, :span], bank.lower[s, :span], bank.upper[s, :span]
    beta, F = bank.beta[s, :span], bank.F[s, :span]
    bank.before[:] = bank.beta[s]
    work = bank.work[:, :span]
    steps, highest, lowest = minimise(bank.rows, z, lower, upper, beta, F, tol, max_steps, work)
    bank.b[s] = intercept(F, z, lower, upper, beta, highest, lowest)
    _observe_all(bank, s)
    return steps


@jit
def solve(bank: Bank, tol: float, max_steps: int) -> int:
    """Bring every machine to its optimum; return the pair steps taken."""
    if bank.counters[STEPS_SINCE_REFRESH] > REFRESH_STEPS:
        _refresh(bank)
    steps = 0
    for s in range(len(bank.b)):
        steps += _solve_machine(bank, s, tol, max_steps)
    bank.counters[STEPS_SINCE_REFRESH] += steps
    bank.counters[STEPS] += steps
    return steps


@jit
def values_of(bank: Bank, slots: Ints) -> Floats:
    """Return the decision values of the points in `slots`, shape (len(slots), S)."""
    values = np.empty((len(slots), len(bank.b)))
    for i in range(len(slots)):
        for s in range(len(bank.b)):
            values[i, s] = bank.F[s, slots[i]] + bank.b[s]
    return values


@jit
def observer_values(bank: Bank) -> Floats:
    """Return the decision values of the observers in order of arrival, shape (n, S)."""
    rings = bank.rows.rings
    slots = np.empty(rings[SEEN_TAIL] - rings[SEEN_HEAD], dtype=np.int64)
    for i in range(len(slots)):
        slots[i] = _seen_slot(bank, rings[SEEN_HEAD] + i)
    return values_of(bank, slots)
