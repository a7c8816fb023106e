"""Real commands as processes, and what the system tells about them (Linux: from /proc)."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO

from workers.broker.store import Store
from workers.errors import BadConfiguration, WorkerError

ROOT = Path(__file__).parents[2]
"""This checkout: the directory in which `python -m workers.cli` runs its sources."""

_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICK = 1 / os.sysconf("SC_CLK_TCK")
# Above any start on a busy machine, cold cache included.
_START_SECONDS = 300.0
_STOP_SECONDS = 30.0
_LOOK = 0.005


class WorkerEnded(WorkerError):
    """The measured process ended by itself."""


class Measured:
    """A Python process under measurement, and the file with its standard error."""

    def __init__(self, process: subprocess.Popen[bytes], said: IO[bytes]) -> None:
        self.process, self._said = process, said
        self.pid = process.pid

    def check(self) -> None:
        """Raise WorkerEnded, with the last lines it wrote, if the process is gone."""
        if self.process.poll() is not None:
            raise WorkerEnded(f"the process ended with {self.process.returncode}: {self.said}")

    def kill(self) -> None:
        """End the process at once, as a crash does."""
        self.process.kill()
        self.process.wait()

    def stop(self, seconds: float = _STOP_SECONDS) -> None:
        """Ask the process to stop, and wait until it has."""
        self.process.terminate()
        self.process.wait(seconds)

    @property
    def processor_seconds(self) -> float:
        """Seconds of processor time of the process and of those that it started."""
        return sum(map(seconds_of, family(self.pid)))

    @property
    def said(self) -> str:
        """The last lines of its standard error."""
        self._said.seek(0)
        return " | ".join(self._said.read().decode(errors="replace").splitlines()[-5:])

    def wait_until(self, is_true: Callable[[], bool], seconds: float = _START_SECONDS) -> None:
        """Wait for something; raise WorkerEnded if the process ends first, or takes too long."""
        deadline = time.monotonic() + seconds
        while not is_true():
            self.check()
            if time.monotonic() > deadline:
                raise WorkerEnded(f"nothing came within {seconds:g} s: {self.said}")
            time.sleep(_LOOK)


@contextmanager
def python(*arguments: str) -> Iterator[Measured]:
    """Run this Python with arguments in the block, and stop it gracefully after."""
    with (
        TemporaryFile() as said,
        TemporaryDirectory() as state,  # what a worker leaves for later ones
        subprocess.Popen(
            [sys.executable, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            cwd=ROOT,
            env=os.environ | {"XDG_STATE_HOME": state},
        ) as process,
    ):
        try:
            yield Measured(process, said)
            process.terminate()
            process.wait(_STOP_SECONDS)
        finally:
            process.kill()


def worker(feeds: str | Sequence[str], url: str, options: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the arguments of the real worker's command, for `python`.

    Examples
    --------
    >>> worker(["a", "b"], "redis://h/0")[2:5]
    ('worker', 'a', 'b')
    """
    names = (feeds,) if isinstance(feeds, str) else feeds
    return ("-m", "workers.cli", "worker", *names, "--redis", url, "--quiet", *options)


def refit_process(pid: int) -> int | None:
    """Return the process that computes the refits of a worker; None if it has none now."""
    children = _proc(pid, "task", str(pid), "children").split()
    return int(children[0]) if children else None


def resident(pid: int | None) -> int:
    """Return the bytes of memory a process holds; 0 if it is gone.

    Examples
    --------
    >>> resident(os.getpid()) > 1_000_000
    True
    """
    pages = _proc(pid, "statm").split()
    return int(pages[1]) * _PAGE if pages else 0


def is_running(pid: int | None) -> bool:
    """Return whether a process computes, or wants to: it does not sleep.

    Examples
    --------
    >>> is_running(os.getpid()), is_running(None)
    (True, False)
    """
    return _status(pid)[:1] == ["R"]


def family(pid: int) -> Iterator[int]:
    """Yield a process and those that it started, and they."""
    require_proc()
    yield pid
    for thread in Path(f"/proc/{pid}/task").iterdir():  # each thread has children of its own
        for child in (thread / "children").read_text().split():
            yield from family(int(child))


def seconds_of(pid: int) -> float:
    """Return the seconds of processor time that a process has taken, ended threads included.

    Examples
    --------
    >>> before = seconds_of(os.getpid())
    >>> while seconds_of(os.getpid()) == before:  # it grows as this process computes
    ...     pass
    """
    fields = _status(pid)
    return (int(fields[11]) + int(fields[12])) * _TICK


def redis_seconds(store: Store) -> float:
    """Return the seconds of processor time that Redis has taken, but for its children."""
    return used_cpu(store.call("INFO", "cpu"))


def used_cpu(told: bytes) -> float:
    r"""Return the seconds of processor time that `INFO cpu` tells of a server.

    Examples
    --------
    >>> used_cpu(b"# CPU\r\nused_cpu_sys:0.25\r\nused_cpu_user:0.5\r\n")
    0.75
    """
    found = dict(line.split(":") for line in told.decode().split() if ":" in line)
    return float(found["used_cpu_user"]) + float(found["used_cpu_sys"])


def require_proc() -> None:
    """Raise BadConfiguration on a system without /proc."""
    if not Path("/proc/self/statm").exists():
        raise BadConfiguration("this benchmark reads /proc: run it on Linux")


def _proc(pid: int | None, *path: str) -> str:
    """Return a file of a process; nothing if it is gone."""
    require_proc()
    try:
        return Path("/proc", str(pid), *path).read_text()
    except FileNotFoundError:
        return ""


def _status(pid: int | None) -> list[str]:
    return _proc(pid, "stat").rpartition(")")[2].split()
