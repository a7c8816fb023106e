"""A process has a low priority in its scheduling group while no answer waits for it."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from processes import Process

from workers.refit.priority import CREDIT, IN_TIME, ProcessPriority

LATE = 2 * IN_TIME
ENABLED = Path("/proc/sys/kernel/sched_autogroup_enabled")


@pytest.fixture
def process():
    code = "import sys; sys.stdin.read()"
    started = Process([sys.executable, "-c", code], stdin=subprocess.PIPE, start_new_session=True)
    yield started
    started.stdin.close()
    started.wait(20)


def niceness(process):
    return int(Path(f"/proc/{process.pid}/autogroup").read_text().rsplit(maxsplit=1)[-1])


def changed(process, change, expected):
    """Ask for a change until it shows: Linux takes one of a group ten times a second at most."""
    for _ in range(100):
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
    for _ in range(CREDIT - 1):
        priority.note(0.0)
    assert niceness(process) == 0
    assert changed(process, lambda: priority.note(0.0), 19)
    priority.note(LATE)
    assert niceness(process) == 19, "once is no rule"
    assert priority.is_low
    assert changed(process, lambda: priority.note(LATE), 0)
    for _ in range(20 * CREDIT):
        priority.note(0.0)
        priority.note(LATE)
    assert niceness(process) == 0
    assert changed(process, lambda: priority.note(0.0), 19)
    assert changed(process, priority.restore, 0)
    assert not priority.is_low


def test_without_such_groups_nothing_happens(tmp_path, process):
    priority = ProcessPriority(process.pid)
    priority._group = tmp_path / "none" / "autogroup"
    for _ in range(CREDIT):
        priority.note(0.0)
    priority.restore()
    assert not priority.is_low
    assert list(tmp_path.iterdir()) == []
