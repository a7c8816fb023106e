"""The last scored examples, in a ring of fixed size, and the weighted sums over all of them."""

from typing import Any, Self

import numpy as np

from online_svm.compiled.elementary import log
from online_svm.compiled.jit import jit
from online_svm.metrics.scores import CLIP
from online_svm.storage.arrays import require
from online_svm.storage.fields import Fields, floats, ints
from online_svm.storage.state import State
from online_svm.stream.labels import sorted_labels
from online_svm.stream.scored_rows import ScoredRows
from online_svm.types import Arrays, Floats, Ints

Classes = tuple[str | None, ...]

# Columns of what is kept of each example, and of the weighted sums.
LOWER, PROBABILITY, UPPER, LOG_LOSS, N_VALUES = range(5)
HIT, BRIER, WEIGHT, N_SUMS = 4, 5, 6, 7


class WindowRing:
    """What windowed figures need of the last `size` scored examples.

    Parameters
    ----------
    size : int
    n_slices : int
        Slices that rows have codes for.

    Attributes
    ----------
    count : int
        Examples added so far.
    classes : tuple of (str or None)
        All classes met, sorted; the slot of labels not seen yet is last.
    point : ndarray of shape (n_classes, size)
        Probability of each class; 0 for a class that was not known.
    truth, label : ndarray of int of shape (size,)
        Index of the true and of the predicted label in `classes`.
    values : ndarray of shape (N_VALUES, size)
        Lower end, probability and upper end of the predicted label; log loss of the true one.
    codes : ndarray of int of shape (n_slices, size)
        Of each slice; -1 for none.
    sums : ndarray of shape (N_SUMS,)
        Weighted sums of `values`, hits and Brier scores, and of the weights.

    Examples
    --------
    >>> ring = WindowRing(10, 0)
    >>> ring.held, ring.classes
    (0, ())
    """

    def __init__(self, size: int, n_slices: int) -> None:
        self.size = size
        self.count = 0
        self.classes: Classes = ()
        self.point = np.zeros((0, size))
        self.truth = np.zeros(size, dtype=np.int64)
        self.label = np.zeros(size, dtype=np.int64)
        self.values = np.zeros((N_VALUES, size))
        self.codes = np.full((n_slices, size), -1, dtype=np.int64)
        self.sums = np.zeros(N_SUMS)
        self._columns: tuple[Classes, Ints] = ((), np.zeros(0, dtype=np.int64))

    @property
    def held(self) -> int:
        """Examples held: they are in the first so many places."""
        return min(self.count, self.size)

    def add(self, rows: ScoredRows) -> None:
        """Add rows, each in the place of the oldest."""
        count = len(rows)
        if not count:
            return
        self._admit(rows.classes)
        codes = rows.slices
        if codes is None:
            codes = np.full((count, len(self.codes)), -1, dtype=np.int64)
        _add_rows(
            self.count,
            1.0 - 2.0 / (self.size + 1.0),  # the mean age of a weight is that in the window
            (self.point, self.truth, self.label, self.values, self.codes, self.sums),
            self._columns[1],
            (
                np.ascontiguousarray(rows.columns),
                np.ascontiguousarray(rows.point),
                np.ascontiguousarray(rows.lower),
                np.ascontiguousarray(rows.upper),
                np.ascontiguousarray(codes),
            ),
        )
        self.count += count

    def _admit(self, classes: Classes) -> None:
        """Make room for the classes of rows to come, and note which is which."""
        if classes == self._columns[0]:
            return
        met = (*self.classes, *classes)
        known = sorted_labels(list({label for label in met if label is not None}))
        both = (*known, None) if None in met else known
        if both != self.classes:
            moved = np.array([both.index(label) for label in self.classes], dtype=np.int64)
            point = np.zeros((len(both), self.size))
            if self.count:
                point[moved] = self.point
                self.truth, self.label = moved[self.truth], moved[self.label]
            self.point, self.classes = point, both
        columns = np.array([both.index(label) for label in classes], dtype=np.int64)
        self._columns = (classes, columns)

    def state(self) -> State:
        """Return what is held, in the places where it is held."""
        held = self.held
        arrays: Arrays = {
            "point": self.point[:, :held].copy(),
            "truth": self.truth[:held].copy(),
            "label": self.label[:held].copy(),
            "values": self.values[:, :held].copy(),
            "codes": self.codes[:, :held].copy(),
            "sums": self.sums.copy(),
        }
        return State({"count": self.count, "classes": list(self.classes)}, arrays)

    @classmethod
    def from_state(cls, state: State, size: int, n_slices: int, most: int) -> Self:
        """Return the ring that `state` describes; codes are at most `most`.

        Raises
        ------
        LookupError, TypeError, ValueError
            If a part is missing or does not fit.
        """
        header, arrays = state
        ring = cls(size, n_slices)
        ring.count, ring.classes = _count(header["count"]), _classes(header["classes"])
        held, k = ring.held, len(ring.classes)
        fields = Fields(
            floats("point", f"{k} {held}"), floats("values", f"{N_VALUES} {held}"),
            ints("truth", f"{held}", below=k), ints("label", f"{held}", below=k),
            ints("codes", f"{n_slices} {held}", least=-1, below=most + 1),
            floats("sums", f"{N_SUMS}"),
        ).values(cls, None, arrays)  # fmt: skip
        ring.sums = fields.pop("sums")
        ring.point = np.zeros((k, size))
        for name, values in fields.items():
            getattr(ring, name)[..., :held] = values
        return ring


def _count(stored: Any) -> int:
    require(type(stored) is int and stored >= 0, "count")
    return int(stored)


def _classes(stored: Any) -> Classes:
    require(isinstance(stored, list), "classes")
    require(all(label is None or isinstance(label, str) for label in stored), "classes")
    require(len(set(stored)) == len(stored), "classes")
    return tuple(stored)


@jit
def _add_rows(
    count: int,
    kept: float,
    ring: tuple[Floats, Ints, Ints, Floats, Ints, Floats],
    to: Ints,
    added: tuple[Ints, Floats, Floats, Floats, Ints],
) -> None:
    """Add rows whose column j stands for class to[j]; `kept` of the weighted sums stays at each."""
    point, truths, labels, values, codes, sums = ring
    truth, rows, lower, upper, slices = added
    size, k = len(truths), len(to)
    for i in range(len(rows)):
        at = (count + i) % size
        # 1. The row, in the columns of the ring; the first of the largest is the predicted label.
        chosen = 0
        for j in range(len(point)):
            point[j, at] = 0.0
        for j in range(k):
            point[to[j], at] = rows[i, j] + 0.0  # -0.0 becomes 0.0
            if rows[i, j] > rows[i, chosen]:
                chosen = j
        truths[at], labels[at] = to[truth[i]], to[chosen]
        for j in range(len(codes)):
            codes[j, at] = slices[i, j]
        # 2. What was announced of that label, and the log loss.
        values[LOWER, at], values[UPPER, at] = lower[i, chosen], upper[i, chosen]
        values[PROBABILITY, at] = rows[i, chosen] + 0.0
        values[LOG_LOSS, at] = -log(max(rows[i, truth[i]], CLIP))
        # 3. The Brier score: of two equal squares only one counts.
        brier = 0.0
        for j in range(1 if k == 2 else 0, k):
            miss = rows[i, j] - (j == truth[i])
            brier += miss * miss
        # 4. The weighted sums.
        for j in range(N_VALUES):
            sums[j] = kept * sums[j] + values[j, at]
        sums[HIT] = kept * sums[HIT] + (chosen == truth[i])
        sums[BRIER] = kept * sums[BRIER] + brier
        sums[WEIGHT] = kept * sums[WEIGHT] + 1.0
