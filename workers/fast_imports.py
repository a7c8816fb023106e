"""Imports without garbage collections, which would visit a hundred thousand live objects."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def importing() -> Iterator[None]:
    """Import in the block without collections; later collections skip the objects alive at its end.

    Imports create hardly any garbage: modules live as long as the process. A full collection in the
    middle of a batch would visit all their objects, which takes a tenth of a second. A block that
    imports nothing new lets collections see what they saw: garbage that is alive at its end would
    otherwise stay for ever.

    Examples
    --------
    >>> with importing():
    ...     gc.isenabled()
    False
    >>> gc.isenabled()
    True
    """
    was_enabled, modules = gc.isenabled(), len(sys.modules)
    gc.disable()
    try:
        yield
    finally:
        if len(sys.modules) > modules:
            gc.freeze()
        if was_enabled:
            gc.enable()
