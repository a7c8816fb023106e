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
        Examples that the feed may have learned since the state; None: no limit.
    claim_after : float
        Seconds after which unanswered requests of another scorer are claimed.
    max_wait : float or None
        Seconds that a request may have waited, by the time in its ID; None: no limit.
    wait : float
        Seconds to wait for Redis, and for a feed that does not exist yet, at the start.
    """

    max_stale: int | None = 2000
    max_age: float | None = None  # seconds since the state was published; None: no limit
    keep: int = 60  # expiry of an answer in seconds
    claim_after: float = 5.0
    batch: int = 256  # most requests answered at once
    max_wait: float | None = None
    wait: float = 0.0


@dataclass(slots=True)
class ScorerCounts:
    """Counts of a scorer's work, and its current status; another thread reads them.

    Attributes
    ----------
    trouble : callable
        Returns why Redis does not answer, if so: a scorer that waits for Redis cannot update a
        field.
    """

    written: int = 0  # answers
    unavailable: int = 0  # answers without a prediction; part of `written`
    elsewhere: int = 0  # not written: another scorer had answered, or the request was sent twice
    taken_over: int = 0  # claimed requests
    states: int = 0  # published states read
    n: int | None = None  # examples learned by the current state; None without a state
    behind: int = 0  # examples that the feed had learned since, as last measured
    age: float = 0.0  # seconds since the current state was published, as last measured
    waiting: int = 0  # unanswered requests, as last measured, every few seconds
    stale: str | None = None  # why the current state is too old, if so
    trouble: Callable[[], Trouble | None] = lambda: None
    is_at_work: bool = False
    turned: float = field(default_factory=time.monotonic)  # start of the last turn
