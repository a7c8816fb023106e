"""A worker tells that it compiles; once, and not where kept machine code is found."""

import numba
from numba.core import event
from structlog.testing import capture_logs

from workers.session.assembly import _Told


def test_the_first_kernel_that_is_compiled_is_told_and_no_other_nor_code_that_is_there():
    numba.njit(lambda x: x - 1)(1)  # a worker of an earlier test may still listen; it tells once
    first, second, ready = (numba.njit(lambda x, by=by: x + by) for by in (1, 2, 3))
    ready(1)
    with event.install_listener("numba:compile", _Told()), capture_logs() as told:
        ready(2)
        assert told == []
        for kernel in (first, first, second):
            kernel(1)
    (said,) = told
    assert "compiling" in said["event"]
