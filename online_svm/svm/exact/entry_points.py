"""The doors through which Python calls the machines; each takes a bank by its handle."""

from online_svm.compiled.jit import jit
from online_svm.svm.exact import active_set as active
from online_svm.svm.exact import ascent, release
from online_svm.svm.exact import machine_state as bank
from online_svm.svm.exact.addresses import Handle, bank_at
from online_svm.types import Bools, Floats, Ints


@jit
def arrive(
    handle: Handle, X: Floats, codes: Ints, training: Bools, first: int, penalties: Floats
) -> Floats:
    """See `bank.arrive`."""
    return bank.arrive(bank_at(handle), X, codes, training, first, penalties)


@jit
def promote(handle: Handle, count: int, penalties: Floats) -> None:
    """See `bank.promote`."""
    bank.promote(bank_at(handle), count, penalties)


@jit
def set_bounds(handle: Handle, slots: Ints, penalties: Floats) -> None:
    """See `bank.set_bounds`."""
    bank.set_bounds(bank_at(handle), slots, penalties)


@jit
def sum_afresh(handle: Handle, first_training: int, first_observer: int) -> None:
    """See `bank.sum_afresh`."""
    bank.sum_afresh(bank_at(handle), first_training, first_observer)


@jit
def ring_values(handle: Handle, ring: int) -> Floats:
    """See `bank.ring_values`."""
    return bank.ring_values(bank_at(handle), ring)


@jit
def clip(handle: Handle, slots: Ints) -> None:
    """See `release.clip`."""
    release.clip(bank_at(handle), slots)


@jit
def forget_training(handle: Handle, count: int) -> None:
    """See `release.forget_training`."""
    release.forget_training(bank_at(handle), count)


@jit
def restore_active(handle: Handle, slots: Ints) -> None:
    """See `active.restore_active`."""
    held = bank_at(handle)
    active.restore_active(held.active, held.rows, slots)


@jit
def solve(handle: Handle, tol: float, max_steps: int) -> int:
    """See `ascent.solve`."""
    return ascent.solve(bank_at(handle), tol, max_steps)
