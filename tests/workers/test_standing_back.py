"""A process stands back in its scheduling group while nobody waits for it."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from workers.standing_back import LONG, SHORT, StandingBack

ENABLED = Path("/proc/sys/kernel/sched_autogroup_enabled")


@pytest.fixture
def process():
    code = "import sys; sys.stdin.read()"
    started = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, start_new_session=True
    )
    yield started
    started.stdin.close()
    started.wait(20)


def niceness(process):
    return int(Path(f"/proc/{process.pid}/autogroup").read_text().rsplit(maxsplit=1)[-1])


def changed(process, standing, waited, expected):
    """Note a wait until it shows: Linux takes a change of a group ten times a second at most."""
    for _ in range(100):
        standing.note(waited)
        if niceness(process) == expected:
            return True
        time.sleep(0.02)
    return False


@pytest.mark.skipif(
    not ENABLED.exists() or ENABLED.read_text().strip() != "1",
    reason="this system has no scheduling groups of sessions",
)
def test_a_process_stands_back_until_somebody_had_to_wait_long(process):
    standing = StandingBack(process.pid)
    assert niceness(process) == 0
    assert changed(process, standing, SHORT / 2, 19)
    standing.note((SHORT + LONG) / 2)
    assert niceness(process) == 19, "neither short nor long changes nothing"
    assert changed(process, standing, 2 * LONG, 0)
    assert changed(process, standing, 0.0, 19)


def test_without_such_groups_nothing_happens(tmp_path, process):
    standing = StandingBack(process.pid)
    standing._group = tmp_path / "none" / "autogroup"
    standing.note(0.0)
    standing.note(2 * LONG)
    assert list(tmp_path.iterdir()) == []
