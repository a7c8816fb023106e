"""Steps of examples and labels, and the order in which rows are answered and learned.

What happens depends on the entries alone and on no answer, so it is written down first, in the
order of the entries; the predictor then follows it.

- ``answer``: an example is answered.
- ``learn``: an example whose answer was given before is learned.
- ``give_up``: an example is not learned: its horizon passed without a label, or it fell out.
- ``label``: the label of a waiting example came.
- ``correct``: the label of an example that was learned is another one.
- ``report``: as many examples were learned as a report covers.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Self

import numpy as np

from online_svm.predictor.pending_examples import PendingExample, answer_runs
from online_svm.stream.cells import stacked
from online_svm.stream.label_counts import LabelCounts
from online_svm.stream.prediction import PredictionBlock
from online_svm.types import Bools, Floats, Ints

Kind = Literal["answer", "learn", "give_up", "label", "correct", "report"]


class Correction(NamedTuple):
    """The label of the learned example `n` is another one."""

    n: int
    label: str


class LabelStep(NamedTuple):
    """One thing that happens; see the head of this file.

    Attributes
    ----------
    kind : Kind
    example : PendingExample or None
        That it happens to.
    counts : LabelCounts or None
        Of a report.
    correction : Correction or None
    opens : int
        1 where an answer begins to wait for its label, -1 where it waits no longer, else 0.
    """

    kind: Kind
    example: PendingExample | None = None
    counts: LabelCounts | None = None
    correction: Correction | None = None
    opens: int = 0


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
            stacked([example.x for example in examples]),
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


class ScoredAnswers(NamedTuple):
    """Original answers beside the labels that came for them.

    Attributes
    ----------
    begin : int
        Place of the first among the examples that were asked for.
    block : PredictionBlock
    columns : ndarray of shape (m,)
        Index of the true label in the classes of the block; -1 for a probability.
    slices : ndarray of shape (m, n_slices)
        Codes of the values of their slices.
    X : ndarray of shape (m, n_features)
    """

    begin: int
    block: PredictionBlock
    columns: Ints
    slices: Ints
    X: Floats


def scored_answers(examples: Sequence[PendingExample]) -> Iterator[ScoredAnswers]:
    """Yield the answers of examples that are learned, in order; those of a model, not of warm-up.

    A label that the model did not know is in the slot of such labels.
    """
    for block, begin, stop in answer_runs(examples):
        if block.status != "ok":
            continue
        place = {label: column for column, label in enumerate(block.classes)}
        unseen = place.get(None, -1)
        learned = examples[begin:stop]
        columns = [-1 if e.label is None else place.get(e.label, unseen) for e in learned]
        X = stacked([example.x for example in learned])
        slices = np.array([example.slices for example in learned], dtype=np.int64)
        yield ScoredAnswers(begin, block, np.array(columns, dtype=np.int64), slices, X)


def open_terms(late: LateRows) -> Ints:
    """Return what rows add to the sums of `OpenAnswers`, as answers open and close."""
    terms = np.zeros(5, dtype=np.int64)
    for row in np.flatnonzero(late.opens).tolist():
        terms += late.opens[row] * waiting_terms(late.examples[row])
    return terms


def waiting_terms(example: PendingExample) -> Ints:
    """Return the terms of the answer of an example."""
    assert example.answer is not None
    terms: Ints = example.answer.terms[example.answer.row]
    return terms
