"""Seconds counted in the buckets of a histogram, a few operations each."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

SECONDS = (
    *(1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0),
)
"""Bounds of the buckets: a batch takes milliseconds, a replay may take minutes."""


class Durations:
    """A histogram of durations; one thread writes it, others read.

    Attributes
    ----------
    counts : list of int
        Of durations up to each of `SECONDS` and above the one before; the last of longer ones.
    total : float
        Sum of the durations.

    Examples
    --------
    >>> found = Durations()
    >>> found.observe(0.02)
    >>> found.buckets()[6:8], found.total
    ([('0.01', 0), ('0.025', 1)], 0.02)
    """

    def __init__(self) -> None:
        self.counts = [0] * (len(SECONDS) + 1)
        self.total = 0.0

    def observe(self, seconds: float) -> None:
        """Count a duration."""
        self.counts[bisect_left(SECONDS, seconds)] += 1
        self.total += seconds

    def buckets(self) -> list[tuple[str, float]]:
        """Return bound and cumulative count of each bucket, as Prometheus has them."""
        bounds = [*map(str, SECONDS), "+Inf"]
        return list(zip(bounds, accumulate(self.counts), strict=True))

    @classmethod
    def summed(cls, parts: Sequence["Durations"]) -> "Durations":
        """Return the histogram of all durations."""
        whole = cls()
        for part in parts:
            whole.total += part.total
            whole.counts = [a + b for a, b in zip(whole.counts, part.counts, strict=True)]
        return whole
