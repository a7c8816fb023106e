"""Progress output: a bar on a terminal, plain lines otherwise."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from workers.cli.common import EVERY

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

Done = TypeVar("Done")


@contextmanager
def push_progress(total: int | None) -> Iterator[Callable[[int], None]]:
    """Yield a function to call with the number of rows sent so far."""
    if not sys.stderr.isatty():
        yield plain_progress(total)
        return
    with _bar(total, "pushing") as (bar, task):
        yield lambda sent: bar.update(task, completed=sent)


@contextmanager
def _bar(total: int | None, text: str) -> "Iterator[tuple[Progress, TaskID]]":
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn(text), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield bar, bar.add_task("", total=total)


@contextmanager
def backtest_progress(
    names: Sequence[str], total: int
) -> Iterator[Callable[[Sequence[int]], None]]:
    """Yield what to call with how many of `total` entries each configuration has answered."""
    if not sys.stderr.isatty():
        yield at_intervals(lambda done: _at_work(names, total, done))
        return
    with _bar(total, "{task.description}") as (bar, first):
        bar.update(first, description=names[0])
        tasks = [first, *(bar.add_task(name, total=total) for name in names[1:])]

        def tell(done: Sequence[int]) -> None:
            for task, count in zip(tasks, done, strict=True):
                bar.update(task, completed=count)

        yield tell


def _at_work(names: Sequence[str], total: int, done: Sequence[int]) -> str:
    """Return how far the configurations at work are; an empty text if none is."""
    places = zip(names, done, strict=True)
    at_work = [f"{name} {count:,}" for name, count in places if 0 < count < total]
    return f"of {total:,}: {', '.join(at_work)}" if at_work else ""


def at_intervals(line: Callable[[Done], str], at_once: bool = False) -> Callable[[Done], None]:
    """Return a function that prints a line on standard error, at most every `EVERY` seconds.

    Parameters
    ----------
    line : callable
        Returns the line; an empty text prints none.
    at_once : bool
        Print the first one at once.
    """
    told = float("-inf") if at_once else time.monotonic()

    def tell(done: Done) -> None:
        nonlocal told
        if time.monotonic() - told < EVERY:
            return
        told = time.monotonic()
        if text := line(done):
            print(text, file=sys.stderr, flush=True)

    return tell


def plain_progress(total: int | None, done: str = "pushed") -> Callable[[int], None]:
    """Return what tells at intervals how many of so many are done."""
    of = ("" if total is None else f" of {total:,}") + f" {done}"
    return at_intervals(lambda count: f"{count:,}{of}")


def waiting_progress(mark: int, mark_bytes: int = 0) -> Callable[[int], None]:
    """Return what tells at intervals how many entries a push waits for.

    Parameters
    ----------
    mark : int
        Entries at which the push began to wait; 0 for none.
    mark_bytes : int
        Bytes of them, in the same way.
    """
    marks = [f"{mark:,}"] * (mark > 0) + [f"{mark_bytes:,} bytes"] * (mark_bytes > 0)
    return at_intervals(
        lambda waiting: (
            f"waiting for the worker: {waiting:,} entries are beyond its cursor (high "
            f"water {' or '.join(marks)})"
        ),
        at_once=True,
    )
