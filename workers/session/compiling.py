"""Tell that numerical kernels are compiled: the first start on a machine waits for it."""

from functools import cache
from typing import Any

import structlog
from numba.core import event
from typing_extensions import override

log = structlog.get_logger("online_svm.worker")

_TEXT = "compiling the numerical kernels, once: the first answers wait, for a minute or more"


class _Told(event.Listener):
    """Tells of the first kernel that this process compiles."""

    has_told = False

    @override
    def on_start(self, event: Any) -> None:
        if not self.has_told:
            self.has_told = True
            log.info(_TEXT)

    @override
    def on_end(self, event: Any) -> None:
        """Do nothing: the next line of progress says that it is over."""


@cache
def tell_of_compiling() -> None:
    """From now on tell of the first kernel that is compiled, in a line of the log."""
    event.register("numba:compile", _Told())  # type: ignore[no-untyped-call]  # numba has no types
