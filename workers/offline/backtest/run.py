"""Run configurations in parallel processes, each over the whole history."""

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
from workers.offline.backtest.history import RecordedEntries, read
from workers.offline.backtest.kept_results import KeptResults, key
from workers.offline.backtest.prequential import Configuration, answer
from workers.offline.backtest.result import BacktestResult, result_of
from workers.python_process import spawning

POLL_SECONDS = 0.2  # time between two reports of progress

Progress = Callable[[Sequence[int]], None]
"""Called with the number of entries that each configuration has answered."""

Finish = Callable[[int, BacktestResult], None]  # called with the index of a configuration

Compute = Callable[
    [Sequence[Configuration], Sequence[int], RecordedEntries, Finish, Progress], None
]
"""Computes the configurations at some indices, and calls `Finish` with each result."""


class BacktestInterrupted(KeyboardInterrupt):
    """The user pressed Ctrl-C after `finished` configurations had a result."""

    def __init__(self, finished: int) -> None:
        super().__init__()
        self.finished = finished


class ProcessDied(WorkerError):
    """A process of the backtest ended without a result."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A configuration and its result."""

    configuration: Configuration
    result: BacktestResult
    was_kept: bool  # whether an earlier run computed it


def run(
    configurations: Sequence[Configuration],
    recording: RecordedEntries,
    kept: KeptResults | None = None,
    processes: int | None = None,
    progress: Progress = lambda _: None,
    compute: Compute | None = None,
) -> list[Finished]:
    """Answer a history under each configuration; return the results in the same order.

    Results are read from `kept`, and each new result is added at once. At most `processes` run at a
    time, by default one a processor, unless `compute` computes elsewhere. `progress` is called now
    and then.

    Raises BacktestInterrupted after Ctrl-C, when all processes have ended; ProcessDied if a process
    was killed, or ran out of memory.
    """
    keys = [key(configuration, recording) for configuration in configurations]
    found = {name: result for name in keys if kept and (result := kept.get(name)) is not None}
    before = frozenset(found)
    waiting = [i for i, name in enumerate(keys) if name not in found and keys.index(name) == i]

    def finish(index: int, result: BacktestResult) -> None:
        found[keys[index]] = result
        if kept is not None:
            kept.add(keys[index], configurations[index], result)

    if waiting:
        limit = min(processes or len(os.sched_getaffinity(0)), len(waiting))
        try:
            if compute is not None:
                compute(configurations, waiting, recording, finish, progress)
            else:
                _compute(configurations, waiting, recording, limit, finish, progress)
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
    recording: RecordedEntries,
    processes: int,
    finish: Finish,
    progress: Progress,
) -> None:
    """Compute the configurations at some indices in processes; see `Compute`."""
    context = spawning()
    cancelled, done = context.Event(), context.RawArray("q", len(configurations))
    with ProcessPoolExecutor(processes, context, _begin, (cancelled, done)) as pool:
        try:
            futures: dict[Future[BacktestResult | None], int] = {
                pool.submit(_measure, index, configurations[index], recording): index
                for index in waiting
            }
            pending = set(futures)
            while pending:
                finished, pending = wait(pending, POLL_SECONDS, FIRST_COMPLETED)
                for future in finished:
                    result = future.result()
                    assert result is not None  # only a cancelled one is None
                    finish(futures[future], result)
                progress(list(done))
        except BaseException:
            cancelled.set()
            pool.shutdown(wait=True, cancel_futures=True)
            raise


class _Cancelled(Exception):
    """Ends the run of a configuration whose result is no longer needed."""


_shared: dict[str, Any] = {}
"""In a process of the pool: the event `cancelled` and the array `done`, shared with the parent."""


def _begin(cancelled: Any, done: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _shared.update(cancelled=cancelled, done=done)


def _end_with_parent() -> None:
    """End this process when its parent has ended."""
    parent = parent_process()
    if parent is not None:
        wait_for([parent.sentinel])
        os._exit(1)


def _measure(
    index: int, configuration: Configuration, recording: RecordedEntries
) -> BacktestResult | None:
    """Return the result of one configuration; None if it was cancelled."""

    def progress(entries: int) -> None:
        _shared["done"][index] = entries
        if _shared["cancelled"].is_set():
            raise _Cancelled

    try:
        with threadpool_limits(1):  # the processes already use all processors
            return result_of(answer(configuration, read(recording.path), progress))
    except _Cancelled:
        return None
