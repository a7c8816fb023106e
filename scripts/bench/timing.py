"""Seconds: of one piece of work, of the best of several, and of the methods within a longer run."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, TypeVar

Result = TypeVar("Result")

Part = tuple[Any, str, str]
"""An object, the name of one of its functions, and the part of the run that it belongs to."""


def timed(work: Callable[[], Result]) -> tuple[float, Result]:
    """Return the seconds that work takes, and what it returns.

    Examples
    --------
    >>> timed(lambda: "done")[1]
    'done'
    """
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def best_of(repeats: int, work: Callable[[], Result]) -> tuple[float, Result]:
    """Return the least seconds that work takes, with what it returned then.

    Other work on the machine can only add to a time, so the least one is the nearest.
    """
    return min((timed(work) for _ in range(repeats)), key=lambda pair: pair[0])


@dataclass(slots=True)
class Stopwatch:
    """Adds up the seconds spent under `running`."""

    seconds: float = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count the time of the block."""
        began = time.perf_counter()
        yield
        self.seconds += time.perf_counter() - began


@dataclass(slots=True)
class PartClock:
    """Seconds spent in each part; that of a part within another is not in the other's.

    Attributes
    ----------
    spent : dict of str to float
    closed : str
        A part whose own parts are not told from it.
    """

    closed: str = ""
    spent: dict[str, float] = field(default_factory=dict)
    _within: list[str] = field(default_factory=list)
    _since: float = 0.0

    def enter(self, part: str) -> None:
        """Stop the clock of the part around, and start this one's."""
        self._charge()
        self._within.append(self.closed if self.closed in self._within[-1:] else part)

    def leave(self) -> None:
        """Stop the clock of the innermost part."""
        self._charge()
        self._within.pop()

    def _charge(self) -> None:
        now = time.perf_counter()
        if self._within:
            part = self._within[-1]
            self.spent[part] = self.spent.get(part, 0.0) + now - self._since
        self._since = now


@contextmanager
def watched(parts: Iterable[Part], clock: PartClock) -> Iterator[None]:
    """Time functions for the block, from outside: otherwise the clock costs them nothing."""
    with ExitStack() as stack:
        for owner, name, part in parts:
            plain, is_own = getattr(owner, name), name in vars(owner)
            setattr(owner, name, _timing(plain, part, clock))
            if is_own:
                stack.callback(setattr, owner, name, plain)
            else:
                stack.callback(delattr, owner, name)
        yield


def _timing(function: Callable[..., Any], part: str, clock: PartClock) -> Callable[..., Any]:
    @wraps(function)
    def timing(*args: Any, **options: Any) -> Any:
        clock.enter(part)
        try:
            return function(*args, **options)
        finally:
            clock.leave()

    return timing
