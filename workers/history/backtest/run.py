"""Configurations in parallel processes, each over the whole history."""

import os
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait as wait_for
from typing import Any

from threadpoolctl import (  # type: ignore[import-untyped]  # ships no type information
    threadpool_limits,
)

from workers.errors import WorkerError
from workers.history.backtest.configurations import Configuration
from workers.history.backtest.kept_results import KeptResults, key
from workers.history.backtest.prequential import answer, load_code
from workers.history.backtest.recording import Recording, read
from workers.history.backtest.result import Result, result_of

POLL = 0.2
"""Seconds between two looks at how far the processes are."""

Progress = Callable[[Sequence[int]], None]
"""Is told how many entries each configuration has answered."""

Finish = Callable[[int, Result], None]
"""Takes the place of a configuration, and its result."""

Compute = Callable[[Sequence[Configuration], Sequence[int], Recording, Finish, Progress], None]
"""Computes the configurations at some places, and hands over each result when it is there."""


class BacktestInterrupted(KeyboardInterrupt):
    """The user pressed Ctrl-C.

    Attributes
    ----------
    finished : int
        Configurations whose result is there.
    """

    def __init__(self, finished: int) -> None:
        super().__init__()
        self.finished = finished


class ProcessDied(WorkerError):
    """A process of the backtest ended before it was done."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A configuration and its result.

    Attributes
    ----------
    configuration : Configuration
    result : Result
    was_kept : bool
        Whether an earlier run computed it.
    """

    configuration: Configuration
    result: Result
    was_kept: bool


def run(
    configurations: Sequence[Configuration],
    recording: Recording,
    kept: KeptResults | None = None,
    processes: int | None = None,
    told: Progress = lambda _: None,
    compute: Compute | None = None,
) -> list[Finished]:
    """Answer a history under each configuration; return the results in the same order.

    Parameters
    ----------
    configurations : sequence of Configuration
    recording : Recording
    kept : KeptResults, optional
        Where results are taken from, and kept in as soon as they are there.
    processes : int, optional
        By default one a processor; never more than there is to compute.
    told : callable
        Called now and then with how many entries each configuration has answered.
    compute : callable, optional
        Computes elsewhere, in place of processes of this machine.

    Raises
    ------
    BacktestInterrupted
        If the user pressed Ctrl-C; no process is left then.
    ProcessDied
        If a process was killed, or ran out of memory.
    """
    keys = [key(configuration, recording) for configuration in configurations]
    found = {name: result for name in keys if kept and (result := kept.get(name)) is not None}
    before = frozenset(found)
    waiting = [i for i, name in enumerate(keys) if name not in found and keys.index(name) == i]

    def finish(place: int, result: Result) -> None:
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
    context = get_context("spawn")
    cancelled, done = context.Event(), context.RawArray("q", len(configurations))
    with ProcessPoolExecutor(processes, context, _begin, (cancelled, done)) as pool:
        try:
            futures: dict[Future[Result | None], int] = {
                pool.submit(_measure, place, configurations[place], recording): place
                for place in waiting
            }
            pending = set(futures)
            while pending:
                finished, pending = wait(pending, POLL, FIRST_COMPLETED)
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
    """Nobody waits for the result."""


_shared: dict[str, Any] = {}
"""In a process of the pool: what all of them share with the one that began them."""


def _begin(cancelled: Any, done: Any) -> None:
    """Prepare a process of the pool."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that began this one
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _shared.update(cancelled=cancelled, done=done)


def _end_with_parent() -> None:
    """End this process when its parent has ended, which alone gives it work."""
    parent = parent_process()
    if parent is not None:
        wait_for([parent.sentinel])
        os._exit(1)


def _measure(place: int, configuration: Configuration, recording: Recording) -> Result | None:
    """Return the result of one configuration; None if it was cancelled."""

    def told(entries: int) -> None:
        _shared["done"][place] = entries
        if _shared["cancelled"].is_set():
            raise _Cancelled

    try:
        load_code(configuration, read(recording.path))
        with threadpool_limits(1):  # the processes share the processors already
            return result_of(answer(configuration, read(recording.path), told))
    except _Cancelled:
        return None
