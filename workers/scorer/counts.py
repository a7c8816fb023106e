"""Counters of a scorer, for those who watch it from another thread."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from workers.trouble import Trouble


def _none() -> None:
    return None


@dataclass(slots=True)
class ScorerCounts:
    """What a scorer did so far, and where it stands.

    Attributes
    ----------
    written, unavailable : int
        Answers that it wrote, and those of them that say that there is none now.
    elsewhere : int
        Answers that it did not write, because another scorer had, or the request was sent twice.
    taken_over : int
        Requests of scorers that did not answer them.
    states : int
        Published states that it read.
    n : int or None
        Examples learned in the state that answers now; None without one.
    behind : int
        Examples that the feed had learned since, when that was last looked at.
    age : float
        Seconds since that state was published, likewise.
    waiting : int
        Requests without an answer, when that was last looked at, every few seconds.
    stale : str or None
        Why that state may not answer any more; None while it may.
    trouble : callable
        Returns why Redis does not answer; None while it does. A scorer waits for it within a
        command, so it can note nothing itself.
    is_at_work : bool
    turned : float
        When the last turn began, by `time.monotonic`.
    """

    written: int = 0
    unavailable: int = 0
    elsewhere: int = 0
    taken_over: int = 0
    states: int = 0
    n: int | None = None
    behind: int = 0
    age: float = 0.0
    waiting: int = 0
    stale: str | None = None
    trouble: Callable[[], Trouble | None] = _none
    is_at_work: bool = False
    turned: float = field(default_factory=time.monotonic)
