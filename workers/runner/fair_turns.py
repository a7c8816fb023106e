"""Fair turns: a feed that is cheap to serve is not delayed by expensive ones.

Deficit round robin (Shreedhar and Varghese, 1995) over the seconds of one thread: each round adds a
quantum to a feed's credit, and its turns are charged to it. So a feed with much input, or with
expensive answers, gets as many seconds as any other. As in RFC 8290, a feed that was idle goes
first, for one quantum.
"""

from collections import deque

QUANTUM_SECONDS = 0.005
"""Seconds of a turn: ten to a hundred examples, well below the latency of a network."""

_MAX_DEBT_QUANTA = 20
"""Limit of a feed's debt, so that one long refit in this thread does not stop it for seconds."""


class FairTurns:
    """Decides whose turn it is among the items with work; each gets `quantum` seconds a round."""

    def __init__(self, quantum: float = QUANTUM_SECONDS) -> None:
        self._quantum = quantum
        self._new: deque[str] = deque()
        self._old: deque[str] = deque()
        self._credit: dict[str, float] = {}  # of the items in either queue, in seconds
        self._idle: set[str] = set()  # items in a queue that have no work

    def __len__(self) -> int:
        return len(self._credit) - len(self._idle)

    def __contains__(self, item: str) -> bool:
        return item in self._credit and item not in self._idle

    def add(self, item: str) -> None:
        """Add an item that has work."""
        if item in self._credit:
            self._idle.discard(item)
            return
        self._credit[item] = self._quantum
        self._new.append(item)

    def discard(self, item: str) -> None:
        """Mark an item as idle."""
        if item in self._credit:
            self._idle.add(item)

    def next(self) -> str | None:
        """Return whose turn it is; None if no item has work."""
        while len(self):
            queue = self._new or self._old
            item = queue[0]
            if item in self._idle:
                queue.popleft()
                self._idle.discard(item)
                del self._credit[item]
            elif self._credit[item] > 0:
                return item
            else:
                self._credit[item] += self._quantum
                queue.popleft()
                self._old.append(item)
        return None

    def charge(self, item: str, seconds: float, has_more: bool) -> None:
        """Charge an item for its turn; without more work it ends its turn.

        It then stays in the old queue for a round: an item that is idle again and again would
        otherwise go first each time.
        """
        self._credit[item] = max(self._credit[item] - seconds, -_MAX_DEBT_QUANTA * self._quantum)
        if not has_more:
            self._idle.add(item)
            if self._new and self._new[0] == item:
                self._old.append(self._new.popleft())
