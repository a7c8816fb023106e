"""A process stands back in its scheduling group while nobody waits for it."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from processes import Process

from workers.refit.priority import CREDIT, IN_TIME, StandingBack

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
def test_a_process_stands_back_while_it_is_nearly_always_in_time(process):
    standing = StandingBack(process.pid)
    for _ in range(CREDIT - 1):
        standing.note(0.0)
    assert niceness(process) == 0
    assert changed(process, lambda: standing.note(0.0), 19)
    standing.note(LATE)
    assert niceness(process) == 19, "once is no rule"
    assert standing.is_on
    assert changed(process, lambda: standing.note(LATE), 0)
    for _ in range(20 * CREDIT):
        standing.note(0.0)
        standing.note(LATE)
    assert niceness(process) == 0
    assert changed(process, lambda: standing.note(0.0), 19)
    assert changed(process, standing.hurry, 0)
    assert not standing.is_on


def test_without_such_groups_nothing_happens(tmp_path, process):
    standing = StandingBack(process.pid)
    standing._group = tmp_path / "none" / "autogroup"
    for _ in range(CREDIT):
        standing.note(0.0)
    standing.hurry()
    assert not standing.is_on
    assert list(tmp_path.iterdir()) == []
