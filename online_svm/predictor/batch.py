"""A batch: its admitted items, the order in which its rows are learned, and its results.

Items are admitted one by one, in order, so the batching of the stream changes no result. The order
depends on the entries alone, not on answers. So it is determined first, and the predictor then
follows it.
"""

from bisect import bisect_left
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self, TypeVar

import numpy as np

from online_svm.errors import SHOWN, InvalidExample
from online_svm.predictor.delayed_labels import DelayedLabels, Kind, LabelStep
from online_svm.predictor.pending_examples import PendingExample
from online_svm.stream.alarm import Alarm
from online_svm.stream.cells import stacked, widened
from online_svm.stream.input_batch import AnsweredIds, DelayedLabel, InputBatch, SliceValue
from online_svm.stream.labels import LabelIndex
from online_svm.stream.prediction import PredictionBlock
from online_svm.stream.validity_report import Done, ValidityReport
from online_svm.types import Bools, Floats, Ints

Result = TypeVar("Result")

Waits = Generator[None, None, Result]
"""Work as a generator that yields before it waits for a refit; the next step waits."""


def finished(work: Waits[Result]) -> Result:
    """Run work to its end, including its waits, and return its result."""
    while True:
        try:
            next(work)
        except StopIteration as ended:
            result: Result = ended.value
            return result


Answers = list[PredictionBlock | ValidityReport | Alarm]


class TakenLabel(NamedTuple):
    """A label that was accepted, and what was done with it."""

    label: DelayedLabel
    done: Done


class AnsweredBlock(NamedTuple):
    """A block of answers, with the index of the example of each row."""

    indices: Sequence[int]
    block: PredictionBlock


@dataclass(slots=True)
class BatchResult:
    """Outcomes of the items of a batch."""

    before: int = 0  # examples learned before the batch
    # For each learned example, the index of the item by which it was learned.
    learned_by: Sequence[int] = ()
    answered: Sequence[int] = ()  # indices of the answered examples
    # Index of each repeated example, to the number of the item that came first.
    repeats: dict[int, int] = field(default_factory=dict)
    rejected: dict[int, InvalidExample] = field(default_factory=dict)
    taken: dict[int, TakenLabel] = field(default_factory=dict)  # labels of earlier examples
    # With a horizon: the learned examples with labels and answers.
    learned: Sequence[PendingExample] = ()
    found: Answers = field(default_factory=list)  # in the order of `OnlinePredictor.step_many`

    def learned_before(self, index: int) -> int:
        """Return the number of examples learned before the item at `index`."""
        return self.before + bisect_left(self.learned_by, index)

    def cause(self, n: int) -> int:
        """Return the index of the item by which the n-th example was learned."""
        return self.learned_by[n - self.before - 1]

    @property
    def answers(self) -> list[AnsweredBlock]:
        """The answers, in the order of their examples."""
        blocks, done = list[AnsweredBlock](), 0
        for block in self.found:
            if isinstance(block, PredictionBlock):
                blocks.append(AnsweredBlock(self.answered[done : done + len(block)], block))
                done += len(block)
        return blocks

    @property
    def reports(self) -> list[tuple[int, ValidityReport]]:
        """The reports, each after the index of the item that completed it."""
        found = (one for one in self.found if isinstance(one, ValidityReport))
        return [(self.cause(report.n), report) for report in found]

    @property
    def alarms(self) -> list[tuple[int, Alarm]]:
        """The alarms, each after the index of the item by which its example was learned."""
        found = (one for one in self.found if isinstance(one, Alarm))
        return [(self.cause(alarm.n), alarm) for alarm in found]


def admit(
    batch: InputBatch, ids: AnsweredIds | None, classes: LabelIndex, max_classes: int | None
) -> tuple[InputBatch, BatchResult]:
    """Return the admitted part of a batch, and a result with its repeats and rejections.

    A repeated id is left out. A new label is rejected once there are `max_classes`. The ids of
    admitted examples are added to `ids`.

    `classes`: labels known before the batch.
    `max_classes`: bound on undeclared labels.
    """
    result = BatchResult()
    new = set() if classes.declared or max_classes is None else classes.unknown(batch.labels)
    room = (max_classes or 0) - len(classes.labels)
    # Leaving out repeats only removes labels: below the bound no label needs a check.
    is_full = len(new) > room
    window = 0 if ids is None else ids.window
    if window == 0 and not is_full:
        result.answered = batch.indices
        return batch, result
    added: set[str] = set()
    for row, (index, label) in enumerate(zip(batch.indices, batch.labels, strict=True)):
        sent = batch.id_of(row) if window else None
        first = None if sent is None or ids is None else ids.first(sent)
        if first is not None:
            result.repeats[index] = first
            continue
        if is_full and label in new and label not in added:
            if len(added) >= room:
                result.rejected[index] = _one_too_many(label, max_classes)
                continue
            added.add(label)
        if sent is not None and ids is not None:
            ids.add(sent, batch.first + index)
    left_out = result.repeats.keys() | result.rejected.keys()
    batch = batch.without(left_out) if left_out else batch
    result.answered = batch.indices
    return batch, result


class DelayedAdmission:
    """Passes the examples and labels of a batch to the queue of delayed labels, one by one.

    A waiting example that is sent again is a label if it has one and the same features. With other
    features it is rejected; without a label it is a repeat.

    `slice_codes`: returns the codes of slice values; called once for each accepted row.
    `ids`: ids answered before the batch; the ids of the batch are added.
    `max_classes`: bound on undeclared labels.
    """

    def __init__(
        self,
        batch: InputBatch,
        queue: DelayedLabels,
        slice_codes: Callable[[Sequence[SliceValue | None] | None, int], Ints],
        ids: AnsweredIds | None,
        max_classes: int | None,
    ) -> None:
        self._batch, self._queue, self._slice_codes = batch, queue, slice_codes
        self._ids, self._max_classes = ids, max_classes
        self._answered: list[int] = []
        self._result = BatchResult(queue.learned, answered=self._answered)

    def result(self) -> BatchResult:
        """Process all items; return their outcomes, without answers."""
        rows = {index: row for row, index in enumerate(self._batch.indices)}
        learned_by: list[int] = []
        for index in sorted(rows.keys() | self._batch.delayed.keys()):
            before = self._queue.learned
            try:
                if index in rows:
                    self._take_row(index, rows[index])
                else:
                    self._take_label(index, self._batch.delayed[index])
            except InvalidExample as error:
                self._result.rejected[index] = error.alone()
            learned_by += [index] * (self._queue.learned - before)
        self._result.learned_by = learned_by
        return self._result

    def _take_label(self, index: int, label: DelayedLabel) -> None:
        self._check_classes(label.label)
        self._result.taken[index] = TakenLabel(label, self._queue.label(*label))

    def _take_row(self, index: int, row: int) -> None:
        batch, sent = self._batch, self._batch.id_of(row)
        label = batch.labels[row]
        waiting = None if sent is None else self._queue.waiting(sent)
        if waiting is not None and sent is not None and label is not None:
            if not _are_same(batch.X[row], waiting.x):
                raise InvalidExample("id_with_other_features", id=sent[:SHOWN])
            self._take_label(index, DelayedLabel(sent, label))
            return
        first = None if sent is None or self._ids is None else self._ids.first(sent)
        first = first if waiting is None else waiting.seq
        if first is not None:
            self._result.repeats[index] = first
            return
        if label is not None:
            self._check_classes(label)
        example = PendingExample(
            batch.X[row].copy(),
            id=sent,
            label=label,
            time=0 if batch.times is None else batch.times[row],
            seq=batch.first + index,
            slices=self._slice_codes(None if batch.slices is None else [batch.slices[row]], 1)[0],
        )
        if batch.probabilities is not None:
            example.probability = float(batch.probabilities[row])
        self._queue.accept(example)
        self._answered.append(index)
        if sent is not None and self._ids is not None:
            self._ids.add(sent, batch.first + index)

    def _check_classes(self, label: str) -> None:
        seen, most = self._queue.seen_labels, self._max_classes
        if most is not None and label not in seen and len(seen) >= most:
            raise _one_too_many(label, most)


def _one_too_many(label: str, most: int | None) -> InvalidExample:
    return InvalidExample("label_too_many", label=label[:SHOWN], most=most)


def _are_same(x: Floats, y: Floats) -> bool:
    """Return whether two rows have equal values; missing values are equal."""
    width = max(len(x), len(y))
    return np.array_equal(widened(x, width), widened(y, width), equal_nan=True)


_ROWS: tuple[Kind, ...] = ("answer", "learn", "give_up", "label")
"""Kinds of steps that become rows."""


@dataclass(frozen=True, slots=True, eq=False)
class DelayedRows:
    """Rows of a stream with delayed labels."""

    examples: Sequence[PendingExample]
    answers: Bools  # shape (m,); whether the row is answered; the others were answered before
    opens: Ints  # shape (m,); change in the number of answers that wait for a label: 1, 0 or -1

    def part(self, begin: int, stop: int) -> "DelayedRows":
        """Return rows begin ... stop - 1."""
        rows = slice(begin, stop)
        return DelayedRows(self.examples[rows], self.answers[rows], self.opens[rows])

    def chosen(self, mask: Bools) -> list[PendingExample]:
        """Return the examples of the rows in `mask`."""
        return [self.examples[row] for row in np.flatnonzero(mask).tolist()]

    def open_terms(self) -> Ints:
        """Return the change that the rows make to the sums of `OpenAnswers`."""
        terms = np.zeros(5, dtype=np.int64)
        for row in np.flatnonzero(self.opens).tolist():
            terms += self.opens[row] * self.examples[row].terms
        return terms


@dataclass(frozen=True, slots=True, eq=False)
class LearningOrder:
    """Rows in the order in which they are answered and learned.

    If labels come with their examples, each row is answered and then learned. With delayed labels
    an example is answered in one row and learned in another.

    Examples
    --------
    >>> codes, probs = np.array([0, -1, 1]), np.full(3, np.nan)
    >>> order = LearningOrder.at_once(np.zeros((3, 2)), codes, probs, 7, np.empty((3, 0)))
    >>> order.before.tolist(), order.part(1, 3).learns.tolist(), order.part(0, 2).after
    ([7, 8, 8], [False, True], 8)
    """

    X: Floats  # shape (m, n_features)
    codes: Ints  # shape (m,); codes of the labels to learn; -1 for none
    probs: Floats  # shape (m,); probabilities to learn instead of labels; NaN for none
    learns: Bools  # shape (m,); whether a label or a probability is learned
    gaps: Bools  # shape (m,); whether the row settles that its example is never learned
    before: Ints  # shape (m,); examples learned before each row
    slices: Ints  # shape (m, n_slices); codes of the slice values
    learns_all: bool  # whether every row is learned; then no row is a gap
    delayed: DelayedRows | None = None  # None if labels come with their examples
    # Shape (m, n_classes, 3); answers to score instead of the predictor's own; see `given_columns`.
    given: Floats | None = None

    @classmethod
    def at_once(
        cls,
        X: Floats,
        codes: Ints,
        probs: Floats,
        n: int,
        slices: Ints,
        given: Floats | None = None,
    ) -> Self:
        """Return the order for labels that come with their examples, after `n` learned ones."""
        learns = codes >= 0
        learns_all = bool(learns.all())
        if learns_all:  # most batches
            before = np.arange(n, n + len(codes))
        else:
            learns |= ~np.isnan(probs)
            learns_all = bool(learns.all())
            before = n + np.cumsum(learns) - learns
        return cls(X, codes, probs, learns, ~learns, before, slices, learns_all, given=given)

    @classmethod
    def of_steps(cls, steps: Sequence[LabelStep], codes: Ints, n: int) -> Self:
        """Return the order of `steps` after `n` learned examples; `codes` are their labels."""
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
            DelayedRows(examples, answers, opens),
        )

    def __len__(self) -> int:
        return len(self.before)

    @property
    def after(self) -> int:
        """Examples learned after the last row; there must be one."""
        return int(self.before[-1]) + int(self.learns[-1])

    def answered(self, stop: int) -> int:
        """Return the number of rows before `stop` that are answered."""
        if self.delayed is None:
            return stop
        return int(np.count_nonzero(self.delayed.answers[:stop]))

    def of_learned(self, values: Sequence[int]) -> Sequence[int]:
        """Select from one value a row the values of learned rows."""
        if self.learns_all:
            return values
        return [values[row] for row in np.flatnonzero(self.learns).tolist()]

    def part(self, begin: int, stop: int) -> "LearningOrder":
        """Return rows begin ... stop - 1; the arrays are views."""
        if begin == 0 and stop == len(self):
            return self
        delayed = None if self.delayed is None else self.delayed.part(begin, stop)
        return self._taken(slice(begin, stop), delayed)

    def learned(self) -> "LearningOrder":
        """Return the learned rows alone."""
        return self if self.learns_all and self.delayed is None else self._taken(self.learns)

    def with_copies(self, copied: Bools) -> "tuple[LearningOrder, Ints]":
        """Return the rows with an unlabelled copy before each row in `copied`, and their sources.

        A copy is answered by the present state, and is not learned. The source of a row of the
        result is its row in this order; that of a copy equals that of the row after it.
        """
        sources = np.repeat(np.arange(len(self)), 1 + copied)
        rows, is_copy = self._taken(sources), np.append(sources[:-1] == sources[1:], False)
        return replace(
            rows,
            codes=np.where(is_copy, -1, rows.codes),
            probs=np.where(is_copy, np.nan, rows.probs),
            learns=rows.learns & ~is_copy,
            learns_all=rows.learns_all and not is_copy.any(),
        ), sources

    def computed(self, answers: Bools) -> "LearningOrder":
        """Return the rows that are answered or learned."""
        return self._taken(self.learns | answers)

    def _taken(
        self, chosen: slice | Bools | Ints, delayed: DelayedRows | None = None
    ) -> "LearningOrder":
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
            delayed,
            None if self.given is None else self.given[chosen],
        )
