"""The refit process by itself: it answers messages, and ends with whoever began it."""

import subprocess
import sys

from processes import Process
from refits import BASE, gone, run

from workers.broker.lease import process_start
from workers.refit import child as refit_child
from workers.refit.messages import CONFIG, DONE, TASK, read_message, write_message
from workers.refit.pool import RefitPool


def test_the_process_ends_with_the_pipe(tasks, expected):
    child = Process(
        [sys.executable, "-m", "workers.refit.child"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    write_message(child.stdin, CONFIG, BASE.model_dump_json().encode())
    assert read_message(child.stdout) == (DONE, b"")
    write_message(child.stdin, TASK, tasks[0].state())
    assert read_message(child.stdout) == (DONE, expected[0][0])
    child.stdin.close()
    assert child.wait(10) == 0
    child.stdout.close()


def test_the_process_ends_when_its_parent_is_killed():
    code = "import time; from workers.refit import child\n"
    code += "print(child.begin().pid, flush=True); time.sleep(60)"
    parent = Process([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    child = int(parent.stdout.readline())
    assert process_start(child) is not None
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert gone(child)


def test_a_process_that_was_begun_early_is_the_first_of_a_pool(tasks, expected):
    early = refit_child.begin()
    with RefitPool(processes=1, first=early) as pool, pool.refitter(BASE) as refitter:
        assert pool.pids == [early.pid]
        assert run(refitter, tasks[:1]) == expected[0][:1]
    assert early.returncode is not None


def test_a_patient_task_waits_until_it_is_begun_or_its_result_is_asked_for(tasks, expected):
    with RefitPool(processes=1) as pool, pool.refitter(BASE) as refitter:
        refitter.is_patient = True
        refitter.submit(tasks[0])
        assert refitter._queue.is_idle
        refitter.begin()
        assert not refitter._queue.is_idle
        refitter.submit(tasks[1])
        assert [refitter.result().state() for _ in range(2)] == expected[0][:2]
