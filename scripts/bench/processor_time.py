"""Processor time, user and system, of the processes that answer a feed (Linux: from /proc)."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

from online_svm.refit.task import Refitter
from scripts.bench.processes import require_proc
from workers.broker.store import Store
from workers.refit.process_refitter import ProcessRefitter

_TICK = 1 / os.sysconf("SC_CLK_TCK")


def processor_seconds(store: Store, refits: Refitter) -> dict[str, float]:
    """Return the seconds that each process of a worker has taken since it began.

    The worker is this process. Its refit processes count as one.
    """
    seconds = {"worker": time.process_time(), "Redis": redis_seconds(store)}
    if isinstance(refits, ProcessRefitter):
        seconds["refit process"] = sum(map(seconds_of, family(refits.pid)))
    return seconds


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
    require_proc()
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * _TICK


def redis_seconds(store: Store) -> float:
    """Return the seconds of processor time that Redis has taken, but for its children."""
    lines = store.call("INFO", "cpu").decode().split()
    told = dict(line.split(":") for line in lines if ":" in line)
    return float(told["used_cpu_user"]) + float(told["used_cpu_sys"])
