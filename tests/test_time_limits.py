"""No test can wait for ever: each has a limit, and so has each process that one starts."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from processes import Process

TESTS = Path(__file__).parent
SLEEPS = [sys.executable, "-c", "import time; print('asleep', flush=True); time.sleep(600)"]


def test_a_test_that_hangs_fails_and_the_next_one_runs(tmp_path):
    """Even within `with Popen`, which waits for its process when the test has failed."""
    (tmp_path / "test_hangs.py").write_text(
        f"import sys, time\nsys.path.insert(0, {str(TESTS / 'support')!r})\n"
        "from processes import Process\n\n"
        f"def test_hangs():\n    with Process({SLEEPS!r}):\n        time.sleep(600)\n\n"
        "def test_works():\n    pass\n"
    )
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-o", "timeout=1", "-p", "no:cacheprovider", "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "1 failed, 1 passed" in ran.stdout
    assert "Timeout" in ran.stdout


def test_the_suite_sets_a_limit(pytestconfig):
    assert float(pytestconfig.getini("timeout")) > 0


def test_a_wait_for_a_process_that_does_not_end_kills_and_names_it():
    with Process(SLEEPS) as process:
        with pytest.raises(AssertionError, match=r"killed, after 0\.1 s .*time\.sleep\(600\)"):
            process.wait(0.1)
        assert process.returncode == -9


def test_reading_from_a_process_that_does_not_end_kills_and_names_it():
    process = Process(SLEEPS, stdout=subprocess.PIPE)
    with pytest.raises(AssertionError, match=r"killed, after 0\.1 s"):
        process.communicate(timeout=0.1)
    process.stdout.close()


def test_a_block_that_fails_leaves_no_process_behind():
    with pytest.raises(ZeroDivisionError), Process(SLEEPS) as process:
        raise ZeroDivisionError
    assert process.returncode == -9


@pytest.mark.parametrize(
    "path", [path for path in TESTS.rglob("*.py") if path.name != "processes.py"], ids=str
)
def test_tests_start_processes_in_the_way_that_has_a_limit(path):
    assert not re.search(r"\bPopen\((?!\.\.\.)", path.read_text())
