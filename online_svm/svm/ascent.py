"""From the last solution to the optimum for the points held now, machine by machine."""

import numpy as np

from online_svm._jit import jit
from online_svm.kernels import Floats
from online_svm.svm.bank import Bank, add_row, set_member, spans, update_observers
from online_svm.svm.lanes import dot
from online_svm.svm.shift import Shift
from online_svm.svm.solver import Programme, intercept, maximise_with

INSIDE = 0.01  # of the width of its bounds: so far inside them a member of the shift must be
MOST_JOINING = 64  # in one solve: each costs a kernel row, which may have to be computed
FEWEST_MEMBERS = 8  # fewer share too little


@jit
def _choose_members(bank: Bank, s: int, span: int) -> None:
    """Let variables well inside their bounds be members, and no others."""
    beta, members = bank.beta[s, :span], bank.members[s, :span]
    lower, upper = bank.lower[s, :span], bank.upper[s, :span]
    joined = 0
    for slot in range(span):
        margin = INSIDE * (upper[slot] - lower[slot])
        inside = lower[slot] + margin < beta[slot] < upper[slot] - margin
        if inside != (members[slot] != 0.0) and (joined < MOST_JOINING or not inside):
            joined += inside
            set_member(bank, s, slot, inside)


@jit
def _shift_of(bank: Bank, s: int, span: int) -> Shift:
    """Return what the solver needs of the members of one machine."""
    members, row, R = bank.members[s, :span], bank.work[3, :span], bank.R[s, :span]
    count, spread = 0, 0.0
    for slot in range(span):
        count += members[slot] != 0.0
    if count < FEWEST_MEMBERS:
        count = 0
    else:
        for slot in range(span):
            row[slot] = R[slot] / count
        spread = dot(row, members) / count
    return Shift(members, row, bank.before[s, :span], np.zeros(1), float(count), spread)


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
def _reset(bank: Bank, s: int, side: float) -> None:
    """Let a machine answer `side` to everything."""
    for w in (s, s + len(bank.b)):
        for j in range(bank.weights.shape[1]):
            bank.weights[w, j] = 0.0
        for i in range(bank.sums.shape[1]):
            bank.sums[w, i] = 0.0
    for j in range(bank.weights.shape[1]):
        bank.before[s, j] = 0.0
    bank.b[s] = side


@jit
def solve(bank: Bank, tol: float, max_steps: int) -> int:
    """Bring every machine to its optimum; return the steps taken."""
    span, first, stop = spans(bank.rows)
    total = 0
    for s in range(len(bank.b)):
        side = _one_sided(bank.z[s, :span])
        if side != 0.0:
            _reset(bank, s, side)
            continue
        _choose_members(bank, s, span)
        shift = _shift_of(bank, s, span)
        problem = Programme(
            bank.z[s, :span],
            bank.lower[s, :span],
            bank.upper[s, :span],
            bank.beta[s, :span],
            bank.F[s, :span],
        )
        steps, highest, lowest = maximise_with(shift, bank.rows, problem, tol, max_steps, bank.work)
        add_row(bank.F[s], shift.moved[0], bank.R[s], first, stop)
        bank.b[s] = intercept(problem, highest, lowest)
        total += steps
    update_observers(bank)
    return total
