"""The holder of a lease: who it is, and whether its process is gone."""

import os
import subprocess
import sys
from dataclasses import replace

from processes import Process

from workers.broker.lease import Holder, process_start


def test_a_holder_whose_process_id_was_given_to_another_process_is_dead():
    assert replace(Holder.here("x"), started="0").is_dead()
    assert not Holder.here("x").is_dead()


def test_a_zombie_process_is_dead():
    """It has ended, and nobody has asked how: its id is still taken."""
    process = Process([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    holder = replace(Holder.here("x"), pid=process.pid, started=process_start(process.pid))
    assert not holder.is_dead()
    process.stdin.close()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # ends, and is left as it is
    assert holder.is_dead()
    os.kill(process.pid, 0)
    process.wait()


def test_two_holders_of_one_process_are_told_apart():
    one, two = Holder.here("x"), Holder.here("x")
    assert one.pid == two.pid == os.getpid()
    assert one.token != two.token
    assert Holder.parse(one.encode()) == one
