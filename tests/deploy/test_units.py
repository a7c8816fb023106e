"""What the systemd units forbid keeps no worker from answering."""

import ctypes

from monitored_feed import COUNT, SETTINGS, push
from system_tools import missing
from world import Worker, flags_of

from workers.broker.store import Store

PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, PR_GET_MDWE = 65, 1, 66


def deny_write_execute():
    """Refuse this process, and those that it starts, memory that is written and then run.

    So does `MemoryDenyWriteExecute=yes`.
    """
    prctl = ctypes.CDLL(None).prctl
    prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0)


def test_a_worker_needs_no_memory_that_is_written_and_run(embedded_url, feed):
    if ctypes.CDLL(None).prctl(PR_GET_MDWE, 0, 0, 0, 0) < 0:
        missing("needs a kernel that can deny memory that is written and run: Linux 6.3")
    options, flags = {"preexec_fn": deny_write_execute}, flags_of(SETTINGS)
    with Store(embedded_url, feed) as store:
        push(store)
        with Worker("worker", feed, "--redis", embedded_url, *flags, **options) as worker:
            worker.wait_for(store, COUNT)
            worker.stopped()
