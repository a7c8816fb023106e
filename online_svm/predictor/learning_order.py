"""The order in which rows are answered and learned."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from online_svm.predictor.label_steps import LabelStep
from online_svm.predictor.pending_examples import PendingExample
from online_svm.stream.label_counts import LabelCounts
from online_svm.types import Bools, Floats, Ints

_ROWS = ("answer", "learn", "give_up", "label")
"""Kinds of steps that are a row."""


@dataclass(frozen=True, slots=True, eq=False)
class LateRows:
    """What happens to each row where labels come late.

    Attributes
    ----------
    examples : sequence of m PendingExample
    answers : ndarray of bool, shape (m,)
        Whether the row is answered here; else it was answered before.
    opens : ndarray of shape (m,)
        1 where an answer without a label begins to wait for it, -1 where it waits no longer.
    """

    examples: Sequence[PendingExample]
    answers: Bools
    opens: Ints

    def part(self, begin: int, stop: int) -> "LateRows":
        """Return rows begin ... stop - 1."""
        rows = slice(begin, stop)
        return LateRows(self.examples[rows], self.answers[rows], self.opens[rows])

    def chosen(self, mask: Bools) -> list[PendingExample]:
        """Return the examples of some rows."""
        return [self.examples[row] for row in np.flatnonzero(mask).tolist()]


@dataclass(frozen=True, slots=True, eq=False)
class LearningOrder:
    """Rows in the order in which they are answered and learned.

    Where a label comes with its example, each row is answered and then learned. Where labels come
    late, the same example is answered in one row and learned in another.

    Attributes
    ----------
    X : ndarray of shape (m, n_features)
    codes : ndarray of shape (m,)
        Codes of the labels to learn; -1 where there is none.
    probs : ndarray of shape (m,)
        Probabilities in the place of labels; NaN where there is none.
    learns : ndarray of bool, shape (m,)
        Whether a label or a probability is learned.
    gaps : ndarray of bool, shape (m,)
        Whether it is certain now that an example is not learned.
    before : ndarray of shape (m,)
        Examples learned before each row.
    slices : ndarray of shape (m, n_slices)
        Codes of the values of the slices.
    late : LateRows or None
        None where a label comes with its example.
    learns_all : bool
        Whether each row is learned; then none is a gap.
    given : ndarray of shape (m, n_classes, 3), or None
        Answers to be scored in place of the own ones; see `given_columns`.

    Examples
    --------
    >>> codes, probs = np.array([0, -1, 1]), np.full(3, np.nan)
    >>> order = LearningOrder.at_once(np.zeros((3, 2)), codes, probs, n=7)
    >>> order.before.tolist(), order.part(1, 3).learns.tolist(), order.part(0, 2).after
    ([7, 8, 8], [False, True], 8)
    """

    X: Floats
    codes: Ints
    probs: Floats
    learns: Bools
    gaps: Bools
    before: Ints
    slices: Ints
    learns_all: bool
    late: LateRows | None = None
    given: Floats | None = None

    @classmethod
    def at_once(
        cls,
        X: Floats,
        codes: Ints,
        probs: Floats,
        n: int,
        slices: Ints | None = None,
        given: Floats | None = None,
    ) -> Self:
        """Return the order in which a row is learned right after its answer; n were before."""
        learns = codes >= 0
        learns_all = bool(learns.all())
        if learns_all:  # most batches
            before = np.arange(n, n + len(codes))
        else:
            learns |= ~np.isnan(probs)
            learns_all = bool(learns.all())
            before = n + np.cumsum(learns) - learns
        of_rows = np.empty((len(X), 0), dtype=np.int64) if slices is None else slices
        return cls(X, codes, probs, learns, ~learns, before, of_rows, learns_all, given=given)

    @classmethod
    def of_steps(cls, steps: Sequence[LabelStep], codes: Ints, n: int) -> Self:
        """Return the order that steps say; `codes` are those of what they learn, n were before."""
        rows = [step for step in steps if step.kind in _ROWS]
        examples = [step.example for step in rows if step.example is not None]
        kinds = np.array([_ROWS.index(step.kind) for step in rows], dtype=np.int64)
        answers, learns, gaps = kinds == 0, kinds == 1, kinds == 2
        of_rows = np.full(len(rows), -1, dtype=np.int64)
        of_rows[learns] = codes
        probs = np.array([example.probability for example in examples])
        probs[~learns] = np.nan
        opens = np.array([step.opens for step in rows], dtype=np.int64)
        return cls(
            np.array([example.x for example in examples]),
            of_rows,
            probs,
            learns,
            gaps,
            n + np.cumsum(learns) - learns,
            np.array([example.slices for example in examples], dtype=np.int64),
            bool(learns.all()),
            LateRows(examples, answers, opens),
        )

    def __len__(self) -> int:
        return len(self.before)

    @property
    def after(self) -> int:
        """Examples learned with the last row, of which there must be one."""
        return int(self.before[-1]) + int(self.learns[-1])

    def of_learned(self, values: Sequence[int]) -> Sequence[int]:
        """Return those of some values, one a row, that belong to rows that are learned."""
        if self.learns_all:
            return values
        return [values[row] for row in np.flatnonzero(self.learns).tolist()]

    def part(self, begin: int, stop: int) -> "LearningOrder":
        """Return rows begin ... stop - 1; the arrays are views."""
        if begin == 0 and stop == len(self):
            return self
        late = None if self.late is None else self.late.part(begin, stop)
        return self._taken(slice(begin, stop), late)

    def learned(self) -> "LearningOrder":
        """Return the rows that are learned, without what else happens."""
        return self if self.learns_all and self.late is None else self._taken(self.learns)

    def computed(self, answers: Bools) -> "LearningOrder":
        """Return the rows that a model has to do with: what is answered or learned."""
        return self._taken(self.learns | answers)

    def _taken(self, chosen: slice | Bools, late: LateRows | None = None) -> "LearningOrder":
        learns = self.learns[chosen]
        return LearningOrder(
            self.X[chosen],
            self.codes[chosen],
            self.probs[chosen],
            learns,
            self.gaps[chosen],
            self.before[chosen],
            self.slices[chosen],
            self.learns_all or bool(learns.all()),
            late,
            None if self.given is None else self.given[chosen],
        )


def report_counts(steps: Sequence[LabelStep]) -> list[LabelCounts]:
    """Return the counts of the reports among some steps, in order."""
    return [step.counts for step in steps if step.counts is not None]
