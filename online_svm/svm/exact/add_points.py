"""Incremental add: new points come in with coefficient zero, and with F by the last solution."""

import numpy as np

from online_svm.compiled.jit import jit, making
from online_svm.compiled.kernels import kernel_value
from online_svm.svm.exact.kernel_cache import (
    SEEN_HEAD,
    SEEN_SIZE,
    SEEN_TAIL,
    TRAIN_SIZE,
    TRAIN_TAIL,
    take_slot,
)
from online_svm.svm.exact.machine_state import Bank, set_bounds, sum_afresh, values_of
from online_svm.types import Bools, Floats, Ints


@jit
def count_training(codes: Ints, training: Bools, n_classes: int) -> int:
    """Return how many of new points train; -1 if a code is no class."""
    trains = 0
    for i in range(len(codes)):
        if not 0 <= codes[i] < n_classes:
            return -1
        trains += training[i]
    return trains


@making
def arrive(
    bank: Bank, X: Floats, codes: Ints, training: Bools, first: int, penalties: Floats
) -> Floats:
    """Put new points, the first of them with arrival number `first`, at the ends of their rings.

    Returns
    -------
    values : ndarray of shape (m, S)
        Their decision values.
    """
    # 1. A slot for each point, at the end of its ring.
    rows, rings, slots = bank.rows, bank.rows.rings, np.empty(len(codes), dtype=np.int64)
    first_training, first_observer = rings[TRAIN_TAIL], rings[SEEN_TAIL]
    for i in range(len(slots)):
        slots[i] = slot = take_slot(rings, TRAIN_TAIL if training[i] else SEEN_TAIL)
        for f in range(X.shape[1]):
            rows.X[f, slot] = X[i, f]
            rows.points[slot, f] = X[i, f]
        rows.diagonal[slot] = kernel_value(rows.shape, X[i], X[i])
        bank.codes[slot] = codes[i]
        bank.arrival[slot] = first + i
    # 2. F of the new points.
    sum_afresh(bank, first_training, first_observer)
    # 3. Labels and bounds of those that train; their coefficients start at zero.
    set_bounds(bank, slots[training], penalties)
    return values_of(bank.F, bank.b, slots)


@making
def promote(bank: Bank, count: int, penalties: Floats) -> None:
    """Move the oldest observers to the end of the training ring."""
    rows, rings, slots = bank.rows, bank.rows.rings, np.empty(count, dtype=np.int64)
    for i in range(count):
        old = rings[TRAIN_SIZE] + rings[SEEN_HEAD] % rings[SEEN_SIZE]
        # 1. A slot among the training points; the observer leaves its ring.
        slots[i] = new = take_slot(rings, TRAIN_TAIL)
        rings[SEEN_HEAD] += 1
        # 2. Copy the point, and F, which stays what it is.
        for f in range(rows.X.shape[0]):
            rows.X[f, new] = rows.X[f, old]
            rows.points[new, f] = rows.points[old, f]
        rows.diagonal[new] = rows.diagonal[old]
        bank.codes[new] = bank.codes[old]
        bank.arrival[new] = bank.arrival[old]
        for w in range(len(bank.sums)):
            bank.sums[w, new] = bank.sums[w, old]
    # 3. Labels and bounds; the coefficients start at zero.
    set_bounds(bank, slots, penalties)
