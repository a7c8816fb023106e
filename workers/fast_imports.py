"""Imports without the garbage collector, which would walk a hundred thousand living objects."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def importing() -> Iterator[None]:
    """Import in the block without collections, and spare all that lives then from later ones.

    Hardly anything that imports make is garbage: modules live as long as the process. A full
    collection in the middle of a batch would walk it all, for a tenth of a second.

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
        gc.freeze()
        if was_enabled:
            gc.enable()
