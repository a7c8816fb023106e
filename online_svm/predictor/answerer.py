"""Answerer: answer rows in order, in blocks that one model answers alike, and learn them."""

from collections.abc import Sequence
from copy import copy, deepcopy
from typing import Self

import numpy as np

from online_svm.config import PredictorConfig
from online_svm.metrics.cost_matrix import CostMatrix
from online_svm.predictor.active_model import ActiveModel
from online_svm.predictor.answer_scoring import AnswerScoring
from online_svm.predictor.answering_state import AnsweringState, request_schema
from online_svm.predictor.batch_result import Answers, Waits
from online_svm.predictor.earlier import Earlier
from online_svm.predictor.label_gaps import LabelGaps
from online_svm.predictor.learning_order import Correction, LabelStep, LearningOrder
from online_svm.predictor.mixture import SHARE, Mixture
from online_svm.predictor.pending_examples import PendingExample, earlier_of, give
from online_svm.predictor.published_maps import interval_maps
from online_svm.predictor.refit_schedule import DueModel, RefitSchedule
from online_svm.predictor.warm_up import warming_block
from online_svm.storage.arrays import nest, under
from online_svm.storage.fields import Fields, number
from online_svm.storage.state import State
from online_svm.stream.alarm import Alarm
from online_svm.stream.answer_columns import Guarantee
from online_svm.stream.labels import LabelIndex
from online_svm.stream.prediction import PredictionBlock
from online_svm.stream.schema import FeatureSchema
from online_svm.types import Bools, Ints

_FIELDS = Fields(number("_models"), number("_calibrations"))


class Answerer:
    """Answers rows with the active model, and has what is learned of them scored.

    Parameters
    ----------
    config : PredictorConfig
    schedule : RefitSchedule
        Holds what is learned, and says when a model takes effect.

    Attributes
    ----------
    model : ActiveModel or None
        None while warming up.
    scoring : AnswerScoring
    """

    def __init__(self, config: PredictorConfig, schedule: RefitSchedule) -> None:
        self._config, self._schedule = config, schedule
        declared = config.classes
        self._declared = None if declared is None else LabelIndex(declared).view().classes
        self.model: ActiveModel | None = None
        self._models = self._calibrations = 0
        self._mixture = Mixture.of(config)
        self._gaps = LabelGaps(config)
        self.scoring = AnswerScoring(config)
        self._costs = CostMatrix.of(config)

    def follow(self, order: LearningOrder) -> Waits[Answers]:
        """Answer and learn rows in this order, in blocks between which the answering changes."""
        self._schedule.hold(order)
        answers: Answers = []
        begin = 0
        while begin < len(order):
            self._schedule.freeze_what_is_held()
            if self._schedule.is_waiting:
                yield
            self.activate_if_due()
            block, answered = self._answer_block(order, begin)
            answers += answered
            begin += len(block)
        return answers

    def follow_steps(self, steps: Sequence[LabelStep]) -> Waits[Answers]:
        """Do what steps say, in order: answer and learn examples, correct labels."""
        answers: Answers = []
        begin = 0
        for i, step in enumerate(steps):
            if step.correction is not None:
                answers += yield from self._follow_rows(steps[begin:i])
                yield from self._relabel(step.correction)
                begin = i + 1
        return answers + (yield from self._follow_rows(steps[begin:]))

    def know(self, schema: FeatureSchema) -> None:
        """Take over what is known of the features."""
        self.scoring.features = schema.names
        self.scoring.watched = schema.dimension if schema.is_mixed else None

    def activate_if_due(self) -> None:
        """Let the refit that is due now take effect; wait for its result where it must."""
        due = self._schedule.due_model()
        if due is None:
            return
        self.model = self._activated(due)
        self._schedule.activated()
        self._schedule.freeze_what_is_held()  # its result may have decided when the next one is
        self.scoring.coding = self.model.result.scaling.coding
        self.scoring.close(due.start)

    def answering_state(self, schema: FeatureSchema) -> AnsweringState:
        """Return what answers rows without a label as this does now; it cannot learn."""
        guarantee: tuple[Guarantee, str | None] = ("none", None)
        if self.model is not None:
            guarantee = self.scoring.guarantee(*self.model.guarantee(self._lacks))
        requests = request_schema(self._config).of_features(
            schema.names, schema.dimension, schema.first
        )
        n, model = self._schedule.n, self.model
        return AnsweringState(self._config, n, requests, model, self._mixture, guarantee)

    def state(self) -> State:
        """Return all but the configuration and the schedule; no refit is due."""
        scores, arrays = self.scoring.state()
        header = _FIELDS.header_of(self) | self._gaps.state() | scores
        if self._mixture is not None:
            arrays |= nest("mixture", self._mixture.state())
        if self.model is not None:
            header["active"], parts = self.model.state()
            arrays |= nest("active", parts)
        return State(header, arrays)

    @classmethod
    def from_state(
        cls,
        state: State,
        config: PredictorConfig,
        schedule: RefitSchedule,
        waiting: Sequence[PendingExample] = (),
    ) -> Self:
        """Return the answerer that `state` describes; `waiting` are examples without a label.

        Raises
        ------
        LookupError, TypeError, ValueError
            If a part is missing, or they do not fit one another.
        """
        header, arrays = state
        answerer = cls(config, schedule)
        _FIELDS.fill(answerer, header, {})
        answerer._gaps = LabelGaps.from_state(header, config)
        answerer.scoring = AnswerScoring.from_state(state, config, waiting)
        if answerer._mixture is not None:
            logs = under("mixture", arrays)
            answerer._mixture = Mixture.from_state(logs, len(config.published), SHARE)
        if "active" in header:
            active = State(header["active"], under("active", arrays))
            answerer.model = ActiveModel.from_state(active, config)
            answerer.scoring.coding = answerer.model.result.scaling.coding
        return answerer

    def _activated(self, due: DueModel) -> ActiveModel:
        self._models += 1
        self._calibrations += 1
        active = ActiveModel(self._config, due.result, due.view, self._models, due.training_codes)
        if self.model is not None and due.is_successor:
            active.follow(self.model)
        active.calibrate(due.outside, due.since, self._calibrations)
        return active

    def _follow_rows(self, steps: Sequence[LabelStep]) -> Waits[Answers]:
        learned = [step.example.label for step in steps if step.example and step.kind == "learn"]
        codes = self._schedule.labels.codes(learned)
        order = LearningOrder.of_steps(steps, codes, self._schedule.n)
        return (yield from self.follow(order)) if len(order) else []

    def _relabel(self, correction: Correction) -> Waits[None]:
        """Give a learned example another label, for the next refit."""
        if self._schedule.is_waiting:
            yield
        self.activate_if_due()  # by the labels of before
        self._schedule.relabel(correction.n, correction.label)
        self._gaps.correct(correction.n)

    def _answer_block(self, order: LearningOrder, begin: int) -> tuple[LearningOrder, Answers]:
        """Answer and learn the rows from `begin` on up to where the answering changes next."""
        schedule, due = self._schedule, self._next_change()
        block = order.part(begin, self._end_of_block(order, begin, due))
        block, answered = self._answer_until_acted(block)
        if not block.learns_all and block.gaps.any():
            self._gaps.unlabelled = int(block.before[block.gaps][-1])
        if schedule.acts and _acted_at(answered) is not None:
            self._begin_anew()
        if schedule.acts and schedule.n == due:
            schedule.freeze_what_is_held()
        return block, answered

    def _answer_until_acted(self, block: LearningOrder) -> tuple[LearningOrder, Answers]:
        """Answer a block up to the first row whose alarm is acted on; return what was answered.

        Which row that is shows only when the block is answered. If it is not the last one, all that
        has changed is put back, and the block is answered again up to it.
        """
        schedule, lacks = self._schedule, self._lacks
        before = self._copy() if schedule.acts and len(block) > 1 else None
        schedule.n = block.after
        answers = self._answer(block, lacks)
        n = _acted_at(answers) if schedule.acts else None
        stop = len(block) if n is None else int(np.searchsorted(block.before, n))
        if before is None or stop == len(block):
            return block, answers
        self.model, self.scoring, self._mixture = before.model, before.scoring, before._mixture
        block = block.part(0, stop)
        schedule.n = block.after
        return block, self._answer(block, lacks)

    def _copy(self) -> Self:
        """Return a copy of what answering a block changes; the rest is shared."""
        other = copy(self)
        other.scoring, other._mixture = self.scoring.copy(), deepcopy(self._mixture)
        other.model = None if self.model is None else self.model.copy()
        return other

    def _begin_anew(self) -> None:
        """Let refits use only later examples.

        With the policy "reset" the active model is given up too, and the predictor warms up again.
        """
        self._schedule.begin_anew()
        self.scoring.begin_anew()
        if self._config.on_drift == "reset":
            self.model, self._mixture = None, Mixture.of(self._config)
            self.scoring.coding = None

    def _next_change(self) -> int | None:
        """Return the smallest n above the present one at which the answering changes."""
        due = self._schedule.changes
        if self.model is not None:
            due += self._gaps.ends(self._schedule.n)
        return min(due, default=None)

    def _end_of_block(self, order: LearningOrder, begin: int, due: int | None) -> int:
        """Return the row before which the answering changes, at `due` learned examples or before.

        The first row with a probability changes the guarantee, and so does the first without a
        label.
        """
        stop = len(order) if due is None else int(order.before.searchsorted(due))
        if self.model is None:
            return stop
        if self._config.learner == "psvm" and not self.model.has_probabilities:
            stop = begin + _with_first(~np.isnan(order.probs[begin:stop]))
        if not (order.learns_all or self._gaps.lies_in_window(self._schedule.n)):
            stop = begin + _with_first(order.gaps[begin:stop])
        return stop

    @property
    def _lacks(self) -> str | None:
        """Why the labels of the window are not all that `exact` needs; None where they are."""
        return self._gaps.reason(self._schedule.n)

    def _answer(self, order: LearningOrder, lacks: str | None) -> Answers:
        """Answer rows that one model answers, with one fit of its maps, and report on them."""
        since = self._schedule.since
        if order.late is not None:
            return self.scoring.scored_late(order, self._late_block(order, lacks), since)
        block, columns = self._block(order, lacks)
        return self.scoring.scored_at_once(order, self._decided(block), columns, since)

    def _decided(self, block: PredictionBlock) -> PredictionBlock:
        return block if self._costs is None else self._costs.decided(block)

    def _late_block(self, order: LearningOrder, lacks: str | None) -> PredictionBlock | None:
        """Return the answers that rows ask for, kept with their examples; None if they ask none."""
        assert order.late is not None
        is_answered = order.late.answers
        rows = order.computed(is_answered)
        if not len(rows):
            return None
        concerned = order.late.chosen(order.learns | is_answered)
        block, _ = self._block(rows, lacks, earlier_of(concerned, rows.learns))
        given = block.taken(is_answered[order.learns | is_answered])
        give(order.late.chosen(is_answered), given)
        return self._decided(given)

    def _block(
        self, rows: LearningOrder, lacks: str | None, earlier: Earlier | None = None
    ) -> tuple[PredictionBlock, Ints]:
        """Return the answers to rows, and the columns of what was learned of each after its answer.

        A row that was answered before is answered again on the way, since what a model has seen is
        learned there; nobody is told.
        """
        active = self.model
        if active is None:
            intervals = bool(interval_maps(self._config))
            imputed = 0 if self.scoring.watched is not None else -1
            block = warming_block(
                self._declared, rows.before, map_intervals=intervals, imputed=imputed
            )
            return block, rows.codes
        columns = active.view.columns(rows.codes)
        block = active.answer(rows.X, columns, rows.before, lacks=lacks, earlier=earlier)
        if self._mixture is not None:
            block = self._mixture.added_to(block, columns)
        active.note_learned(rows.learned().codes)
        return block, columns


def _acted_at(answers: Answers) -> int | None:
    """Return the examples learned at the first alarm that is acted on; None without one."""
    acted = (a.n for a in answers if isinstance(a, Alarm) and a.action != "report")
    return next(acted, None)


def _with_first(marked: Bools) -> int:
    """Return how many rows there are up to the first marked one, with it; all if none is.

    Examples
    --------
    >>> _with_first(np.array([False, True, True]))
    2
    """
    places = np.flatnonzero(marked)
    return int(places[0]) + 1 if len(places) else len(marked)
