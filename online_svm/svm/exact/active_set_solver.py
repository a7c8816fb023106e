"""SMO with shrinking: one machine is solved over its active set, then all variables are checked.

A round has three parts. Pair steps over the small kernel matrix of the active variables bring these
to their optimum. F of all points follows from the change of the coefficients. The slack of every
variable is checked: one that violates optimality becomes active, and there is another round. So
the end is the optimum over all variables, whatever the choice of the active set.

Which variables are active is a matter of speed. At the end of a solve those join whose slack is
within a margin of violating optimality; they stay until it is `WIDER` times that. The margin tunes
itself: where a second round was needed it grows, else it shrinks a little. Slacks are compared
with the margin at an optimum only: between forgetting and solving they are far from where they
will be.
"""

import math
from typing import NamedTuple

import numpy as np

from online_svm.compiled.intrinsics import fma
from online_svm.compiled.jit import inner, making
from online_svm.svm.exact.active_set import (
    CHECKED,
    FITS,
    SIZE,
    VACANT,
    ActiveSet,
    join,
    leave,
    room,
    tighten,
)
from online_svm.svm.exact.kernel_cache import TRAIN_SIZE, TRAIN_TAIL, Rows, bring_up, fetch
from online_svm.svm.exact.machine_state import add_row, spans
from online_svm.svm.exact.pair_steps import Part, settle
from online_svm.svm.exact.smo import highest_index, intercept, lowest_slack
from online_svm.types import Floats, Ints, Values

WIDER = 2.0
GROWTH, SHRINK = 1.5, 0.96  # so a second round in some eleven solves keeps the margin as it is
MOST_MARGIN = 0.1  # after many points at once a few short rounds take less time than one long one
TOGETHER = 8  # rows that are added to F in one pass
RESOLUTION = 1000.0  # roundings of the slacks' type: what a round may leave of a violation
MOST_ROUNDS = 50  # roundings could keep a tolerance next to them from ever being met


class Machine(NamedTuple):
    """One machine over n training slots, and F over all slots.

    Attributes
    ----------
    z, lower, upper, beta, before : ndarray of shape (n,)
        See `Bank`.
    F : ndarray of shape (n_slots,)
    up, down, near : ndarray of shape (n,)
        Scratch: slacks, once for growing and once for shrinking, and how far they are beyond b.
    """

    z: Floats
    lower: Floats
    upper: Floats
    beta: Floats
    before: Floats
    F: Floats
    up: Floats
    down: Floats
    near: Floats


@inner
def measure(machine: Machine) -> tuple[float, float]:
    """Work out the slacks; return the largest that can grow and the least that can shrink."""
    z, lower, upper, beta, F = machine.z, machine.lower, machine.upper, machine.beta, machine.F
    up, down = machine.up, machine.down
    for i in range(len(z)):
        up[i] = z[i] - F[i]
    for i in range(len(z)):
        down[i] = up[i] if beta[i] > lower[i] else math.inf
    for i in range(len(z)):
        up[i] = up[i] if beta[i] < upper[i] else -math.inf
    return up[highest_index(up)], lowest_slack(down)


@inner
def _look_near(up: Floats, down: Floats, near: Floats, b: float) -> None:
    """Work out how far slacks are beyond b; infinity for the two that violate the most."""
    for i in range(len(up)):
        near[i] = -down[i]
    lowest = highest_index(near)
    for i in range(len(up)):
        near[i] = max(up[i] - b, b - down[i])
    near[highest_index(up)] = near[lowest] = math.inf


@making
def assess(machine: Machine, active: ActiveSet, rows: Rows, b: float) -> int:
    """Let variables join and leave by their slacks at an optimum; return how many joined.

    Where there is no room for all, none joins, the set is marked as unfit, and -1 is returned.
    """
    near, slots, place, counts = machine.near, active.slots, active.place, active.counts
    # 1. How near each variable is to violating optimality.
    _look_near(machine.up, machine.down, near, b)
    least, joined, left = -active.margin[0], 0, 0
    # 2. Those leave that are far from it.
    for a in range(counts[SIZE] - 1, -1, -1):
        if slots[a] != VACANT and near[slots[a]] < WIDER * least:
            leave(slots, place, counts, slots[a])
        left += slots[a] != VACANT
    # 3. Count those that are near and not active; see whether there is room.
    for slot in range(len(near)):
        joined += (near[slot] > least) & (place[slot] < 0)
    fits = left + joined <= min(len(slots), len(near) // 2)
    counts[CHECKED], counts[FITS] = rows.rings[TRAIN_TAIL], fits
    # 4. They join.
    if fits and joined > 0:
        joining = np.empty(joined, dtype=np.int64)
        at = 0
        for slot in range(len(near)):
            if near[slot] > least and place[slot] < 0:
                joining[at] = slot
                at += 1
        join(active, rows, joining)
    tighten(active.K, slots, place, counts)
    return joined if fits else -1


@making
def _join_new(machine: Machine, active: ActiveSet, rows: Rows, b: float) -> bool:
    """Let training points join that came since the last assessment and would not stay at zero."""
    counts, rings, least = active.counts, rows.rings, -WIDER * active.margin[0]
    # 1. No check where the set is unfit, or more came than it has places.
    new = rings[TRAIN_TAIL] - counts[CHECKED]
    if counts[FITS] == 0 or new > len(active.slots):
        return False
    # 2. Of the new training points, those near to violating optimality.
    joining, joined = np.empty(new, dtype=np.int64), 0
    for ordinal in range(counts[CHECKED], rings[TRAIN_TAIL]):
        slot = ordinal % rings[TRAIN_SIZE]
        near = max(machine.up[slot] - b, b - machine.down[slot])
        if near > least and active.place[slot] == VACANT:
            joining[joined] = slot
            joined += 1
    # 3. They join if all have room.
    if joined > room(active.slots):
        return False
    if joined > 0:
        join(active, rows, joining[:joined])
    return True


@making
def _part_of(machine: Machine, active: ActiveSet, diagonal: Floats, b: float) -> Part:
    """Return the programme over the active variables, slacks relative to b."""
    # 1. Views of the scratch that the set keeps.
    n, bounds, slacks = active.counts[SIZE], active.bounds, active.slacks
    part = Part(
        bounds[0, :n], bounds[1, :n], bounds[2, :n], slacks[0, :n], slacks[1, :n], slacks[2, :n]
    )
    for a in range(n):
        slot = active.slots[a]
        # 2. A vacant place can neither grow nor shrink.
        if slot == VACANT:
            part.lower[a] = part.upper[a] = part.beta[a] = 0.0
            part.up[a], part.down[a], part.diagonal[a] = -math.inf, math.inf, 1.0
        else:
            # 3. Bounds, coefficient, diagonal and slacks of the variable that has the place.
            part.lower[a], part.upper[a] = machine.lower[slot], machine.upper[slot]
            part.beta[a], part.diagonal[a] = machine.beta[slot], diagonal[slot]
            part.up[a], part.down[a] = machine.up[slot] - b, machine.down[slot] - b
    return part


@inner
def _add_rows(values: Values, places: Ints, weights: Floats, out: Floats, first: int) -> None:
    """Add eight rows, from column `first`, to `out`: term by term in their order."""
    n = len(out)
    w0, w1, w2, w3 = weights[0], weights[1], weights[2], weights[3]
    w4, w5, w6, w7 = weights[4], weights[5], weights[6], weights[7]
    r0, r1 = values[places[0], first : first + n], values[places[1], first : first + n]
    r2, r3 = values[places[2], first : first + n], values[places[3], first : first + n]
    r4, r5 = values[places[4], first : first + n], values[places[5], first : first + n]
    r6, r7 = values[places[6], first : first + n], values[places[7], first : first + n]
    for i in range(n):
        total = fma(w1, np.float64(r1[i]), fma(w0, np.float64(r0[i]), out[i]))
        total = fma(w3, np.float64(r3[i]), fma(w2, np.float64(r2[i]), total))
        total = fma(w5, np.float64(r5[i]), fma(w4, np.float64(r4[i]), total))
        out[i] = fma(w7, np.float64(r7[i]), fma(w6, np.float64(r6[i]), total))


@making
def _add_changes(F: Floats, rows: Rows, slots: Ints, changes: Floats) -> None:
    """Bring F of all points to the present coefficients, change by change in the order given."""
    values, (span, first, stop) = rows.values, spans(rows)
    training, seen = F[:span], F[first:stop]
    for done in range(0, len(slots), TOGETHER):
        # 1. The rows of the next few, from the cache.
        few, weights = slots[done : done + TOGETHER], changes[done : done + TOGETHER]
        bring_up(rows, few)
        places = rows.row_of[few]
        # 2. Add them in one pass, or one by one.
        if len(few) == TOGETHER and places.min() >= 0:
            _add_rows(values, places, weights, training, 0)
            _add_rows(values, places, weights, seen, first)
        else:  # they may not all have room at a time
            for c in range(len(few)):
                row = values[fetch(rows, few[c], 2)]
                add_row(F, weights[c], row, 0, span)
                add_row(F, weights[c], row, first, stop)


@making
def _write_back(machine: Machine, rows: Rows, slots: Ints, beta: Floats) -> None:
    """Give the active variables new coefficients, and F of all points what follows from them."""
    changed, changes, count = np.empty(len(beta), dtype=np.int64), np.empty(len(beta)), 0
    for a in range(len(beta)):
        slot = slots[a]
        change = beta[a] - machine.beta[slot] if slot != VACANT else 0.0
        if change != 0.0:
            changed[count], changes[count] = slot, change
            count += 1
            machine.beta[slot] = machine.before[slot] = beta[a]
    _add_changes(machine.F, rows, changed[:count], changes[:count])


@inner
def _middle(up: Values, down: Values, b: float) -> float:
    """Return b as the active variables have it: the middle of what their slacks allow."""
    highest, lowest = -math.inf, math.inf
    for a in range(len(up)):
        highest, lowest = max(highest, up[a]), min(lowest, down[a])
    middle = 0.5 * (highest + lowest)
    return b + middle if math.isfinite(middle) else b


@making
def solve_active(
    machine: Machine, active: ActiveSet, rows: Rows, b: float, tol: float, max_steps: int
) -> tuple[int, float, bool]:
    """Bring one machine to its optimum by rounds over its active set.

    Returns
    -------
    steps : int
    b : float
        The constant.
    is_done : bool
        False if the active set is unfit; some steps may have been taken.
    """
    steps, rounds, taken = 0, 0, 1
    # 1. Slacks of all variables; new training points join the active set.
    highest, lowest = measure(machine)
    is_fit = highest - lowest < tol or _join_new(machine, active, rows, b)
    while is_fit and highest - lowest >= tol and taken > 0 and steps < max_steps:
        # 2. SMO over the active variables.
        part = _part_of(machine, active, rows.diagonal, b)
        # Slacks of so large a violation cannot show much smaller ones; the next round's can.
        goal = max(tol, RESOLUTION * float(np.finfo(part.up.dtype).eps) * (highest - lowest))
        taken = settle(active.K, part, active.typed, goal, max_steps - steps)
        # 3. Their coefficients, and F of all points.
        _write_back(machine, rows, active.slots, part.beta)
        b, steps, rounds = _middle(part.up, part.down, b), steps + taken, rounds + 1
        # 4. Check all variables; those near to violating optimality join, others leave.
        highest, lowest = measure(machine)
        joined = assess(machine, active, rows, b)
        is_fit, taken = joined >= 0 and rounds < MOST_ROUNDS, taken + joined
    # 5. The constant b.
    if is_fit:
        b = intercept(machine.up, machine.down, highest, lowest)
    # 6. A wider margin if more than one round was needed, else a narrower one.
    if rounds > 0:
        factor = GROWTH if rounds > 1 else SHRINK
        active.margin[0] = min(max(active.margin[0] * factor, tol), MOST_MARGIN)
    return steps, b, is_fit
