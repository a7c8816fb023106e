"""Bringing coefficients within new bounds, and so letting points leave, without starting anew."""

from online_svm._jit import jit
from online_svm.kernels import Floats
from online_svm.svm.bank import Bank, add_row, set_member, spans, update_observers
from online_svm.svm.rows import fetch
from online_svm.svm.shift import FLAT
from online_svm.svm.solver import snapped


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
            add_row(F, -part, values[place], 0, span)
            if j >= 0:
                add_row(F, part, values[fetch(rows, j, 1)], 0, span)
                beta[j] = snapped(beta[j] + part, lower[j], upper[j])
            excess -= part


@jit
def clip(bank: Bank) -> None:
    """Bring all coefficients within their bounds; points whose bounds are 0 may then leave."""
    span, _, _ = spans(bank.rows)
    for s in range(len(bank.b)):
        for slot in range(span):
            if bank.members[s, slot] != 0.0 and bank.lower[s, slot] == bank.upper[s, slot]:
                set_member(bank, s, slot, False)
        _clip_machine(bank, s, span)
    update_observers(bank)
