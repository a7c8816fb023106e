"""A stop that a signal handler asks for: whatever code is interrupted, and however often."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from workers.stop import ONE_REQUEST_SECONDS, Stop

AT_EACH_INSTRUCTION = """
import os, signal, sys
from workers.stop import Stop, signals

def is_ended_by_a_signal_at(number):
    passed = 0

    def trace(frame, event, _):
        nonlocal passed
        frame.f_trace_opcodes = True
        passed += event == "opcode"
        if event == "opcode" and passed == number:
            os.kill(os.getpid(), signal.SIGTERM)
        return trace

    stop = Stop(grace=60)
    with signals(stop):
        sys.settrace(trace)
        stop.wait(0.01)
        sys.settrace(None)
        return stop.requested

number = 1
while is_ended_by_a_signal_at(number):
    number += 1
print(number)
"""

SIGNALLED = """
import os, signal, sys, time
from workers.stop import Stop, signals

def send(pause):
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(pause)
    os.kill(os.getpid(), signal.SIGINT)

stop = Stop(grace=20)
with signals(stop):
    print("at work", flush=True)
    {code}
print(stop.requested)
"""


def run(program, **options):
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, **options
    )


def test_a_signal_at_any_instruction_of_a_wait_ends_it():
    """Each instruction of Python, in this package or below it, is one that a signal may hit."""
    found = run(AT_EACH_INSTRUCTION)
    assert found.returncode == 0, found.stderr
    assert int(found.stdout) > 40


@pytest.mark.parametrize("pause", [0.0, 0.0005, 0.25])
def test_two_signals_within_half_a_second_are_one(pause):
    """The half second is a minute here: a busy machine may keep the program waiting."""
    found = run(
        "from workers import stop\nstop.ONE_REQUEST_SECONDS = 60\n"
        + SIGNALLED.format(code=f"send({pause})")
    )
    assert (found.returncode, found.stdout) == (0, "at work\nTrue\n")


def test_a_second_signal_after_half_a_second_ends_with_130():
    found = run(SIGNALLED.format(code=f"send({ONE_REQUEST_SECONDS + 0.1})"))
    assert (found.returncode, found.stdout) == (130, "at work\n")


def test_a_second_signal_after_the_stop_does_not_change_the_exit_code():
    """A supervisor's signal to the group may come when the process is about to end."""
    found = run(SIGNALLED.format(code="stop.request()") + f"\nsend({ONE_REQUEST_SECONDS + 0.1})")
    assert (found.returncode, found.stdout) == (0, "at work\nTrue\n")


def test_a_stop_that_hangs_ends_with_0_after_the_grace_period():
    program = SIGNALLED.replace("grace=20", "grace=0.2")
    found = run(program.format(code="send(0); time.sleep(50)"))
    assert (found.returncode, found.stdout) == (0, "at work\n")


def test_before_a_stop_an_alarm_is_the_caller_s_own():
    """A test runner may have set one, whose end must not look like a graceful stop."""
    found = run(
        "import signal\nsignal.signal(signal.SIGALRM, lambda *_: print('mine'))\n"
        + SIGNALLED.format(code="signal.raise_signal(signal.SIGALRM)")
    )
    assert (found.returncode, found.stdout) == (0, "at work\nmine\nFalse\n")


def test_a_wait_goes_on_after_a_signal_that_asks_for_no_stop():
    stop, began = Stop(), time.monotonic()
    os.write(stop.wakeup_fd, b"\0")
    assert not stop.wait(0.2)
    assert time.monotonic() - began >= 0.2


def test_a_stop_ends_the_waits_of_all_threads_and_those_to_come():
    stop = Stop()
    threads = [threading.Thread(target=stop.wait, args=(30.0,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    time.sleep(0.05)
    os.write(stop.wakeup_fd, b"\0")  # one of them may read it, and what comes with it
    stop.request()
    for thread in threads:
        thread.join(25.0)
        assert not thread.is_alive()
    assert stop.wait(30.0)


def descriptors():
    return sorted(path.name for path in Path("/dev/fd").iterdir())


def test_a_stop_leaves_no_descriptor_behind():
    before = descriptors()
    for _ in range(5):
        Stop().wait(0.0)
    assert descriptors() == before
