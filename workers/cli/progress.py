"""Progress output: a bar on a terminal, plain lines otherwise."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from workers.cli.common import EVERY

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


@contextmanager
def push_progress(total: int | None) -> Iterator[Callable[[int], None]]:
    """Yield a function to call with the number of rows sent so far."""
    if not sys.stderr.isatty():
        yield PlainProgress(total)
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
        yield PlainBacktest(names, total)
        return
    with _bar(total, "{task.description}") as (bar, first):
        bar.update(first, description=names[0])
        tasks = [first, *(bar.add_task(name, total=total) for name in names[1:])]

        def tell(done: Sequence[int]) -> None:
            for task, count in zip(tasks, done, strict=True):
                bar.update(task, completed=count)

        yield tell


class PlainBacktest:
    """Tells every two seconds how far the configurations at work are.

    Parameters
    ----------
    names : sequence of str
    total : int
        Entries that each of them answers.
    """

    def __init__(self, names: Sequence[str], total: int) -> None:
        self._names, self._total = names, total
        self._told = time.monotonic()

    def __call__(self, done: Sequence[int]) -> None:
        """Print a line if one is due."""
        if time.monotonic() - self._told < EVERY:
            return
        self._told = time.monotonic()
        places = zip(self._names, done, strict=True)
        at_work = [f"{name} {count:,}" for name, count in places if 0 < count < self._total]
        if at_work:
            print(f"of {self._total:,}: {', '.join(at_work)}", file=sys.stderr, flush=True)


class PlainProgress:
    """Prints a line every two seconds; call it with the number done so far.

    Parameters
    ----------
    total : int, optional
        How many there are.
    done : str
        What is done to them.
    """

    def __init__(self, total: int | None, done: str = "pushed") -> None:
        self._of = ("" if total is None else f" of {total:,}") + f" {done}"
        self._told = time.monotonic()

    def __call__(self, sent: int) -> None:
        """Print a line if one is due."""
        if time.monotonic() - self._told >= EVERY:
            print(f"{sent:,}{self._of}", file=sys.stderr, flush=True)
            self._told = time.monotonic()


def waiting_progress(mark: int, mark_bytes: int = 0) -> Callable[[int], None]:
    """Return a function that prints, at intervals, how many entries a push waits for.

    Parameters
    ----------
    mark : int
        Entries at which the push began to wait; 0 for none.
    mark_bytes : int
        Bytes of them, in the same way.
    """
    marks = [f"{mark:,}"] * (mark > 0) + [f"{mark_bytes:,} bytes"] * (mark_bytes > 0)
    told = float("-inf")

    def tell(waiting: int) -> None:
        nonlocal told
        if time.monotonic() - told >= EVERY:
            print(
                f"waiting for the worker: {waiting:,} entries are beyond its cursor (high water "
                f"{' or '.join(marks)})",
                file=sys.stderr,
                flush=True,
            )
            told = time.monotonic()

    return tell
