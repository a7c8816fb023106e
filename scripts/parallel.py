"""Independent tasks on all processors, results in order."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import TypeVar

from workers.python_process import spawning

Task = TypeVar("Task")
Result = TypeVar("Result")


def each(
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    tell: Callable[[str], None] = lambda _: None,
) -> list[Result]:
    """Return `function` of each task, in their order; one line of progress a task."""
    processes = min(len(os.sched_getaffinity(0)), len(tasks))
    if processes < 2:
        return _collected(map(function, tasks), tasks, tell)
    with ProcessPoolExecutor(processes, mp_context=spawning()) as pool:
        return _collected(pool.map(function, tasks), tasks, tell)


def each_as_it_ends(
    function: Callable[[Task], Result], tasks: Sequence[Task], jobs: int
) -> Iterator[tuple[Task, Result]]:
    """Yield each task with `function` of it as soon as it has ended, by so many processes."""
    if jobs < 2 or len(tasks) < 2:
        yield from ((task, function(task)) for task in tasks)
        return
    with ProcessPoolExecutor(min(jobs, len(tasks)), mp_context=spawning()) as pool:
        begun = {pool.submit(function, task): task for task in tasks}
        try:
            for future in as_completed(begun):
                yield begun[future], future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _collected(
    results: Iterable[Result], tasks: Sequence[Task], tell: Callable[[str], None]
) -> list[Result]:
    collected = []
    for number, (task, result) in enumerate(zip(tasks, results, strict=True), start=1):
        tell(f"{number} of {len(tasks)}: {task}")
        collected.append(result)
    return collected
