"""The refit process: it answers messages, ends with its parent, and yields to answers."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from processes import Process
from refits import BASE, gone, run

from workers.broker.leases import process_start
from workers.refit import process as refit_process
from workers.refit.pool import RefitPool
from workers.refit.process import (
    CONFIG,
    DONE,
    IN_TIME_SECONDS,
    LOW_PRIORITY_CREDIT,
    TASK,
    ProcessPriority,
    read_message,
    write_message,
)


def test_the_process_ends_with_the_pipe(tasks, expected):
    child = Process(
        [sys.executable, "-m", "workers.refit.child"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    write_message(child.stdin, CONFIG, BASE.model_dump_json().encode())
    assert read_message(child.stdout) == (DONE, b"")
    write_message(child.stdin, TASK, tasks[0].state())
    assert read_message(child.stdout) == (DONE, expected[0][0])
    child.stdin.close()
    assert child.wait() == 0
    child.stdout.close()


def test_the_process_ends_when_its_parent_is_killed():
    code = "import time; from workers.refit import process\n"
    code += "print(process.start().pid, flush=True); time.sleep(60)"
    parent = Process([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    child = int(parent.stdout.readline())
    assert process_start(child) is not None
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert gone(child)


def test_a_process_that_was_begun_early_is_the_first_of_a_pool(tasks, expected):
    early = refit_process.start()
    with RefitPool(processes=1, first=early) as pool, pool.refitter(BASE) as refitter:
        assert pool.pids == [early.pid]
        assert run(refitter, tasks[:1]) == expected[0][:1]
    assert early.returncode is not None


def test_a_deferred_task_waits_until_it_is_begun_or_its_result_is_asked_for(tasks, expected):
    with RefitPool(processes=1) as pool, pool.refitter(BASE) as refitter:
        refitter.is_deferring = True
        refitter.submit(tasks[0])
        assert refitter._learner.is_idle
        refitter.begin()
        assert not refitter._learner.is_idle
        refitter.submit(tasks[1])
        assert [refitter.result().state() for _ in range(2)] == expected[0][:2]


LATE = 2 * IN_TIME_SECONDS
ENABLED = Path("/proc/sys/kernel/sched_autogroup_enabled")


@pytest.fixture
def process():
    code = "import sys; sys.stdin.read()"
    started = Process([sys.executable, "-c", code], stdin=subprocess.PIPE, start_new_session=True)
    yield started
    started.stdin.close()
    started.wait()


def niceness(process):
    return int(Path(f"/proc/{process.pid}/autogroup").read_text().rsplit(maxsplit=1)[-1])


def changed(process, change, expected):
    """Ask for a change until it shows: Linux takes one of a group ten times a second at most."""
    for _ in range(1000):
        change()
        if niceness(process) == expected:
            return True
        time.sleep(0.02)
    return False


@pytest.mark.skipif(
    not ENABLED.exists() or ENABLED.read_text().strip() != "1",
    reason="this system has no scheduling groups of sessions",
)
def test_the_priority_is_low_while_nearly_all_results_come_in_time(process):
    priority = ProcessPriority(process.pid)
    for _ in range(LOW_PRIORITY_CREDIT - 1):
        priority.note(0.0)
    assert niceness(process) == 0
    assert changed(process, lambda: priority.note(0.0), 19)
    priority.note(LATE)
    assert niceness(process) == 19, "once is no rule"
    assert priority.is_low
    assert changed(process, lambda: priority.note(LATE), 0)
    for _ in range(20 * LOW_PRIORITY_CREDIT):
        priority.note(0.0)
        priority.note(LATE)
    assert niceness(process) == 0
    assert changed(process, lambda: priority.note(0.0), 19)
    assert changed(process, priority.restore, 0)
    assert not priority.is_low


def test_without_such_groups_nothing_happens(tmp_path, process):
    priority = ProcessPriority(process.pid)
    priority._group = tmp_path / "none" / "autogroup"
    for _ in range(LOW_PRIORITY_CREDIT):
        priority.note(0.0)
    priority.restore()
    assert not priority.is_low
    assert list(tmp_path.iterdir()) == []
