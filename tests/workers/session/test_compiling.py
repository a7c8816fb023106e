"""A worker tells that it compiles; once, and not where kept machine code is found."""

import numba
from numba.core import event
from structlog.testing import capture_logs

from workers.session.assembly import _Told


def _let_earlier_listeners_tell() -> None:
    """Compile a kernel: a worker of an earlier test may still listen here, and tells once."""
    numba.njit(lambda x: x - 1)(1)


def test_the_first_kernel_that_is_compiled_is_told_and_no_other():
    _let_earlier_listeners_tell()
    first, second = (numba.njit(lambda x, by=by: x + by) for by in (1, 2))
    with event.install_listener("numba:compile", _Told()), capture_logs() as told:
        first(1)
        first(2)
        second(1)
    assert len(told) == 1
    assert "compiling" in told[0]["event"]


def test_machine_code_that_is_there_is_not_told():
    _let_earlier_listeners_tell()
    ready = numba.njit(lambda x: x + 1)
    ready(1)
    with event.install_listener("numba:compile", _Told()), capture_logs() as told:
        ready(2)
    assert told == []
