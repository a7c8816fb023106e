"""Results of a batch: answers, reports and alarms, each with the item that caused it."""

from bisect import bisect_left
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from online_svm.errors import InvalidExample
from online_svm.predictor.pending_examples import PendingExample
from online_svm.stream.alarm import Alarm
from online_svm.stream.input_batch import LateLabel
from online_svm.stream.label_counts import Done
from online_svm.stream.prediction import PredictionBlock, ValidityReport

Result = TypeVar("Result")

Waits = Generator[None, None, Result]
"""Work that pauses where it would wait for the result of a refit; going on waits for it."""


def finished(work: Waits[Result]) -> Result:
    """Do all of some work, with its waits, and return its result.

    Examples
    --------
    >>> def work():
    ...     yield
    ...     return "done"
    >>> finished(work())
    'done'
    """
    while True:
        try:
            next(work)
        except StopIteration as ended:
            result: Result = ended.value
            return result


Answers = list[PredictionBlock | ValidityReport | Alarm]


class TakenLabel(NamedTuple):
    """A label that was taken, and what was done with it."""

    label: LateLabel
    done: Done


class AnsweredRows(NamedTuple):
    """A block of answers, and the index of the example that each row answers."""

    indices: Sequence[int]
    block: PredictionBlock


class CausedReport(NamedTuple):
    """A report, and the index of the item with which its last example was learned."""

    cause: int
    report: ValidityReport


class CausedAlarm(NamedTuple):
    """An alarm, and the index of the item with which the example that raised it was learned."""

    cause: int
    alarm: Alarm


@dataclass(slots=True)
class BatchResult:
    """What became of the items of a batch.

    Attributes
    ----------
    before : int
        Examples learned before the batch.
    learned_by : sequence of int
        The index of the item with which each example was learned, in order.
    answered : sequence of int
        The indices of the examples that are answered.
    repeats : dict of int to int
        Of each example that was answered before: its index, and the number of the first item.
    rejected : dict of int to InvalidExample
    taken : dict of int to TakenLabel
        The labels that came for earlier examples.
    learned : sequence of PendingExample
        Where there is a horizon: the examples that were learned, with their labels and answers.
    found : list of (PredictionBlock, ValidityReport or Alarm)
        In the order of `OnlinePredictor.step_many`.

    Examples
    --------
    >>> result = BatchResult(before=7, learned_by=[0, 3, 3], answered=[0, 1, 3])
    >>> [result.learned_before(index) for index in range(5)], result.cause(9)
    ([7, 8, 8, 8, 10], 3)
    """

    before: int = 0
    learned_by: Sequence[int] = ()
    answered: Sequence[int] = ()
    repeats: dict[int, int] = field(default_factory=dict)
    rejected: dict[int, InvalidExample] = field(default_factory=dict)
    taken: dict[int, TakenLabel] = field(default_factory=dict)
    learned: Sequence[PendingExample] = ()
    found: Answers = field(default_factory=list)

    def learned_before(self, index: int) -> int:
        """Return the number of examples learned before the item at an index."""
        return self.before + bisect_left(self.learned_by, index)

    def cause(self, n: int) -> int:
        """Return the index of the item with which the n-th example was learned."""
        return self.learned_by[n - self.before - 1]

    @property
    def answers(self) -> list[AnsweredRows]:
        """The answers, in the order of their examples."""
        blocks, done = list[AnsweredRows](), 0
        for block in self.found:
            if isinstance(block, PredictionBlock):
                blocks.append(AnsweredRows(self.answered[done : done + len(block)], block))
                done += len(block)
        return blocks

    @property
    def reports(self) -> list[CausedReport]:
        """The reports, in order; an item may cause several."""
        found = [one for one in self.found if isinstance(one, ValidityReport)]
        return [CausedReport(self.cause(report.n), report) for report in found]

    @property
    def alarms(self) -> list[CausedAlarm]:
        """The alarms, in order; an item may cause several."""
        found = [one for one in self.found if isinstance(one, Alarm)]
        return [CausedAlarm(self.cause(alarm.n), alarm) for alarm in found]
