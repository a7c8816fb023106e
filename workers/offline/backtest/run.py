"""Configurations in parallel processes, each over the whole history."""

import os
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import parent_process
from multiprocessing.connection import wait as wait_for
from typing import Any

from threadpoolctl import (  # type: ignore[import-untyped]  # ships no type information
    threadpool_limits,
)

from workers.errors import WorkerError
from workers.offline.backtest.configurations import Configuration
from workers.offline.backtest.history import Recording, read
from workers.offline.backtest.kept_results import KeptResults, key
from workers.offline.backtest.prequential import answer
from workers.offline.backtest.result import BacktestResult, result_of
from workers.python_process import spawning

POLL_SECONDS = 0.2  # seconds between two looks at how far the processes are

Progress = Callable[[Sequence[int]], None]
"""Called with the number of entries that each configuration has answered."""

Finish = Callable[[int, BacktestResult], None]  # takes the place of a configuration, and its result

Compute = Callable[[Sequence[Configuration], Sequence[int], Recording, Finish, Progress], None]
"""Computes the configurations at some places, and hands over each result when it is there."""


class BacktestInterrupted(KeyboardInterrupt):
    """The user pressed Ctrl-C when `finished` configurations had a result."""

    def __init__(self, finished: int) -> None:
        super().__init__()
        self.finished = finished


class ProcessDied(WorkerError):
    """A process of the backtest ended before it was done."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A configuration and its result."""

    configuration: Configuration
    result: BacktestResult
    was_kept: bool  # whether an earlier run computed it


def run(
    configurations: Sequence[Configuration],
    recording: Recording,
    kept: KeptResults | None = None,
    processes: int | None = None,
    told: Progress = lambda _: None,
    compute: Compute | None = None,
) -> list[Finished]:
    """Answer a history under each configuration; return the results in the same order.

    Results are taken from `kept`, and kept as soon as they are there. There are at most
    `processes`, by default one a processor; `compute` computes elsewhere. `told` is called now and
    then with how many entries each configuration has answered.

    Raises BacktestInterrupted if the user pressed Ctrl-C; no process is left then. Raises
    ProcessDied if a process was killed, or ran out of memory.
    """
    keys = [key(configuration, recording) for configuration in configurations]
    found = {name: result for name in keys if kept and (result := kept.get(name)) is not None}
    before = frozenset(found)
    waiting = [i for i, name in enumerate(keys) if name not in found and keys.index(name) == i]

    def finish(place: int, result: BacktestResult) -> None:
        found[keys[place]] = result
        if kept is not None:
            kept.add(keys[place], configurations[place], result)

    if waiting:
        limit = min(processes or len(os.sched_getaffinity(0)), len(waiting))
        try:
            if compute is not None:
                compute(configurations, waiting, recording, finish, told)
            else:
                _compute(configurations, waiting, recording, limit, finish, told)
        except KeyboardInterrupt:
            raise BacktestInterrupted(len(found)) from None
        except BrokenProcessPool:
            raise ProcessDied(
                "a process of the backtest was killed, or ran out of memory; fewer at a time need "
                "less of it: --processes 1"
            ) from None
    return [
        Finished(configuration, found[name], name in before)
        for configuration, name in zip(configurations, keys, strict=True)
    ]


def _compute(
    configurations: Sequence[Configuration],
    waiting: Sequence[int],
    recording: Recording,
    processes: int,
    finish: Finish,
    told: Progress,
) -> None:
    """Compute the configurations at some places, and hand over each result when it is there."""
    context = spawning()
    cancelled, done = context.Event(), context.RawArray("q", len(configurations))
    with ProcessPoolExecutor(processes, context, _begin, (cancelled, done)) as pool:
        try:
            futures: dict[Future[BacktestResult | None], int] = {
                pool.submit(_measure, place, configurations[place], recording): place
                for place in waiting
            }
            pending = set(futures)
            while pending:
                finished, pending = wait(pending, POLL_SECONDS, FIRST_COMPLETED)
                for future in finished:
                    result = future.result()
                    assert result is not None  # only who cancels gets none
                    finish(futures[future], result)
                told(list(done))
        except BaseException:
            cancelled.set()
            pool.shutdown(wait=True, cancel_futures=True)
            raise


class _Cancelled(Exception):
    """Ignore progress: no caller waits for it."""


_shared: dict[str, Any] = {}
"""In a process of the pool: what all of them share with the one that began them."""


def _begin(cancelled: Any, done: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that began this one
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _shared.update(cancelled=cancelled, done=done)


def _end_with_parent() -> None:
    """End this process when its parent has ended, which alone gives it work."""
    parent = parent_process()
    if parent is not None:
        wait_for([parent.sentinel])
        os._exit(1)


def _measure(
    place: int, configuration: Configuration, recording: Recording
) -> BacktestResult | None:
    """Return the result of one configuration; None if it was cancelled."""

    def told(entries: int) -> None:
        _shared["done"][place] = entries
        if _shared["cancelled"].is_set():
            raise _Cancelled

    try:
        with threadpool_limits(1):  # the processes share the processors already
            return result_of(answer(configuration, read(recording.path), told))
    except _Cancelled:
        return None
