"""Fair turns by deficit: a feed that is cheap to serve is never late because another is not.

Deficit round robin (Shreedhar and Varghese, 1995), in seconds of the one thread that serves all: a
feed gets a quantum of them each round, and what it used is taken away. So a hot feed, or one with a
large window, gets as many seconds as any other, and not more because it always has input. As in
RFC 8290, a feed that had nothing to do goes first when it has, for one quantum.
"""

from collections import deque

QUANTUM_SECONDS = 0.005
"""Seconds of a turn: ten to a hundred examples, and well below what people or links notice."""

_MAX_DEBT_QUANTA = 20
"""Quanta of debt, at most: one long refit in this thread does not silence a feed for seconds."""


class FairTurns:
    """Whose turn it is, among those that have something to do; `quantum` seconds each in a round.

    Examples
    --------
    >>> turns = FairTurns(quantum=1.0)
    >>> turns.add("hot")
    >>> served = []
    >>> for _ in range(3):
    ...     item = turns.next()
    ...     served.append(item)
    ...     turns.charge(item, seconds=2.0 if item == "hot" else 0.1, goes_on=item == "hot")
    ...     turns.add("slow")
    >>> served
    ['hot', 'slow', 'slow']
    """

    def __init__(self, quantum: float = QUANTUM_SECONDS) -> None:
        self._quantum = quantum
        self._new: deque[str] = deque()
        self._old: deque[str] = deque()
        self._left: dict[str, float] = {}  # of those in either queue
        self._idle: set[str] = set()  # in the old queue, without anything to do

    def __len__(self) -> int:
        return len(self._left) - len(self._idle)

    def __contains__(self, item: str) -> bool:
        return item in self._left and item not in self._idle

    def add(self, item: str) -> None:
        """Note that an item has something to do."""
        if item in self._left:
            self._idle.discard(item)
            return
        self._left[item] = self._quantum
        self._new.append(item)

    def discard(self, item: str) -> None:
        """Forget an item."""
        if item in self._left:
            self._idle.add(item)

    def next(self) -> str | None:
        """Return whose turn it is; None where none has anything to do."""
        while len(self):
            queue = self._new or self._old
            item = queue[0]
            if item in self._idle:
                queue.popleft()
                self._forget(item)
            elif self._left[item] > 0:
                return item
            else:
                self._left[item] += self._quantum
                queue.popleft()
                self._old.append(item)
        return None

    def charge(self, item: str, seconds: float, goes_on: bool) -> None:
        """Take what an item used; where it has nothing more to do, it ends its turn.

        It then stays among the others for a round. Else one that is idle again and again would go
        first again and again.
        """
        self._left[item] = max(self._left[item] - seconds, -_MAX_DEBT_QUANTA * self._quantum)
        if not goes_on:
            self._idle.add(item)
            if self._new and self._new[0] == item:
                self._old.append(self._new.popleft())

    def _forget(self, item: str) -> None:
        self._idle.discard(item)
        del self._left[item]
