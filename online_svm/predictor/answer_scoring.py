"""AnswerScoring: score answers as their labels are learned; what follows are alarms and reports."""

from collections import deque
from collections.abc import Iterable, Sequence
from copy import copy, deepcopy
from dataclasses import replace
from itertools import islice
from typing import Self

import numpy as np

from online_svm.config import PredictorConfig
from online_svm.metrics.realised_cost import RealisedCost
from online_svm.metrics.sequential.frozen_scorer import FEATURES
from online_svm.metrics.windowed.slice_values import SLICE_VALUES, SliceNames, SliceValues
from online_svm.metrics.windowed.windowed_validity import WindowedValidity
from online_svm.predictor.batch_result import Answers
from online_svm.predictor.learning_order import (
    LearningOrder,
    open_terms,
    scored_answers,
    waiting_terms,
)
from online_svm.predictor.open_answers import OpenAnswers
from online_svm.predictor.pending_examples import PendingExample
from online_svm.predictor.stream_monitors import StreamMonitors
from online_svm.predictor.stream_validity import StreamValidity
from online_svm.refit.coding import Coding
from online_svm.storage.arrays import nest, under
from online_svm.storage.state import Header, State
from online_svm.stream.alarm import Alarm
from online_svm.stream.answer_columns import Guarantee
from online_svm.stream.given_answer import as_given
from online_svm.stream.label_counts import LabelCounts
from online_svm.stream.prediction import (
    FeatureReport,
    LateLabelReport,
    PredictionBlock,
    ValidityReport,
)
from online_svm.stream.scored_rows import ScoredRows
from online_svm.stream.slices import SliceValue
from online_svm.stream.watched import watched
from online_svm.types import Arrays, Floats, Ints

TOLD = 256
"""Features whose kinds a report tells."""

Watched = list[PredictionBlock | Alarm]


class AnswerScoring:
    """The scores of a stream's answers, overall and by window, and the tests that watch them.

    Parameters
    ----------
    config : PredictorConfig

    Attributes
    ----------
    features : tuple of str, or None
        Their names, once known: alarms name features that moved.
    watched : int or None
        Number of features, where rows are cells.
    coding : Coding or None
        Of the active model.
    counts : deque of LabelCounts
        Of the reports that are due, within a call of the predictor only.

    Examples
    --------
    >>> AnswerScoring(PredictorConfig()).report(0).scored
    0
    """

    def __init__(self, config: PredictorConfig) -> None:
        self._config = config
        self.features: tuple[str, ...] | None = None
        self.watched: int | None = None
        self.coding: Coding | None = None
        self._hidden = [f for f, kind in enumerate(config.declared_kinds) if kind == "time"]
        self.counts: deque[LabelCounts] = deque()
        self._validity = StreamValidity(config.published)
        self._windows = WindowedValidity.of(config)
        self._slices = SliceValues(len(config.slices), SLICE_VALUES)
        self._open = OpenAnswers()
        self._monitors = StreamMonitors.of(config)
        self._costs = RealisedCost.of(config)

    def slice_codes(self, slices: Sequence[SliceValue | None] | None, count: int) -> Ints:
        """Return the codes of the slices of rows, in order, shape (count, n_slices).

        A value that is met for the first time takes the next code. It may be asked once a row.
        """
        return self._slices.codes(slices, count)

    def guarantee(self, guarantee: Guarantee, reason: str | None) -> tuple[Guarantee, str | None]:
        """Return what open alarms leave of a guarantee, with the reason."""
        if self._monitors is None:
            return guarantee, reason
        return self._monitors.guarantee(guarantee, reason)

    def begin_anew(self) -> None:
        """Give up the evidence so far, when an alarm is acted on."""
        if self._monitors is not None:
            self._monitors.begin_anew()

    def close(self, since: int) -> None:
        """Close the alarms up to an example: model and calibration know only later ones."""
        if self._monitors is not None:
            self._monitors.close(since)

    def copy(self) -> Self:
        """Return a copy that scores rows as this one; what rows do not change is shared."""
        other = copy(self)
        for name in ("_validity", "_windows", "_monitors", "_costs", "_open", "counts"):
            setattr(other, name, deepcopy(getattr(self, name)))
        return other

    def scored_at_once(
        self, order: LearningOrder, block: PredictionBlock, columns: Ints, since: int
    ) -> Answers:
        """Score rows that are learned right after their answers; return answers and reports.

        Parameters
        ----------
        order : LearningOrder
        block : PredictionBlock
            The answers to its rows.
        columns : ndarray of shape (len(order),)
            Columns of what was learned of each, or -1.
        since : int
            Examples learned at the last alarm that was acted on.
        """
        answers: Answers = []
        begin = 0
        for due, stop in [*self._due_reports(order), (None, len(order))]:
            if begin == stop:
                continue
            part = block.part(begin, stop), columns[begin:stop], order.part(begin, stop)
            watched = self._scored(*part, since)
            answers += watched if due is None else with_report(watched, self.report(due))
            begin = stop
        return answers

    def scored_late(
        self, order: LearningOrder, block: PredictionBlock | None, since: int
    ) -> Answers:
        """Score examples that are learned by the answers they were given; return what follows.

        Parameters
        ----------
        order : LearningOrder
        block : PredictionBlock or None
            The answers to those of its rows that ask for one.
        since : int
            Examples learned at the last alarm that was acted on.
        """
        assert order.late is not None
        answers: Answers = []
        given = np.cumsum(order.late.answers)
        begin = done = 0
        for due, stop in [*self._due_reports(order), (None, len(order))]:
            told = int(given[stop - 1])
            alarms = self._score_late(order.part(begin, stop), since)
            part = None if block is None or told == done else block.part(done, told)
            watched = self._watched(part, alarms)
            answers += watched if due is None else with_report(watched, self._late_report(due))
            begin, done = stop, told
        return answers

    def report(self, n: int) -> ValidityReport:
        """Return the report after `n` learned examples, which have all been scored."""
        windows, monitors = self._windows, self._monitors
        tests = None if monitors is None else monitors.report()
        if tests is not None:
            names = SliceNames(self._config.slices, self._slices)
            tests = replace(tests, tests=[names.of_test(test) for test in tests.tests])
        return replace(
            self._validity.report(n),
            windowed=None if windows is None else windows.report(self._slices),
            monitors=tests,
            costs=None if self._costs is None else self._costs.report(),
            features=self._features(),
        )

    def _features(self) -> dict[str, FeatureReport] | None:
        """Return what the active model knows of features; None where they have no names.

        Names that came since are left out: which they are depends on how rows are cut into calls.
        """
        if self.watched is None or self.features is None:
            return None
        told = {} if self.coding is None else self.coding.told()
        return {self.features[f]: one for f, one in islice(told.items(), TOLD)}

    def state(self) -> State:
        """Return all but the configuration, the features and the open answers."""
        header: Header = {}
        arrays: Arrays = nest("validity", self._validity.state())
        if self._windows is not None:
            header["windowed"], parts = self._windows.state()
            arrays |= nest("windowed", parts)
            header["slices"] = self._slices.state()
        if self._monitors is not None:
            header["monitors"], parts = self._monitors.state()
            arrays |= nest("monitors", parts)
        if self._costs is not None:
            arrays |= nest("costs", self._costs.state())
        return State(header, arrays)

    @classmethod
    def from_state(
        cls, state: State, config: PredictorConfig, waiting: Iterable[PendingExample] = ()
    ) -> Self:
        """Return what `state` describes; `waiting` are the examples that wait for their labels.

        Raises
        ------
        LookupError, TypeError, ValueError
            If a part is missing, or they do not fit one another.
        """
        header, arrays = state
        scoring = cls(config)
        scoring._validity = StreamValidity.from_state(under("validity", arrays), config.published)
        if scoring._windows is not None:
            windowed = State(header["windowed"], under("windowed", arrays))
            scoring._windows = WindowedValidity.from_state(windowed, config)
            stored, count = header["slices"], len(config.slices)
            scoring._slices = SliceValues.from_state(stored, count, SLICE_VALUES)
        if scoring._monitors is not None:
            watched = State(header["monitors"], under("monitors", arrays))
            scoring._monitors = StreamMonitors.from_state(watched, config)
        if scoring._costs is not None:
            costs = under("costs", arrays)
            scoring._costs = RealisedCost.from_state(costs, scoring._costs.matrix)
        for example in waiting:
            if not example.has_target:
                scoring._open.add(waiting_terms(example))
        return scoring

    def _due_reports(self, order: LearningOrder) -> list[tuple[int | None, int]]:
        """Return the reports due among rows: examples learned by then, and rows up to it."""
        every, before = self._config.metrics_every, order.before
        due = range((int(before[0]) // every + 1) * every, order.after + 1, every)
        return [(n, int(np.searchsorted(before, n))) for n in due]

    def _scored(
        self, block: PredictionBlock, columns: Ints, order: LearningOrder, since: int
    ) -> Watched:
        """Return rows that were learned right after their answers, and the alarms they raised."""
        if block.status != "ok":
            return [block]
        scored = as_given(block, order.given)
        rows = ScoredRows.of(scored, columns, order.slices, self._watched_rows(order.X))
        return self._watched(block, self._score(scored, columns, rows, block.n + 1, since))

    def _score_late(self, order: LearningOrder, since: int) -> list[Alarm]:
        """Score the examples that are learned; return the alarms that they raise."""
        assert order.late is not None
        learned, alarms = order.before[order.learns] + 1, list[Alarm]()
        for begin, block, columns, slices, X in scored_answers(order.late.chosen(order.learns)):
            rows = ScoredRows.of(block, columns, slices, self._watched_rows(X))
            reached = learned[begin : begin + len(columns)]
            alarms += self._score(block, columns, rows, reached, since)
        self._open.add(open_terms(order.late))
        return alarms

    def _watched_rows(self, X: Floats) -> Floats:
        """Return what the monitors see of rows."""
        if self.watched is None:
            return X
        return watched(X, min(self.watched, FEATURES), self._hidden)

    def _score(
        self, block: PredictionBlock, columns: Ints, rows: ScoredRows, learned: Ints, since: int
    ) -> list[Alarm]:
        """Add answers of a model and their labels, in the order in which they are learned.

        Returns
        -------
        list of Alarm
            What the monitors find; `learned` is the number of examples learned up to each row.
        """
        self._validity.update(block, columns)
        if self._windows is not None:
            self._windows.update(rows)
        if self._costs is not None:
            self._costs.update(rows.point, rows.lower, rows.upper, rows.columns)
        if self._monitors is None or not len(rows):
            return []
        if len(rows) < len(columns):
            learned = learned[columns >= 0]
        alarms = self._monitors.update(rows, learned, since)
        if not alarms:
            return alarms
        names = SliceNames(self._config.slices, self._slices)
        return [names.of_alarm(alarm).naming(self.features) for alarm in alarms]

    def _watched(self, block: PredictionBlock | None, alarms: Sequence[Alarm]) -> Watched:
        """Return answers and alarms in order, with the guarantee that open alarms leave them."""
        if self._monitors is None:
            return [] if block is None else [block]
        return self._monitors.cut(block, alarms)

    def _late_report(self, n: int) -> ValidityReport:
        report = self.report(n)
        headline, scored = report.headline, report.scored
        labels = LateLabelReport(
            self.counts.popleft(),
            self._open.count,
            self._open.accuracy(scored, headline),
            self._open.brier(scored, headline),
        )
        return replace(report, labels=labels)


def with_report(watched: Watched, report: ValidityReport) -> Answers:
    """Return answers and alarms with a report, before the alarms of the example that completed it.

    Examples
    --------
    >>> first, second = (Alarm(n, "calibration", "overall", None, "t", 5, 4, 0) for n in (9, 10))
    >>> report = ValidityReport(10, 0, None, None, {})
    >>> [answer.n for answer in with_report([first, second], report)]
    [9, 10, 10]
    """
    end = len(watched)
    while end and isinstance(last := watched[end - 1], Alarm) and last.n == report.n:
        end -= 1
    return [*watched[:end], report, *watched[end:]]
