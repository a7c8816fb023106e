"""Imports without the garbage collector, which would walk a million living objects meanwhile."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def importing() -> Iterator[None]:
    """Import in the block without collections: hardly anything that imports make is garbage.

    Examples
    --------
    >>> with importing():
    ...     gc.isenabled()
    False
    >>> gc.isenabled()
    True
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def imported() -> None:
    """Spare what is there now from every later collection: modules live as long as the process.

    A full collection in the middle of a batch would walk it all, for a tenth of a second.
    """
    gc.freeze()
