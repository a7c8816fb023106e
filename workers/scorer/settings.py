"""The settings of a scorer, and the counts of its work."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from workers.errors import Trouble


@dataclass(frozen=True, slots=True)
class ScorerSettings:
    """Settings of a scorer.

    Attributes
    ----------
    max_stale : int or None
        Examples that the feed may have learned since the state; None for any number.
    claim_after : float
        Seconds after which the requests of a scorer that does not answer are taken over.
    max_wait : float or None
        Seconds that a request may have waited, by the time in its ID; None for any number.
    wait : float
        Seconds to wait for Redis, and for a feed that does not exist yet, at the start.
    """

    max_stale: int | None = 2000
    max_age: float | None = None  # seconds since the state was published; None for any number
    keep: int = 60  # seconds that an answer is kept
    claim_after: float = 5.0
    batch: int = 256  # requests answered at once, at most
    max_wait: float | None = None
    wait: float = 0.0


@dataclass(slots=True)
class ScorerCounts:
    """Counts of a scorer's work so far, and its present state; another thread reads them.

    Attributes
    ----------
    trouble : callable
        Returns why Redis does not answer; None while it does. A scorer waits for it within a
        command, so it can note nothing itself.
    """

    written: int = 0  # answers
    unavailable: int = 0  # of these, answers that say that there is none now
    elsewhere: int = 0  # not written: another scorer had answered, or the request was sent twice
    taken_over: int = 0  # requests of scorers that did not answer them
    states: int = 0  # published states that it read
    n: int | None = None  # examples learned in the state that answers now; None without one
    behind: int = 0  # examples that the feed had learned since, when that was last looked at
    age: float = 0.0  # seconds since that state was published, likewise
    waiting: int = 0  # requests without an answer, when that was last looked at, every few seconds
    stale: str | None = None  # why that state may not answer any more; None while it may
    trouble: Callable[[], Trouble | None] = lambda: None
    is_at_work: bool = False
    turned: float = field(default_factory=time.monotonic)  # when the last turn began
