"""A bound on the entries that the next start answers again if this process is killed."""

import heapq

CANDIDATES = 8
"""Feeds that are tried at a time: one with a refit under way cannot leave a snapshot now."""


class ReplayBudget:
    """The entries that the newest snapshot of each feed lacks, and a bound on their sum.

    After a kill, these are the entries that the next start answers again. `SNAPSHOT_EVERY` bounds
    them for each feed; this bounds them for all feeds of a process. Where they are more, the feed
    that lacks the most leaves a snapshot before its time.

    Parameters
    ----------
    most : int
        Entries of all feeds together.

    Attributes
    ----------
    total : int
        Entries that all snapshots lack together.

    Examples
    --------
    >>> budget = ReplayBudget(100)
    >>> budget.note("slow", 20)
    >>> budget.note("hot", 70)
    >>> budget.is_exceeded
    False
    >>> budget.note("hot", 90)
    >>> budget.is_exceeded, budget.total, budget.largest()
    (True, 110, ['hot', 'slow'])
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lacking: dict[str, int] = {}
        self.total = 0

    @property
    def is_exceeded(self) -> bool:
        """Whether a feed should leave a snapshot."""
        return self.total > self._most

    def note(self, feed: str, entries: int) -> None:
        """Note how many entries the newest snapshot of a feed lacks."""
        self.total += entries - self._lacking.get(feed, 0)
        self._lacking[feed] = entries

    def forget(self, feed: str) -> None:
        """Note that a feed is not answered any more."""
        self.total -= self._lacking.pop(feed, 0)

    def largest(self) -> list[str]:
        """Return the feeds whose snapshots lack the most, in order; `CANDIDATES` at most."""
        found = heapq.nlargest(CANDIDATES, self._lacking.items(), key=lambda item: item[1])
        return [feed for feed, entries in found if entries > 0]
