"""Warm start: from the last solution to the optimum for the points held now, machine by machine.

Each machine is solved over its active set first. Where that is unfit, it is solved over all
variables, with common shifts beside the pair steps.
"""

import numpy as np

from online_svm.compiled.jit import inner, making
from online_svm.compiled.ordered_sums import dot
from online_svm.svm.exact.active_set import set_of
from online_svm.svm.exact.active_set_solver import Machine, assess, measure, solve_active
from online_svm.svm.exact.common_shift import Shift
from online_svm.svm.exact.machine_state import Bank, add_row, set_member, spans, update_observers
from online_svm.svm.exact.smo import Programme, intercept, maximise_with
from online_svm.types import Floats

INSIDE = 0.01  # of the width of its bounds: so far inside them a member of the shift must be
MOST_JOINING = 64  # in one solve: each costs a kernel row, which may have to be computed
FEWEST_MEMBERS = 8  # fewer share too little


@inner
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


@making
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


@inner
def _one_sided(z: Floats) -> float:
    """Return +1 or -1 if the training points of a machine are all of that side, else 0."""
    positive, negative = 0, 0
    for i in range(len(z)):
        positive += z[i] > 0.0
        negative += z[i] < 0.0
    if positive and negative:
        return 0.0
    return 1.0 if positive else -1.0


@inner
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


@making
def _machine_of(bank: Bank, s: int, span: int) -> Machine:
    return Machine(
        bank.z[s, :span],
        bank.lower[s, :span],
        bank.upper[s, :span],
        bank.beta[s, :span],
        bank.before[s, :span],
        bank.F[s],
        bank.work[0, :span],
        bank.work[1, :span],
        bank.work[2, :span],
    )


@making
def _solve_whole(bank: Bank, s: int, span: int, tol: float, max_steps: int) -> int:
    """Bring one machine to its optimum over all variables at once, with common shifts."""
    _, first, stop = spans(bank.rows)
    # 1. The common shift, of variables well inside their bounds.
    _choose_members(bank, s, span)
    shift = _shift_of(bank, s, span)
    # 2. SMO over all variables, from the last solution.
    problem = Programme(
        bank.z[s, :span],
        bank.lower[s, :span],
        bank.upper[s, :span],
        bank.beta[s, :span],
        bank.F[s, :span],
    )
    steps, highest, lowest = maximise_with(shift, bank.rows, problem, tol, max_steps, bank.work)
    # 3. F of the observers: what all members moved by, at once (the rest by `update_observers`).
    add_row(bank.F[s], shift.moved[0], bank.R[s], first, stop)
    # 4. The constant b, and the active set for the next solve.
    machine, active = _machine_of(bank, s, span), set_of(bank.active, s)
    measure(machine)
    bank.b[s] = intercept(machine.up, machine.down, highest, lowest)
    if assess(machine, active, bank.rows, bank.b[s]) < 0:  # the next time less margin may do
        active.margin[0] = max(0.5 * active.margin[0], tol)
    return steps


@inner
def _dismiss_members(members: Floats, R: Floats) -> None:
    """End the common shift of a machine whose active set is settled by pair steps alone."""
    found = 0
    for slot in range(len(members)):
        found += members[slot] != 0.0
    if found:
        members[:] = 0.0
        R[:] = 0.0


@making
def solve(bank: Bank, tol: float, max_steps: int) -> int:
    """Bring every machine to its optimum; return the steps taken."""
    span, _, _ = spans(bank.rows)
    total, is_behind = 0, False
    for s in range(len(bank.b)):
        # 1. A machine that holds one class only answers that class.
        side = _one_sided(bank.z[s, :span])
        if side != 0.0:
            _reset(bank, s, side)
            continue
        # 2. SMO over the active set.
        machine, active = _machine_of(bank, s, span), set_of(bank.active, s)
        steps, b, is_done = solve_active(machine, active, bank.rows, bank.b[s], tol, max_steps)
        bank.b[s] = b
        # 3. Where the active set is unfit: SMO over all variables.
        if not is_done:
            steps += _solve_whole(bank, s, span, tol, max_steps - steps)
            is_behind = True
        elif steps > 0:
            _dismiss_members(bank.members[s, :span], bank.R[s])
        total += steps
    # 4. F of the observers, where step 3 left it behind.
    if is_behind:
        update_observers(bank)
    return total
