"""Answer rows whose labels come late: each is learned, and scored, some rows after its answer."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from typing_extensions import override

from online_svm.predictor.answering import Answering, Answers, with_report
from online_svm.predictor.label_steps import Correction, Step
from online_svm.predictor.late_scores import open_terms, scored_answers
from online_svm.predictor.learning_order import LearningOrder
from online_svm.predictor.pending_examples import give
from online_svm.predictor.waits import Waits
from online_svm.stream.alarm import Alarm
from online_svm.stream.prediction import (
    LateLabelReport,
    PredictionBlock,
    ValidityReport,
)
from online_svm.stream.scored_rows import ScoredRows


class LateAnswering(Answering):
    """The part of an `OnlinePredictor` that answers rows whose labels come late."""

    def _follow_steps(self, steps: Sequence[Step]) -> Waits[Answers]:
        learned = [step.example.label for step in steps if step.example and step.kind == "learn"]
        order = LearningOrder.of_steps(steps, self.labels.codes(learned), self.n)
        return (yield from self._follow(order)) if len(order) else []

    def _relabel(self, correction: Correction) -> Waits[None]:
        """Give a learned example another label, for the next refit."""
        if self.is_waiting:
            yield
        self.activate_if_due()  # by the labels of before
        (code,) = self.labels.codes([correction.label])
        self._examples.relabel(correction.n, int(code), len(self.labels.labels))
        self._gaps.correct(correction.n)

    @override
    def _answer(self, order: LearningOrder, *, lacks: str | None) -> Answers:
        if order.late is None:
            return super()._answer(order, lacks=lacks)
        return self._late_reported(order, self._late_block(order, lacks=lacks))

    def _late_block(self, order: LearningOrder, *, lacks: str | None) -> PredictionBlock | None:
        """Return the answers that rows ask for, kept with their examples; None if they ask none."""
        assert order.late is not None
        is_answered = order.late.answers
        rows = order.computed(is_answered)
        if not len(rows):
            return None
        block, _ = self._block(rows, lacks=lacks)
        given = block.taken(is_answered[order.learns | is_answered])
        give(order.late.chosen(is_answered), given)
        return given

    def _late_reported(self, order: LearningOrder, block: PredictionBlock | None) -> Answers:
        """Return what was answered, with the reports that the learning of examples completes.

        Examples that are learned are scored by the answers they were given.
        """
        assert order.late is not None
        answers: Answers = []
        given = np.cumsum(order.late.answers)
        begin = done = 0
        for due, stop in [*self._due_reports(order), (None, len(order))]:
            told = int(given[stop - 1])
            alarms = self._score_late(order.part(begin, stop))
            part = None if block is None or told == done else block.part(done, told)
            watched = self._watched(part, alarms)
            answers += watched if due is None else with_report(watched, self._late_report(due))
            begin, done = stop, told
        return answers

    def _score_late(self, order: LearningOrder) -> list[Alarm]:
        """Score the examples that are learned; return the alarms that they raise."""
        assert order.late is not None
        learned, alarms = order.before[order.learns] + 1, list[Alarm]()
        for begin, block, columns, slices, X in scored_answers(order.late.chosen(order.learns)):
            rows = ScoredRows.of(block, columns, slices, X)
            alarms += self._score(block, columns, rows, learned[begin : begin + len(columns)])
        self._open.add(open_terms(order.late))
        return alarms

    def _late_report(self, n: int) -> ValidityReport:
        report = self._report(n)
        headline, scored = report.headline, report.scored
        labels = LateLabelReport(
            self._counts.popleft(),
            self._open.count,
            self._open.accuracy(scored, headline),
            self._open.brier(scored, headline),
        )
        return replace(report, labels=labels)
