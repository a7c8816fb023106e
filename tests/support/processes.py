"""Processes of tests: none of them can keep a test waiting for ever."""

import random
import resource
import socket
import subprocess
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path

from system_tools import missing

LIMIT = 60.0
"""Seconds that a process may take to end, where a test does not say how long."""


class Process(subprocess.Popen):
    """A Popen whose every wait has a limit, and which a block that it is opened in leaves dead.

    The wait at the end of `with Popen(...)` has no limit. So a process that does not end, or a test
    that fails before it ends it, would stop the whole suite.
    """

    def wait(self, timeout=LIMIT):
        """Return the exit code; a process that does not end in time is killed."""
        try:
            return super().wait(timeout)
        except subprocess.TimeoutExpired:
            raise self._killed(timeout) from None

    def communicate(self, input=None, timeout=LIMIT):
        try:
            return super().communicate(input, timeout)
        except subprocess.TimeoutExpired:
            raise self._killed(timeout) from None

    def __exit__(self, *error):
        self.kill()
        super().__exit__(*error)

    def _killed(self, seconds):
        self.kill()
        super().wait(LIMIT)
        command = [self.args] if isinstance(self.args, str) else map(str, self.args)
        named = " ".join(command)[:500]
        return AssertionError(f"killed, after {seconds:g} s without an end: {named}")


_ports = set()
_dice = random.SystemRandom()  # a test may seed the other one


def free_port():
    """Return a port on which nobody listens, and that this process was not given before.

    The system gives the ports from 32768 on to clients, at any time. One of them could take the
    port of a server before it starts or while it restarts; it could even connect to itself there.
    """
    while True:
        port = _dice.randrange(10_000, 32_000)
        with suppress(OSError):
            if port not in _ports:
                socket.create_server(("127.0.0.1", port)).close()
                _ports.add(port)
                return port


def processor_seconds(process):
    """Return the processor time that a process has taken so far, in its own code and the kernel."""
    return time.clock_gettime(~process.pid << 3 | 2)  # as clock_getcpuclockid(3) makes it


def alone(function, *arguments):
    """Return what a function of a test module returns in a process of its own.

    How far the heap grows depends on what earlier tests left in it.
    """
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def peak_since():
    """Return a function that returns the growth in bytes of this process's peak memory."""
    Path("/proc/self/clear_refs").write_text("5")
    before = peak_memory()
    return lambda: peak_memory() - before


def peak_memory():
    """Return the bytes of this process's peak memory, on Linux.

    `ru_maxrss` begins with the memory of the process that started this one.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])


def raise_limit(wanted):
    """Let this process open so many files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        if hard < wanted:
            missing(f"needs {wanted} open files: ulimit -Hn {wanted}")
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
