"""Tail: the newest items of a numbered sequence, in an array that grows."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


class Tail:
    """The newest items of a numbered sequence, the oldest given up on request.

    Parameters
    ----------
    items : ndarray
        Items held at first; rows if it has two axes.
    first : int
        Number of the first of them.

    Examples
    --------
    >>> tail = Tail(np.array([5, 6, 7]), first=10)
    >>> tail.append(np.array([8]))
    >>> tail.drop_before(12)
    >>> tail.since(12), tail.first, tail.stop
    (array([7, 8]), 12, 14)
    >>> tail.extend(1)[0] = 9
    >>> tail.held, len(tail)
    (array([7, 8, 9]), 3)
    """

    def __init__(self, items: NDArray[Any], first: int = 0) -> None:
        self._items = items.copy()
        self._offset = 0  # where the first item lies in the array
        self._size = len(items)
        self.first = first

    @property
    def stop(self) -> int:
        """Number after the last item."""
        return self.first + self._size

    @property
    def held(self) -> NDArray[Any]:
        """All items held; a view that later items do not change."""
        return self._items[self._offset : self._offset + self._size]

    def __len__(self) -> int:
        return self._size

    def append(self, items: NDArray[Any]) -> None:
        """Add items at the end."""
        self.extend(len(items))[:] = items

    def extend(self, count: int) -> NDArray[Any]:
        """Add `count` items at the end, of which the caller writes the values; return them."""
        end = self._offset + self._size
        if end + count > len(self._items):
            self._grow(count)
            end = self._size
        self._size += count
        return self._items[end : end + count]

    def drop_before(self, number: int) -> None:
        """Give up the items numbered below `number`."""
        gone = min(max(number - self.first, 0), self._size)
        self._offset += gone
        self.first += gone
        self._size -= gone

    def since(self, number: int, stop: int | None = None) -> NDArray[Any]:
        """Return the items numbered `number` ... stop - 1 (all from `number` without `stop`)."""
        begin = self._offset + max(number - self.first, 0)
        end = self._offset + (self._size if stop is None else stop - self.first)
        return self._items[begin:end]

    def _grow(self, more: int) -> None:
        held = self.held
        grown = np.zeros((2 * (self._size + more) + 64, *held.shape[1:]), dtype=held.dtype)
        grown[: self._size] = held
        self._items, self._offset = grown, 0
