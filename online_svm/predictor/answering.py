"""Answer rows in order, in blocks that one model answers alike, and report on them."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from online_svm.predictor.answering_state import AnsweringState, request_schema
from online_svm.predictor.learning_order import LearningOrder
from online_svm.predictor.published_maps import interval_maps
from online_svm.predictor.refit_cycle import RefitCycle
from online_svm.predictor.slice_names import SliceNames
from online_svm.predictor.waits import Waits
from online_svm.predictor.warm_up import warming_block
from online_svm.stream.alarm import Alarm
from online_svm.stream.answer_columns import Guarantee
from online_svm.stream.given_answer import as_given
from online_svm.stream.prediction import (
    PredictionBlock,
    ValidityReport,
)
from online_svm.stream.scored_rows import ScoredRows
from online_svm.types import Bools, Ints

Answers = list[PredictionBlock | ValidityReport | Alarm]
Watched = list[PredictionBlock | Alarm]


class Answering(RefitCycle):
    """The part of an `OnlinePredictor` that answers rows and learns them right after."""

    def answering(self) -> bytes:
        """Return what answers rows without a label as this predictor does now; it cannot learn.

        `AnsweringState.restore` reads it, in a process that has the configuration.
        """
        return self._answering_state().snapshot()

    def _answering_state(self) -> AnsweringState:
        self.activate_if_due()
        guarantee: Guarantee = "none"
        reason: str | None = None
        if self._active is not None:
            guarantee, reason = self._active.guarantee(self._lacks)
            if self._monitors is not None:
                guarantee, reason = self._monitors.guarantee(guarantee, reason)
        known = self.schema
        schema = request_schema(self.config).of_features(known.names, known.dimension)
        return AnsweringState(
            self.config, self.n, schema, self._active, self._mixture, guarantee, reason
        )

    def _follow(self, order: LearningOrder) -> Waits[Answers]:
        """Answer and learn rows in this order, in blocks between which the answering changes."""
        held = order.learned()
        self._examples.append(held.X, held.codes, held.probs, len(self.labels.labels))
        answers: Answers = []
        begin = 0
        while begin < len(order):
            self._freeze_what_is_held()
            if self.is_waiting:
                yield
            self.activate_if_due()
            block, answered = self._answer_block(order, begin)
            answers += answered
            begin += len(block)
        return answers

    def _answer_block(self, order: LearningOrder, begin: int) -> tuple[LearningOrder, Answers]:
        """Answer and learn the rows from `begin` on up to where the answering changes next."""
        due = self._next_change()
        block = order.part(begin, self._end_of_block(order, begin, due))
        block, answered = self._answer_until_acted(block)
        if not block.learns_all and block.gaps.any():
            self._gaps.unlabelled = int(block.before[block.gaps][-1])
        if self._acts and _acted_at(answered) is not None:
            self._begin_anew(self.n)
        if self.n == due:
            self._change()
        return block, answered

    def _answer_until_acted(self, block: LearningOrder) -> tuple[LearningOrder, Answers]:
        """Answer a block up to the first row whose alarm is acted on; return what was answered.

        Which row that is shows only when the block is answered. If it is not the last one, all that
        has changed is put back, and the block is answered again up to it.
        """
        lacks = self._lacks
        before = self._copies() if self._acts and len(block) > 1 else None
        self.n = block.after
        answers = self._answer(block, lacks=lacks)
        n = _acted_at(answers) if self._acts else None
        stop = len(block) if n is None else int(np.searchsorted(block.before, n))
        if before is None or stop == len(block):
            return block, answers
        self.__dict__.update(before)
        block = block.part(0, stop)
        self.n = block.after
        return block, self._answer(block, lacks=lacks)

    def _end_of_block(self, order: LearningOrder, begin: int, due: int | None) -> int:
        """Return the row before which the answering changes, at `due` learned examples or before.

        The first row with a probability changes the guarantee, and so does the first without a
        label.
        """
        stop = len(order) if due is None else int(order.before.searchsorted(due))
        if self._active is None:
            return stop
        if self.config.learner == "psvm" and not self._active.has_probabilities:
            stop = begin + _with_first(~np.isnan(order.probs[begin:stop]))
        if not (order.learns_all or self._gaps.lies_in_window(self.n)):
            stop = begin + _with_first(order.gaps[begin:stop])
        return stop

    @property
    def _lacks(self) -> str | None:
        """Why the labels of the window are not all that `exact` needs; None where they are."""
        return self._gaps.reason(self.n)

    def _answer(self, order: LearningOrder, *, lacks: str | None) -> Answers:
        """Answer rows that one model answers, with one fit of its maps, and report on them."""
        block, columns = self._block(order, lacks=lacks)
        return self._reported(order, block, columns)

    def _block(self, rows: LearningOrder, *, lacks: str | None) -> tuple[PredictionBlock, Ints]:
        """Return the answers to rows, and the columns of what was learned of each after its answer.

        A row that was answered before is answered again on the way, since what a model has seen is
        learned there; nobody is told.
        """
        active = self._active
        if active is None:
            intervals = bool(interval_maps(self.config))
            block = warming_block(self._declared, rows.before, map_intervals=intervals)
            return block, rows.codes
        columns = active.view.columns(rows.codes)
        block = active.answer(rows.X, columns, rows.before, lacks=lacks)
        if self._mixture is not None:
            block = self._mixture.added_to(block, columns)
        active.note_learned(rows.learned().codes)
        return block, columns

    def _reported(self, order: LearningOrder, block: PredictionBlock, columns: Ints) -> Answers:
        """Return rows with the reports that they complete; each was scored as it was learned."""
        answers: Answers = []
        begin = 0
        for due, stop in self._due_reports(order):
            scored = self._scored(
                block.part(begin, stop), columns[begin:stop], order.part(begin, stop)
            )
            answers += with_report(scored, self._report(due))
            begin = stop
        if begin < len(order):
            rest = order.part(begin, len(order))
            answers += self._scored(block.part(begin, len(order)), columns[begin:], rest)
        return answers

    def _due_reports(self, order: LearningOrder) -> list[tuple[int, int]]:
        """Return the reports due among rows: examples learned by then, and rows up to it."""
        every, before = self.config.metrics_every, order.before
        due = range((int(before[0]) // every + 1) * every, self.n + 1, every)
        return [(n, int(np.searchsorted(before, n))) for n in due]

    def _scored(self, block: PredictionBlock, columns: Ints, order: LearningOrder) -> Watched:
        """Return rows that were learned right after their answers, and the alarms they raised."""
        if block.status != "ok":
            return [block]
        scored = as_given(block, order.given)
        rows = ScoredRows.of(scored, columns, order.slices, order.X)
        return self._watched(block, self._score(scored, columns, rows, block.n + 1))

    def _score(
        self, block: PredictionBlock, columns: Ints, rows: ScoredRows, learned: Ints
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
        if self._monitors is None or not len(rows):
            return []
        if len(rows) < len(columns):
            learned = learned[columns >= 0]
        alarms = self._monitors.update(rows, learned, self._since)
        if not alarms:
            return alarms
        names = SliceNames(self.config.slices, self._slices)
        return [names.of_alarm(alarm).naming(self.schema.names) for alarm in alarms]

    def _watched(self, block: PredictionBlock | None, alarms: Sequence[Alarm]) -> Watched:
        """Return answers and alarms in order, with the guarantee that open alarms leave them."""
        if self._monitors is None:
            return [] if block is None else [block]
        return self._monitors.cut(block, alarms)

    def _report(self, n: int) -> ValidityReport:
        """Return the report after `n` learned examples, which have all been scored."""
        windows, monitors = self._windows, self._monitors
        watched = None if monitors is None else monitors.report()
        if watched is not None:
            names = SliceNames(self.config.slices, self._slices)
            watched = replace(watched, tests=[names.of_test(test) for test in watched.tests])
        return replace(
            self._validity.report(n),
            windowed=None if windows is None else windows.report(self._slices),
            monitors=watched,
        )

    def _next_change(self) -> int | None:
        """Return the smallest n above the present one at which the answering changes."""
        active = self._active
        due = [] if self._pending is None else [self._pending.activation]
        if active is not None:
            due += self._gaps.ends(self.n)
        if self._acts:
            due.append(self._next_freeze())
        return min(due, default=None)

    def _change(self) -> None:
        """Freeze what the next refit takes, after an alarm; a refit waits until one needs it."""
        if self._acts:
            self._freeze_what_is_held()


def _acted_at(answers: Answers) -> int | None:
    """Return the examples learned at the first alarm that is acted on; None without one."""
    acted = (a.n for a in answers if isinstance(a, Alarm) and a.action != "report")
    return next(acted, None)


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


def _with_first(marked: Bools) -> int:
    """Return how many rows there are up to the first marked one, with it; all if none is.

    Examples
    --------
    >>> _with_first(np.array([False, True, True]))
    2
    """
    places = np.flatnonzero(marked)
    return int(places[0]) + 1 if len(places) else len(marked)
