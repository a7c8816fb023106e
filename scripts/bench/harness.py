"""The parts that benchmarks share: examples, a Redis, workers, and what processes use (/proc)."""

import logging
import os
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO

import numpy as np
import structlog

from workers.admin.reset import reset
from workers.broker import embedded
from workers.broker.store import Store
from workers.errors import BadConfiguration, WorkerError
from workers.push.ingest import push
from workers.push.sources import Row
from workers.python_process import command, environment

ROOT = Path(__file__).parents[2]  # this checkout, in which its processes run
FEATURES = 20
_PERIOD = 200_000  # examples in which the direction between the drifting classes goes round once
_DISTANCE = 2.2  # between the drifting means: about 650 support vectors of 1,400
_CHUNK = 1000
_START_SECONDS = 60.0  # above any start on a busy machine
_STOP_SECONDS = 30.0
_LOOK_SECONDS = 0.005


def stream(entries: int) -> list[Row]:
    """Return examples of two overlapping classes, the same ones each time."""
    generator = np.random.default_rng(0)
    codes = generator.integers(0, 2, entries)
    X = (generator.normal(size=(entries, FEATURES)) + 0.5 * codes[:, None]).round(4)
    return [Row(x, "ab"[code]) for x, code in zip(X.tolist(), codes.tolist(), strict=True)]


def drifting(entries: int) -> Iterator[Row]:
    """Yield examples of two overlapping normal classes, the same ones each time."""
    generator = np.random.default_rng(0)
    for begin in range(0, entries, _CHUNK):
        angle = 2.0 * np.pi * np.arange(begin, min(begin + _CHUNK, entries)) / _PERIOD
        codes = generator.integers(0, 2, len(angle))
        side = _DISTANCE * (codes - 0.5)
        X = generator.normal(size=(len(angle), FEATURES))
        X[:, :3] += np.column_stack([side * np.cos(angle), side * np.sin(angle), np.sin(angle)])
        for x, code in zip(X.round(4).tolist(), codes.tolist(), strict=True):
            yield Row(x, "ab"[code])


def push_again(store: Store, examples: Iterable[Row]) -> None:
    """Reset a feed and fill its input."""
    reset(store, with_input=True)
    push(examples, store.url, store.keys.feed)


def answered(store: Store) -> int:
    """Return how many entries of a feed were answered."""
    return int(store.call("HGET", store.keys.state, "seq") or 0)


def timed(work: Callable[[], object]) -> float:
    """Return the seconds that work takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


@contextmanager
def server() -> Iterator[str]:
    """Give an embedded Redis that is thrown away; workers here log nothing below warnings."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    try:
        with embedded.temporary() as made:
            yield made.url
    finally:
        structlog.configure(**before)


class WorkerEnded(WorkerError):
    """The measured process ended by itself."""


class Measured:
    """A Python process under measurement, and the file with its standard error."""

    def __init__(self, process: subprocess.Popen[bytes], stderr: IO[bytes]) -> None:
        self.process, self.pid, self._stderr = process, process.pid, stderr

    def failed(self, reason: str) -> WorkerEnded:
        """Return the error for a reason, with the last lines that the process wrote."""
        self._stderr.seek(0)
        lines = self._stderr.read().decode(errors="replace").splitlines()
        return WorkerEnded(f"{reason}: {' | '.join(lines[-5:])}")

    def check(self) -> None:
        """Raise WorkerEnded if the process is gone."""
        if self.process.poll() is not None:
            raise self.failed(f"the process ended with {self.process.returncode}")

    @property
    def processor_seconds(self) -> float:
        """Seconds of processor time of the process and its descendants."""
        return sum(map(seconds_of, family(self.pid)))

    def wait_until(self, is_true: Callable[[], bool]) -> None:
        """Wait for something; raise WorkerEnded if the process ends first, or takes too long."""
        deadline = time.monotonic() + _START_SECONDS
        while not is_true():
            self.check()
            if time.monotonic() > deadline:
                raise self.failed(f"nothing came within {_START_SECONDS:g} s")
            time.sleep(_LOOK_SECONDS)


@contextmanager
def python(*arguments: str) -> Iterator[Measured]:
    """Run this Python with arguments in the block, and stop it gracefully after."""
    with (
        TemporaryFile() as stderr,
        TemporaryDirectory() as state,  # what a worker leaves for later ones
        subprocess.Popen(
            command(*arguments),
            stdin=subprocess.DEVNULL,
            stdout=stderr,
            stderr=stderr,
            cwd=ROOT,
            env=environment() | {"XDG_STATE_HOME": state},
        ) as process,
    ):
        measured = Measured(process, stderr)
        try:
            yield measured
            process.terminate()
            process.wait(_STOP_SECONDS)
        finally:
            process.kill()


def worker(feed: str, url: str, options: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the arguments of the real worker's command, for `python`."""
    return ("-m", "workers.cli", "worker", feed, "--redis", url, "--quiet", *options)


def refit_process(pid: int) -> int | None:
    """Return the process that computes the refits of a worker; None if it has none now."""
    children = _proc(pid, "task", str(pid), "children").split()
    return int(children[0]) if children else None


def resident(pid: int | None) -> int:
    """Return the bytes of memory a process holds; 0 if it is gone."""
    pages = _proc(pid, "statm").split()
    return int(pages[1]) * os.sysconf("SC_PAGE_SIZE") if pages else 0


def is_running(pid: int | None) -> bool:
    """Return whether a process computes, or wants to: it does not sleep."""
    return _proc(pid, "stat").rpartition(")")[2].split()[:1] == ["R"]


def family(pid: int) -> Iterator[int]:
    """Yield a process and all of its descendants."""
    require_proc()
    yield pid
    for thread in Path(f"/proc/{pid}/task").iterdir():  # each thread has children of its own
        for child in (thread / "children").read_text().split():
            yield from family(int(child))


def seconds_of(pid: int) -> float:
    """Return the seconds of processor time that a process has taken, ended threads included."""
    return time.clock_gettime(~pid << 3 | 2)  # as clock_getcpuclockid(3) makes it


def used_cpu(reply: bytes) -> float:
    """Return the seconds of processor time in the reply to `INFO cpu`."""
    found = dict(line.split(":") for line in reply.decode().split() if ":" in line)
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
