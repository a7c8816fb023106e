"""The settings of a scorer."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ScorerSettings:
    """How a scorer works.

    Attributes
    ----------
    max_stale : int or None
        Examples that the feed may have learned since the state; None for any number.
    max_age : float or None
        Seconds since the state was published; None for any number.
    keep : int
        Seconds that an answer is kept.
    claim_after : float
        Seconds after which the requests of a scorer that does not answer are taken over.
    batch : int
        Requests answered at once, at most.
    max_wait : float or None
        Seconds that a request may have waited, by the time in its ID; None for any number.
    wait : float
        Seconds to wait for Redis, and for a feed that does not exist yet, at the start.
    """

    max_stale: int | None = 2000
    max_age: float | None = None
    keep: int = 60
    claim_after: float = 5.0
    batch: int = 256
    max_wait: float | None = None
    wait: float = 0.0
