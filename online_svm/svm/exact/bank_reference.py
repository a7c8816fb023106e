"""A bank as one Python object, and the compiled functions that Python calls with it.

numba unpacks every array of every tuple when Python calls compiled code. A bank has 33 arrays, and
that takes as long as a step of the solver. So a bank is unpacked once, into a numba `structref`;
compiled code takes it from there, and Python passes one pointer.

The reference keeps the arrays alive. `HeldPoints` makes another one when its arrays grow.
"""

from collections.abc import Callable
from typing import Any, cast

from numba import types
from numba.experimental import structref
from numba.extending import intrinsic

from online_svm.compiled.jit import jit, making
from online_svm.svm.exact import active_set as active
from online_svm.svm.exact import add_points, forget_points, machine_state, warm_start
from online_svm.svm.exact.machine_state import Bank
from online_svm.types import Bools, Floats, Ints


@structref.register
class BankType(types.StructRef):
    """numba's type of a `BankReference`."""


class BankReference(structref.StructRefProxy):
    """A reference to a bank.

    Attributes
    ----------
    bank : Bank
        Only compiled code can read it.

    Examples
    --------
    >>> from online_svm.compiled.kernels import Kernel
    >>> bank = machine_state.empty_bank(Kernel("rbf"), 2, 1, train=64, seen=64, cache_bytes=1 << 20)
    >>> ring_values(reference_to(bank), 1).shape
    (0, 1)
    """

    __slots__ = ()
    bank: Bank


structref.define_proxy(BankReference, BankType, ["bank"])  # type: ignore[no-untyped-call]  # no types


@jit
def reference_to(bank: Bank) -> BankReference:
    """Return a reference to a bank."""
    return BankReference(bank)  # type: ignore[no-untyped-call]  # as above


def _without_owners(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """Return a compiled value whose arrays do not count who holds them."""
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        array.meminfo, array.parent = array.meminfo.type(None), array.parent.type(None)
        return array._getvalue()
    if isinstance(kind, types.BaseTuple):
        fields: tuple[Any, ...] = tuple(cast(Any, kind))
        parts = [
            _without_owners(context, builder, field, builder.extract_value(value, k))
            for k, field in enumerate(fields)
        ]
        return context.make_tuple(builder, kind, parts)
    return value


def _borrowed(_typing: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _without_owners(context, builder, signature.args[0], arguments[0])

    return value(value), generate


borrowed = cast(Callable[[Bank], Bank], intrinsic(_borrowed))
"""The same bank, whose arrays do not count who holds them.

Each count locks a cache line. Counting made a step of a machine over 1,000 points 9 % slower.
"""


@making
def bank_of(reference: BankReference) -> Bank:
    """Return the bank, within compiled code; it must not outlive the reference."""
    return borrowed(reference.bank)


@jit
def arrive(
    reference: BankReference, X: Floats, codes: Ints, training: Bools, first: int, penalties: Floats
) -> Floats:
    """See `add_points.arrive`."""
    return add_points.arrive(bank_of(reference), X, codes, training, first, penalties)


@jit
def promote(reference: BankReference, count: int, penalties: Floats) -> None:
    """See `add_points.promote`."""
    add_points.promote(bank_of(reference), count, penalties)


@jit
def set_bounds(reference: BankReference, slots: Ints, penalties: Floats) -> None:
    """See `machine_state.set_bounds`."""
    machine_state.set_bounds(bank_of(reference), slots, penalties)


@jit
def sum_afresh(reference: BankReference, first_training: int, first_observer: int) -> None:
    """See `machine_state.sum_afresh`."""
    machine_state.sum_afresh(bank_of(reference), first_training, first_observer)


@jit
def ring_values(reference: BankReference, ring: int) -> Floats:
    """See `machine_state.ring_values`."""
    return machine_state.ring_values(bank_of(reference), ring)


@jit
def clip(reference: BankReference, slots: Ints) -> None:
    """See `forget_points.clip`."""
    forget_points.clip(bank_of(reference), slots)


@jit
def forget_training(reference: BankReference, count: int) -> None:
    """See `forget_points.forget_training`."""
    forget_points.forget_training(bank_of(reference), count)


@jit
def restore_active(reference: BankReference, slots: Ints) -> None:
    """See `active_set.restore_active`."""
    bank = bank_of(reference)
    active.restore_active(bank.active, bank.rows, slots)


@jit
def solve(reference: BankReference, tol: float, max_steps: int) -> int:
    """See `warm_start.solve`."""
    return warm_start.solve(bank_of(reference), tol, max_steps)
