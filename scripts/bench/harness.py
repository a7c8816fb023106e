"""The parts that benchmarks share: examples, a Redis, workers, and what processes use (/proc)."""

import logging
import os
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO, TypeVar

import numpy as np
import structlog

from scripts.command_line import tell
from workers.admin.reset import reset
from workers.broker import embedded
from workers.broker.client import TIMEOUT, client
from workers.broker.store import Store
from workers.config.settings import WorkerSettings
from workers.errors import BadConfiguration, WorkerError
from workers.feed.selection import Selection
from workers.push.ingest import entry
from workers.push.sources import Row
from workers.python_process import command, environment
from workers.refit.pool import RefitPool
from workers.runner import service
from workers.session.answer import Outcome
from workers.session.preflight import open_store
from workers.stop import Stop

ROOT = Path(__file__).parents[2]  # this checkout, in which its processes run
FEATURES = 20
# Examples answered before the clock starts: then the window is full, the early refits are over (the
# last is at 5,120), and every process has started.
WARM_UP = 5376

_PERIOD = 200_000  # examples in which the direction between the drifting classes goes round once
_DISTANCE = 2.2  # between the drifting means: about 650 support vectors of 1,400
_CHUNK = 1000
_TOGETHER = 500  # entries of one pipeline
_START_SECONDS = 60.0  # above any start on a busy machine
_STOP_SECONDS = 30.0
_LOOK_SECONDS = 0.005

Value = TypeVar("Value")


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


def send(url: str, entries: Iterable[tuple[str, Sequence[bytes | str]]]) -> None:
    """Add entries, each a stream and its fields, some hundred at a time."""
    sent = iter(entries)
    with client(url, TIMEOUT) as connected:
        while page := list(islice(sent, _TOGETHER)):
            with connected.pipeline(transaction=False) as pipeline:
                for key, row in page:
                    pipeline.execute_command("XADD", key, "*", *row)
                pipeline.execute()


def push(store: Store, examples: Iterable[Row]) -> None:
    """Reset a feed and fill its input."""
    reset(store, with_input=True)
    send(store.url, ((store.keys.input, entry(row)) for row in examples))


def our_worker(
    url: str,
    feed: str,
    settings: WorkerSettings,
    examples: Sequence[Row],
    at_mark: Callable[[], object] = lambda: None,
    pool: RefitPool | None = None,
) -> float:
    """Return the examples a second of a worker as `online-svm worker` runs it, on a new feed.

    The examples wait when it begins. `WARM_UP` of them are answered before the clock starts, or a
    few more: a batch is not cut. `at_mark` is called where the clock starts and where it ends.
    """
    stop, marks = Stop(), list[tuple[int, float]]()
    goals = [WARM_UP, len(examples)]

    def look(_feed: str, outcome: Outcome) -> None:
        if goals and outcome.after.seq >= goals[0]:
            goals.pop(0)
            at_mark()
            marks.append((outcome.after.seq, time.perf_counter()))
            if not goals:
                stop.request()

    with open_store(feed, settings, url) as store:
        push(store, examples)
    service.Worker(Selection([feed]), settings, url, stop, observe=look, pool=pool).run()
    (first, began), (last, ended) = marks
    return (last - first) / (ended - began)


def answered(store: Store) -> int:
    """Return how many entries of a feed were answered."""
    return int(store.call("HGET", store.keys.state, "seq") or 0)


def answer_bytes(store: Store) -> int:
    """Return the mean length of the newest answers."""
    newest = store.call("XREVRANGE", store.keys.out, "+", "-", "COUNT", 1000)
    return round(sum(len(entry[1][1]) for entry in newest) / len(newest))


def in_turns(tasks: Mapping[str, Callable[[int], Value]], rounds: int) -> dict[str, list[Value]]:
    """Return the results of each task, which take turns: other work falls on all of them."""
    found: dict[str, list[Value]] = {name: [] for name in tasks}
    for number in range(rounds):
        for name, task in tasks.items():
            tell(f"round {number + 1} of {rounds}: {name}")
            found[name].append(task(number))
    return found


def timed(work: Callable[[], Value]) -> tuple[float, Value]:
    """Return the seconds that work takes, and what it returns."""
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


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

    def kill(self) -> None:
        """End the process at once, as a crash does."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """Ask the process to stop, and wait until it has."""
        self.process.terminate()
        self.process.wait(_STOP_SECONDS)

    @property
    def processor_seconds(self) -> float:
        """Seconds of processor time of the process and its descendants."""
        return sum(map(seconds_of, family(self.pid)))

    def wait_until(
        self,
        is_true: Callable[[], bool],
        seconds: float = _START_SECONDS,
        late: str = "nothing came within {:g} s",
        look: float = _LOOK_SECONDS,
    ) -> None:
        """Wait for something; raise WorkerEnded if the process ends first, or takes too long."""
        deadline = time.monotonic() + seconds
        while not is_true():
            self.check()
            if time.monotonic() > deadline:
                raise self.failed(late.format(seconds))
            time.sleep(look)


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
            measured.stop()
        finally:
            process.kill()


def worker(feeds: str | Sequence[str], url: str, options: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the arguments of the real worker's command, for `python`."""
    names = (feeds,) if isinstance(feeds, str) else feeds
    return ("-m", "workers.cli", "worker", *names, "--redis", url, "--quiet", *options)


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
    return _status(pid)[:1] == ["R"]


def family(pid: int) -> Iterator[int]:
    """Yield a process and all of its descendants."""
    require_proc()
    yield pid
    for thread in Path(f"/proc/{pid}/task").iterdir():  # each thread has children of its own
        for child in (thread / "children").read_text().split():
            yield from family(int(child))


def seconds_of(pid: int) -> float:
    """Return the seconds of processor time that a process has taken, ended threads included."""
    fields = _status(pid)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def redis_seconds(store: Store) -> float:
    """Return the seconds of processor time that Redis has taken, but for its children."""
    return used_cpu(store.call("INFO", "cpu"))


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


def _status(pid: int | None) -> list[str]:
    return _proc(pid, "stat").rpartition(")")[2].split()
