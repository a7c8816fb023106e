"""What the systemd units forbid keeps neither a worker nor a scorer from answering."""

import ctypes
from contextlib import closing

from monitored_feed import COUNT, SETTINGS, push
from system_tools import missing
from world import Worker, flags_of, wait_until

from workers.broker.store import Store
from workers.scorer.asker import Asker

PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, PR_GET_MDWE = 65, 1, 66


def deny_write_execute():
    """Refuse this process, and those that it starts, memory that is written and then run.

    So does `MemoryDenyWriteExecute=yes`.
    """
    prctl = ctypes.CDLL(None).prctl
    prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0)


def test_a_worker_and_a_scorer_need_no_memory_that_is_written_and_run(embedded_url, feed):
    if ctypes.CDLL(None).prctl(PR_GET_MDWE, 0, 0, 0, 0) < 0:
        missing("needs a kernel that can deny memory that is written and run: Linux 6.3")
    options = {"preexec_fn": deny_write_execute}
    flags = flags_of(SETTINGS | {"publish_every": 20})
    with Store(embedded_url, feed) as store, closing(Asker(embedded_url, feed)) as asker:
        push(store)
        with Worker("worker", feed, "--redis", embedded_url, *flags, **options) as worker:
            worker.wait_for(store, COUNT)
            wait_until(lambda: store.publication() is not None)
            with Worker("scorer", feed, "--redis", embedded_url, **options) as scorer:
                (answer,) = asker.ask([b"[1,2,3]"], timeout=60)
                assert answer is not None, scorer.said
                scorer.stopped()
            worker.stopped()
