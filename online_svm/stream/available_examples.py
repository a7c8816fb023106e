"""Hold the examples of the stream that future refits may use, in sliding arrays."""

from bisect import bisect_left
from typing import Any

import numpy as np
from numpy.typing import NDArray

from online_svm.storage.state import require
from online_svm.storage.state_schema import StateSchema, Stored, flag, floats, ints, number
from online_svm.stream.cells import widened
from online_svm.types import Floats, Ints


class SlidingArray:
    """The newest items of a numbered sequence; the oldest are dropped on request.

    `items`: the first items; rows if it has two axes.
    `first`: number of the first item.

    Examples
    --------
    >>> items = SlidingArray(np.array([5, 6, 7]), first=10)
    >>> items.append(np.array([8]))
    >>> items.drop_before(12)
    >>> items.since(12), items.first, items.stop
    (array([7, 8]), 12, 14)
    >>> items.extend(1)[0] = 9
    >>> items.held, len(items)
    (array([7, 8, 9]), 3)
    """

    def __init__(self, items: NDArray[Any], first: int = 0) -> None:
        self._items = items.copy()
        self._offset = 0  # index of the first item in the array
        self._size = len(items)
        self.first = first

    @property
    def stop(self) -> int:
        """Number after the last item."""
        return self.first + self._size

    @property
    def held(self) -> NDArray[Any]:
        """All items, as a view; later items do not change it."""
        return self._items[self._offset : self._offset + self._size]

    @held.setter
    def held(self, items: NDArray[Any]) -> None:
        self._items, self._offset, self._size = items, 0, len(items)

    def __len__(self) -> int:
        return self._size

    def append(self, items: NDArray[Any]) -> None:
        """Add items at the end."""
        self.extend(len(items))[:] = items

    def extend(self, count: int) -> NDArray[Any]:
        """Add `count` items at the end and return them; the caller writes their values."""
        end = self._offset + self._size
        if end + count > len(self._items):
            self._grow(count)
            end = self._size
        self._size += count
        return self._items[end : end + count]

    def drop_before(self, number: int) -> None:
        """Drop the items below `number`."""
        count = min(max(number - self.first, 0), self._size)
        self._offset += count
        self.first += count
        self._size -= count

    def since(self, number: int, stop: int | None = None) -> NDArray[Any]:
        """Return the items from `number` to `stop` - 1, or to the end."""
        begin = self._offset + max(number - self.first, 0)
        end = self._offset + (self._size if stop is None else stop - self.first)
        return self._items[begin:end]

    def _grow(self, more: int) -> None:
        held = self.held
        grown = np.zeros((2 * (self._size + more) + 64, *held.shape[1:]), dtype=held.dtype)
        grown[: self._size] = held
        self._items, self._offset = grown, 0


class AvailableExamples(Stored):
    """Numbered examples to learn: label codes, probabilities, and the rows that no refit received.

    The latest examples may be newer than the last answered one.

    `n_labels`: number of labels known before the first example.
    """

    _stored = StateSchema(
        number("_codes.first", stored_as="codes_first"), flag("_relabelled"),
        number("_rows.first", stored_as="rows_first"),
        ints("_codes.held", "n", least=-1, below="._n_labels", stored_as="codes"),
        floats("_probs.held", "n", optional=True, stored_as="probs"),
        floats("_rows.held", "new d", optional=True, stored_as="rows"),
    )  # fmt: skip

    def __init__(self, n_labels: int) -> None:
        self._codes = SlidingArray(np.empty(0, dtype=np.int64))
        self._probs = SlidingArray(np.empty(0))
        self._rows = SlidingArray(np.empty((0, 0)))
        self._given = 0  # number of the first row that no refit has received
        self._arrivals = [0] * n_labels  # number of the first example of each label
        self._relabelled = False  # whether the label of a row in a refit has changed since

    @property
    def _n_labels(self) -> int:
        return len(self._arrivals)

    @property
    def stop(self) -> int:
        """Number after the last example."""
        return self._codes.stop

    def append(self, X: Floats, codes: Ints, probs: Floats, n_labels: int) -> None:
        """Add examples at the end; at most `n_labels` labels are then known.

        New columns are gaps in earlier rows.
        """
        if not len(X):
            return
        if n_labels > len(self._arrivals):  # labels of later examples may have codes already
            n_labels = int(codes.max()) + 1
        if self._rows.held.shape[1] < X.shape[1]:
            self._rows = SlidingArray(widened(self._rows.held, X.shape[1]), first=self._rows.first)
        for code in range(len(self._arrivals), n_labels):
            self._arrivals.append(self.stop + int(np.argmax(codes == code)))
        self._rows.append(widened(X, self._rows.held.shape[1]))
        self._codes.append(codes)
        self._probs.append(probs)

    def labels_before(self, n: int) -> int:
        """Return the number of labels known from the first n examples."""
        return bisect_left(self._arrivals, n)

    def codes(self, start: int, stop: int) -> Ints:
        """Return the label codes of the examples start ... stop - 1; -1 for a probability."""
        return self._codes.since(start, stop)

    def probs(self, start: int, stop: int) -> Floats:
        """Return the probabilities of the examples start ... stop - 1; NaN for a label."""
        return self._probs.since(start, stop)

    def rows(self, start: int, stop: int) -> Floats:
        """Return the rows of the examples start ... stop - 1; they must still be held."""
        return self._rows.since(start, stop)

    def relabel(self, number: int, code: int, n_labels: int) -> None:
        """Change an example's label for future refits, unless the example was dropped.

        `n_labels` labels are then known.
        """
        self._arrivals += [self.stop] * (n_labels - len(self._arrivals))
        if number < self._codes.first:
            return
        self._codes.since(number, number + 1)[0] = code
        self._relabelled |= number < self._given

    def take_relabelled(self) -> bool:
        """Return whether a row in a refit was relabelled since the last call."""
        relabelled, self._relabelled = self._relabelled, False
        return relabelled

    def give(self, start: int, stop: int) -> tuple[int, Floats]:
        """Return the rows start ... stop - 1 that no refit received, after their first number."""
        first, self._given = max(start, self._given), stop
        return first, self.rows(first, stop).copy()

    def drop_given(self) -> None:
        """Drop the rows that a refit has received."""
        self._rows.drop_before(self._given)

    def drop_before(self, number: int, *, with_rows: bool) -> None:
        """Drop the examples below `number`; drop their rows only if no refit needs them."""
        self._codes.drop_before(number)
        self._probs.drop_before(number)
        if with_rows:
            self._rows.drop_before(number)

    def restart(self, number: int) -> None:
        """Drop the examples below `number`, for a new learner that starts there."""
        self.drop_before(number, with_rows=True)
        self._given, self._relabelled = number, False

    def _on_restored(self) -> None:
        self._probs.first = self._codes.first
        self._given = self._rows.first
        require(self._codes.first <= self._rows.first, "rows_first")
        require(self._rows.stop == self.stop, "rows")
