"""Incremental forget: points leave, and the solution without them starts from the present one.

The box of a point that leaves shrinks to zero, and its coefficient is clipped to it. The dual needs
the sum of the coefficients to stay zero, so other variables take over what is clipped off: those
that cost the objective least. New penalties clip coefficients in the same way.
"""

import numpy as np

from online_svm.compiled.jit import inner, making
from online_svm.svm.exact.active_set import SIZE, VACANT, leave
from online_svm.svm.exact.common_shift import FLAT
from online_svm.svm.exact.kernel_cache import TRAIN_HEAD, TRAIN_SIZE, drop_rows, fetch
from online_svm.svm.exact.machine_state import Bank, add_row, set_member, spans, update_observers
from online_svm.svm.exact.smo import snapped
from online_svm.types import Ints, Values


@inner
def _recipient(
    bank: Bank, s: int, candidates: Ints, span: int, row: Values, slot: int, amount: float
) -> tuple[int, float]:
    """Return who can best take over `amount` of the coefficient in `slot` (-1: nobody), and room.

    Of the candidates, or of all slots before `span` if there are none, the best is the one that
    costs the objective least among those with room for all of it, or, if there is none, the one
    with the most room.
    """
    best, best_room, best_gain = -1, 0.0, 0.0
    size, sign = abs(amount), 1.0 if amount > 0.0 else -1.0
    z, F, beta = bank.z[s], bank.F[s], bank.beta[s]
    lower, upper, diagonal = bank.lower[s], bank.upper[s], bank.rows.diagonal
    is_open = len(candidates) == 0
    for c in range(span if is_open else len(candidates)):
        j = c if is_open else candidates[c]
        if j in (VACANT, slot):
            continue
        # 1. How much of the amount the candidate has room for.
        room = min(upper[j] - beta[j] if amount > 0.0 else beta[j] - lower[j], size)
        if room <= 0.0 or room < best_room:
            continue
        # 2. What the objective gains if it takes that on.
        curvature = max(diagonal[slot] + diagonal[j] - 2.0 * np.float64(row[j]), FLAT)
        gain = sign * (z[j] - F[j]) - 0.5 * curvature * size
        if room > best_room or gain > best_gain:
            best, best_room, best_gain = j, room, gain
    return best, sign * best_room


@inner
def _clip_machine(bank: Bank, s: int, span: int, slots: Ints) -> None:
    """Bring coefficients of one machine within their bounds; others take over the excess.

    Active variables go before others: nothing else would have to be active for having taken it.
    """
    rows, values, active = bank.rows, bank.rows.values, bank.active
    beta, F, lower, upper = bank.beta[s], bank.F[s], bank.lower[s], bank.upper[s]
    for slot in slots:
        # 1. Clip the coefficient to its box.
        bound = min(max(beta[slot], lower[slot]), upper[slot])
        excess = beta[slot] - bound
        beta[slot] = bound
        # 2. Others take over the excess, so that the sum of all stays zero.
        while excess != 0.0:
            place = fetch(rows, slot, 1)
            near = active.slots[s, : active.counts[s, SIZE]]
            j, part = _recipient(bank, s, near, span, values[place], slot, excess)
            if j < 0:
                j, part = _recipient(bank, s, near[:0], span, values[place], slot, excess)
            # Nobody has room for it: the sum changes.
            if j < 0:
                part = excess
            # 3. F of the training points.
            add_row(F, -part, values[place], 0, span)
            if j >= 0:
                add_row(F, part, values[fetch(rows, j, 1)], 0, span)
                beta[j] = snapped(beta[j] + part, lower[j], upper[j])
            excess -= part


@making
def clip(bank: Bank, slots: Ints) -> None:
    """Bring the coefficients in `slots` within their bounds, and F of all points with them."""
    span, _, _ = spans(bank.rows)
    for s in range(len(bank.b)):
        for slot in slots:
            if bank.members[s, slot] != 0.0 and bank.lower[s, slot] == bank.upper[s, slot]:
                set_member(bank, s, slot, False)
        _clip_machine(bank, s, span, slots)
    update_observers(bank)


@making
def forget_training(bank: Bank, count: int) -> None:
    """Give up the oldest training points; others take over their coefficients."""
    rings = bank.rows.rings
    # 1. The box of each point that leaves shrinks to zero; others take over its coefficient.
    slots = np.empty(count, dtype=np.int64)
    for i in range(count):
        slots[i] = (rings[TRAIN_HEAD] + i) % rings[TRAIN_SIZE]
        for s in range(len(bank.b)):
            bank.lower[s, slots[i]] = bank.upper[s, slots[i]] = 0.0
    clip(bank, slots)
    # 2. It leaves the active set.
    active = bank.active
    for slot in slots:
        for s in range(len(bank.b)):
            bank.z[s, slot] = 0.0
            if active.place[s, slot] != VACANT:
                leave(active.slots[s], active.place[s], active.counts[s], int(slot))
    # 3. Its kernel row and its slot are free.
    drop_rows(bank.rows, slots)
    rings[TRAIN_HEAD] += count
