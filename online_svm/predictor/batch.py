"""A batch: its admitted items, the order in which its rows are learned, and its results.

Items are admitted one by one, in order, so the batching of the stream changes no result. The order
depends on the entries alone, not on answers. So it is determined first, and the predictor then
follows it. A label that comes with its example is a label with delay 0: its row answers the example
and learns it. With a horizon, an example is answered in one row and learned in another.
"""

from bisect import bisect_left
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np

from online_svm.errors import SHOWN, InvalidExample
from online_svm.predictor.delayed_labels import Correction, DelayedLabels, Kind, LabelStep
from online_svm.predictor.pending_examples import PendingExample, answer_runs
from online_svm.stream.alarm import Alarm
from online_svm.stream.cells import stacked
from online_svm.stream.input_batch import AnsweredIds, DelayedLabel, InputBatch
from online_svm.stream.labels import LabelIndex
from online_svm.stream.prediction import PredictionBlock, SettledRows
from online_svm.stream.validity_report import Done, ValidityReport
from online_svm.types import Bools, Floats, Ints

Result = TypeVar("Result")
Item = TypeVar("Item")

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
    settled: Sequence[SettledRows] = ()  # what was learned or given up, with its answers
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


class Admission:
    """Admits the items of a batch one by one, in order.

    A repeated id is left out. A label is rejected if it is new and there are `max_classes` labels.
    A waiting example that is sent again is a label if it has one and the same features. With other
    features it is rejected; without a label it is a repeat.

    `queue`: the examples that wait for labels; admitted ones and labels are added.
    `ids`: ids answered before the batch; the ids of the batch are added.
    `seen`: labels seen so far.
    `max_classes`: bound on undeclared labels.
    """

    def __init__(
        self,
        batch: InputBatch,
        queue: DelayedLabels,
        ids: AnsweredIds | None,
        seen: set[str],
        max_classes: int | None,
    ) -> None:
        self._batch, self._queue, self._seen = batch, queue, seen
        self._ids = ids if ids is not None and ids.is_used else None
        self._max_classes = max_classes
        self._answered, self._learned_by = list[int](), list[int]()
        self._result = BatchResult(learned_by=self._learned_by, answered=self._answered)

    def admitted(self) -> tuple[InputBatch, BatchResult]:
        """Process all items; return the admitted examples, and the outcomes without answers."""
        batch, result = self._batch, self._result
        if self._admits_all():
            result.answered = batch.indices
            return batch, result
        places = dict(zip(batch.indices, range(len(batch)), strict=True))
        for index in sorted(places.keys() | batch.delayed.keys()) if batch.delayed else places:
            try:
                if index in places:
                    self._take_row(index, places[index])
                else:
                    self._take_label(index, batch.delayed[index])
            except InvalidExample as error:
                result.rejected[index] = error.alone()
        if len(self._answered) < len(batch):
            batch = batch.without(places.keys() - set(self._answered))
        return batch, result

    def _admits_all(self) -> bool:
        """Whether every item is an example that cannot be left out, and none waits."""
        if self._queue.is_delayed or self._ids is not None:
            return False
        most = self._max_classes
        return most is None or len(self._seen.union(self._batch.labels) - {None}) <= most

    def _take_label(self, index: int, label: DelayedLabel) -> None:
        self._check_classes(label.label)
        done = self._queued(index, self._queue.label, *label)
        self._result.taken[index] = TakenLabel(label, done)
        self._seen.add(label.label)

    def _take_row(self, index: int, row: int) -> None:
        batch, ids, queue = self._batch, self._ids, self._queue
        sent, label = None if batch.ids is None else batch.ids[row], batch.labels[row]
        if sent is not None:
            waiting = queue.known.get(sent)
            if waiting is not None and label is not None:
                if not waiting.has_features(batch.X[row]):
                    raise InvalidExample("id_with_other_features", id=sent[:SHOWN])
                self._take_label(index, DelayedLabel(sent, label))
                return
            first = None if ids is None else ids.first(sent)
            first = first if waiting is None else waiting.seq
            if first is not None:
                self._result.repeats[index] = first
                return
        if label is not None and label not in self._seen:
            self._check_classes(label)
            self._seen.add(label)
        if queue.is_delayed:
            self._queued(index, queue.accept, PendingExample.of(batch, row, index))
        self._answered.append(index)
        if sent is not None and ids is not None:
            ids.add(sent, batch.first + index, queue.known)

    def _queued(self, index: int, act: Callable[..., Result], *given: Any) -> Result:
        """Let the queue act on an item, and record which examples are learned by that."""
        before = self._queue.learned
        found = act(*given)
        self._learned_by += [index] * (self._queue.learned - before)
        return found

    def _check_classes(self, label: str) -> None:
        most = self._max_classes
        if most is not None and label not in self._seen and len(self._seen) >= most:
            raise InvalidExample("label_too_many", label=label[:SHOWN], most=most)


_KINDS: tuple[Kind, ...] = ("answer", "learn", "give_up", "label")


@dataclass(frozen=True, slots=True, eq=False)
class LearningOrder:
    """Rows in the order in which examples are answered, and learned or given up.

    Examples
    --------
    >>> batch = InputBatch(np.zeros((3, 2)), ["a", None, "b"], range(3))
    >>> order = LearningOrder.at_once(batch, np.array([0, -1, 1]), np.empty((3, 0)), 7)
    >>> order.before.tolist(), order.part(1, 3).learns.tolist(), order.part(0, 2).after
    ([7, 8, 8], [False, True], 8)
    """

    X: Floats  # shape (m, n_features)
    codes: Ints  # shape (m,); codes of the labels to learn; -1 for none
    probs: Floats  # shape (m,); probabilities to learn instead of labels; NaN for none
    slices: Ints  # shape (m, n_slices); codes of the slice values
    answers: Bools  # shape (m,); whether the row answers its example
    learns: Bools  # shape (m,); whether a label or a probability is learned
    gaps: Bools  # shape (m,); whether the row settles that its example is never learned
    before: Ints  # shape (m,); examples learned before each row
    is_plain: bool  # whether every row answers and learns
    ids: Sequence[str | None] = ()  # the producer's ids; empty if no example has one
    # Of each row, if an example is answered in one row and settled in another; else both are empty:
    examples: Sequence[PendingExample] = ()
    opens: Sequence[int] = ()  # change in the number of answers that wait for a label: 1, 0 or -1

    @classmethod
    def at_once(cls, batch: InputBatch, codes: Ints, slices: Ints, n: int) -> Self:
        """Return the order for labels that come with their examples, after `n` learned ones.

        `batch`: the admitted examples.
        `codes`, shape (m,): codes of their labels.
        """
        m, learns, probs = len(batch), codes >= 0, batch.probabilities
        probs = np.full(m, np.nan) if probs is None else probs
        is_plain = bool(learns.all())
        if is_plain:  # most batches
            before = np.arange(n, n + m)
        else:
            learns |= ~np.isnan(probs)
            is_plain = bool(learns.all())
            before = _before(n, learns)
        answers = learns if is_plain else np.ones(m, dtype=np.bool_)
        flags = (answers, learns, ~learns)
        return cls(batch.X, codes, probs, slices, *flags, before, is_plain, batch.ids or ())

    @classmethod
    def of_steps(cls, steps: Sequence[LabelStep], codes: Ints, n: int) -> Self:
        """Return the order of `steps` after `n` learned examples.

        `codes`: codes of the labels of the examples that are learned.
        """
        examples = [step.example for step in steps]
        kinds = np.array([_KINDS.index(step.kind) for step in steps])
        answers, learns, gaps = kinds == 0, kinds == 1, kinds == 2
        of_rows = np.full(len(steps), -1, dtype=np.int64)
        of_rows[learns] = codes
        probs = np.array([example.probability for example in examples])
        probs[~learns] = np.nan
        X, slices = stacked([each.x for each in examples]), [each.slices for each in examples]
        return cls(
            X, of_rows, probs, np.array(slices, dtype=np.int64), answers, learns, gaps,
            _before(n, learns), is_plain=False, ids=[each.id for each in examples],
            examples=examples,
            opens=[step.opens for step in steps],
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.before)

    @property
    def after(self) -> int:
        """Examples learned after the last row; there must be one."""
        return int(self.before[-1]) + int(self.learns[-1])

    def answered(self, stop: int) -> int:
        """Return the number of rows before `stop` that are answered."""
        return stop if self.is_plain else int(np.count_nonzero(self.answers[:stop]))

    def of_learned(self, values: Sequence[int]) -> Sequence[int]:
        """Select from one value a row the values of learned rows."""
        return values if self.is_plain else _chosen(values, self.learns)

    def part(self, begin: int, stop: int) -> "LearningOrder":
        """Return rows begin ... stop - 1; the arrays are views."""
        return self if begin == 0 and stop == len(self) else self.taken(slice(begin, stop))

    def learned(self) -> "LearningOrder":
        """Return the learned rows alone."""
        return self if self.is_plain else self.taken(self.learns)

    def computed(self) -> "LearningOrder":
        """Return the rows that are answered or learned."""
        if self.is_plain:
            return self
        chosen = self.answers | self.learns
        return self if chosen.all() else self.taken(chosen)

    def taken(self, chosen: slice | Bools | Ints) -> "LearningOrder":
        """Return the chosen rows; a slice gives views."""
        return LearningOrder(
            self.X[chosen], self.codes[chosen], self.probs[chosen], self.slices[chosen],
            self.answers[chosen], self.learns[chosen], self.gaps[chosen], self.before[chosen],
            self.is_plain, _chosen(self.ids, chosen), _chosen(self.examples, chosen),
            _chosen(self.opens, chosen),
        )  # fmt: skip

    def settled(self, block: PredictionBlock | None, columns: Ints) -> list[SettledRows]:
        """Return the examples that the rows settle, in as few blocks as possible.

        A label unknown to the model that answered gets the column of unseen labels.

        `block`: answers to the answered rows; None if there are none.
        `columns`: class column of the label of each answered row.
        """
        if block is not None and not self.examples:
            return [SettledRows(block, self.codes, columns, self.slices, self.X, self.before)]
        found, rows = list[SettledRows](), self.taken(self.learns | self.gaps)
        for block, begin, stop in answer_runs(rows.examples):
            run, place = rows.part(begin, stop), {y: i for i, y in enumerate(block.classes)}
            unseen, labels = place.get(None, -1), [each.label for each in run.examples]
            of_labels = [-1 if y is None else place.get(y, unseen) for y in labels]
            columns = np.array(of_labels, dtype=np.int64)
            found.append(SettledRows(block, run.codes, columns, run.slices, run.X, run.before))
        return found


def _before(n: int, learns: Bools) -> Ints:
    """Return the number of examples learned before each row, after `n` learned ones."""
    before: Ints = n + np.cumsum(learns) - learns
    return before


def _chosen(values: Sequence[Item], chosen: slice | Bools | Ints) -> Sequence[Item]:
    """Select from one value a row, or from no values."""
    if isinstance(chosen, slice) or not values:
        return values[chosen] if isinstance(chosen, slice) else values
    return [values[row] for row in np.arange(len(values))[chosen].tolist()]


Events = Sequence[LearningOrder | Correction]
"""What happens in a batch, in order."""


def in_order(steps: Sequence[LabelStep | Correction], labels: LabelIndex, n: int) -> Events:
    """Return the events of steps after `n` learned examples; new labels get codes in order."""
    events, rows = list[LearningOrder | Correction](), list[LabelStep]()
    for step in (*steps, None):
        if isinstance(step, LabelStep):
            rows.append(step)
            continue
        if rows:
            codes = labels.codes([each.example.label for each in rows if each.kind == "learn"])
            order = LearningOrder.of_steps(rows, codes, n)
            events.append(order)
            n, rows = order.after, []
        if step is not None:
            labels.codes([step.label])
            events.append(step)
    return events
