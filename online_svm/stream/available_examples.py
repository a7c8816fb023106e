"""AvailableExamples: what refits to come may be given of the stream."""

from bisect import bisect_left
from typing import Self

import numpy as np

from online_svm.storage.state import Header, State
from online_svm.stream.cells import widened
from online_svm.stream.tail import Tail
from online_svm.types import Arrays, Floats, Ints


class AvailableExamples:
    """The examples to learn, by number: codes and probabilities, and rows not given away yet.

    They may be ahead of what was answered.

    Parameters
    ----------
    n_labels : int
        Labels that are known before the first example.

    Examples
    --------
    >>> examples = AvailableExamples(n_labels=0)
    >>> examples.append(np.zeros((3, 2)), np.array([0, 0, 1]), np.full(3, np.nan), n_labels=2)
    >>> examples.stop, examples.labels_before(2)
    (3, 1)
    """

    def __init__(self, n_labels: int) -> None:
        self._codes = Tail(np.empty(0, dtype=np.int64))
        self._probs = Tail(np.empty(0))
        self._rows: Tail | None = None
        self._given = 0  # rows before this one were given to a refit
        self._arrivals = [0] * n_labels  # number of the first example of a label
        self._relabelled = False  # a row that was given has another label now

    @property
    def stop(self) -> int:
        """Number after the last example."""
        return self._codes.stop

    def append(self, X: Floats, codes: Ints, probs: Floats, n_labels: int) -> None:
        """Add examples at the end; `n_labels` are known with them.

        Where they have more columns than those before, these get gaps in them.
        """
        if not len(X):
            return
        if self._rows is None:
            self._rows = Tail(np.empty((0, X.shape[1])), first=self.stop)
        elif self._rows.held.shape[1] < X.shape[1]:
            self._rows = Tail(widened(self._rows.held, X.shape[1]), first=self._rows.first)
        for code in range(len(self._arrivals), n_labels):
            self._arrivals.append(self.stop + int(np.argmax(codes == code)))
        self._rows.append(widened(X, self._rows.held.shape[1]))
        self._codes.append(codes)
        self._probs.append(probs)

    def labels_before(self, n: int) -> int:
        """Return how many labels are known from the first n examples."""
        return bisect_left(self._arrivals, n)

    def codes(self, start: int, stop: int) -> Ints:
        """Return the label codes of the examples start ... stop - 1; -1 for a probability."""
        return self._codes.since(start, stop)

    def probs(self, start: int, stop: int) -> Floats:
        """Return their probabilities, NaN for a label."""
        return self._probs.since(start, stop)

    def rows(self, start: int, stop: int) -> Floats:
        """Return their rows, which must not have been dropped."""
        assert self._rows is not None
        return self._rows.since(start, stop)

    def relabel(self, number: int, code: int, n_labels: int) -> None:
        """Give a learned example another label, for the refits to come; `n_labels` are known then.

        One that was dropped stays as it is.
        """
        self._arrivals += [self.stop] * (n_labels - len(self._arrivals))
        if number < self._codes.first:
            return
        self._codes.since(number, number + 1)[0] = code
        self._relabelled |= number < self._given

    def take_relabelled(self) -> bool:
        """Return whether a row that a refit was given has another label since the last call."""
        relabelled, self._relabelled = self._relabelled, False
        return relabelled

    def give(self, start: int, stop: int) -> tuple[int, Floats]:
        """Return the rows before `stop` that no refit was given, and the number of the first.

        Those before `start` are not wanted.
        """
        first, self._given = max(start, self._given), stop
        return first, self.rows(first, stop).copy()

    def drop_given(self) -> None:
        """Give up the rows that a refit was given."""
        assert self._rows is not None
        self._rows.drop_before(self._given)

    def drop_before(self, number: int, *, with_rows: bool) -> None:
        """Give up what is numbered below `number`; rows only where no refit will ask for them."""
        self._codes.drop_before(number)
        self._probs.drop_before(number)
        if with_rows and self._rows is not None:
            self._rows.drop_before(number)

    def begin_anew(self, number: int) -> None:
        """Give up what is numbered below `number`, for a learner that knows nothing of it."""
        self.drop_before(number, with_rows=True)
        self._given, self._relabelled = number, False

    def state(self) -> State:
        """Return the examples, but for the labels' arrivals."""
        header: Header = {"codes_first": self._codes.first, "relabelled": self._relabelled}
        arrays: Arrays = {
            "codes": self._codes.since(self._codes.first),
            "probs": self._probs.since(self._probs.first),
        }
        if self._rows is not None:
            header["rows_first"] = self._rows.first
            arrays["rows"] = self._rows.since(self._rows.first)
        return State(header, arrays)

    @classmethod
    def from_state(cls, state: State, n_labels: int) -> Self:
        """Return the examples that `state` describes; `n_labels` were known with the last.

        Raises
        ------
        LookupError, TypeError, ValueError
            If a part is missing or has no such form.
        """
        header, arrays = state
        restored = cls(n_labels)
        restored._codes = Tail(arrays["codes"], header["codes_first"])
        restored._probs = Tail(arrays["probs"], header["codes_first"])
        restored._relabelled = header["relabelled"] is True
        if "rows" in arrays:
            restored._rows = Tail(arrays["rows"], header["rows_first"])
            restored._given = restored._rows.first
        return restored
