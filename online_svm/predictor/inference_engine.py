"""InferenceEngine: answer and learn rows in order, in blocks that one model answers."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Self

import numpy as np

from online_svm.config import PredictorConfig
from online_svm.metrics.cost_matrix import CostMatrix
from online_svm.predictor.active_model import ActiveModel, AnsweringParts
from online_svm.predictor.answer_scoring import AnswerScoring
from online_svm.predictor.batch import Answers, Events, LearningOrder, Waits
from online_svm.predictor.delayed_labels import Correction
from online_svm.predictor.ensemble import Ensemble
from online_svm.predictor.expert_ensemble import ExpertEnsemble
from online_svm.predictor.frozen_predictor import FrozenPredictor, request_schema
from online_svm.predictor.guarantee import LabelGaps
from online_svm.predictor.label_budget import LabelBudget
from online_svm.predictor.memory_experts import FittedTrees, MemoryExperts
from online_svm.predictor.pending_examples import answer_time_outputs, give
from online_svm.predictor.refit_schedule import DueModel, RefitSchedule
from online_svm.predictor.simple_experts import next_fit
from online_svm.storage.state import State, require
from online_svm.storage.state_schema import StateSchema, Stored, number, part, record
from online_svm.stream.alarm import Alarm
from online_svm.stream.answer_columns import Guarantee
from online_svm.stream.guarantee_reason import GuaranteeReason
from online_svm.stream.prediction import PredictionBlock
from online_svm.stream.schema import FeatureSchema
from online_svm.types import Bools, Ints

_NO_COLUMNS: Ints = np.empty(0, dtype=np.int64)


class InferenceEngine(Stored):
    """Answers rows with the active model, and has them scored as they are learned.

    `schedule`: holds the learned examples, and decides when a model takes effect.
    `model`: None while warming up.
    """

    _stored = StateSchema(
        number("_models"), number("_calibrations"), part("_gaps", stored_as=""),
        part("scoring", stored_as=""), part("_mixed", stored_as="mixture"),
        part("_budget", stored_as="label_budget"), part("_experts"),
        record("model", stored_as="active", of="_restored_model", optional=True),
    )  # fmt: skip

    def __init__(self, config: PredictorConfig, schedule: RefitSchedule) -> None:
        self._config, self._schedule = config, schedule
        self.model: ActiveModel | None = None
        self._models = self._calibrations = 0
        self._mixed = Ensemble.of_calibrators(config)
        self._gaps = LabelGaps(config)
        self.scoring = AnswerScoring(config)
        self._costs = CostMatrix.of(config)
        self._budget = LabelBudget.of(config)
        self._experts = ExpertEnsemble(config)

    def follow(self, events: Events) -> Waits[Answers]:
        """Answer and learn rows and correct labels, in order; pause when a refit is needed."""
        answers: Answers = []
        for event in events:
            if isinstance(event, Correction):
                yield from self._relabel(event)
                continue
            self._schedule.hold(event)
            begin = 0
            while begin < len(event):
                self._schedule.freeze_what_is_held()
                if self._schedule.is_waiting:
                    yield
                self.activate_if_due()
                block, answered = self._learn_block(event, begin)
                answers += answered
                begin += len(block)
        return answers

    def know(self, schema: FeatureSchema) -> None:
        """Adopt the names and number of the features."""
        self.scoring.features = schema.names
        self.scoring.watched = schema.dimension if schema.is_mixed else None
        if self._schedule.memory is not None:
            self._schedule.memory.is_named = schema.is_mixed

    def activate_if_due(self) -> None:
        """Activate the refit that is due now; wait for its result if it has to take effect now.

        The same holds of the trees of the memory. The simple experts are fitted if they are due.
        """
        due = self._schedule.due_model()
        if due is not None:
            self._activate(due)
        self._prepare()
        fits = self._schedule.memory
        if fits is not None:
            self.take_trees(fits.due())
            fits.fit_if_due()

    def take_trees(self, fitted: Sequence[FittedTrees]) -> None:
        """Answer with newly fitted trees of the memory from now on."""
        for one in fitted:
            self._experts.memory_of_feed.take(one)

    def fit_memory(self, *, forgets: bool) -> None:
        """Fit the memory's trees to all rows now, and wait for them.

        `forgets`: whether to begin as a new feed does: with the first weights, without stacks, and
            without trees of few rows.
        """
        fits = self._schedule.memory
        assert fits is not None
        if forgets:
            self._experts.forget_memory()
        self.take_trees(fits.fit_now(needs_many=forgets))

    def _activate(self, due: DueModel) -> None:
        self.model = self._activated(due)
        self._schedule.activated()
        self._schedule.freeze_what_is_held()  # the result may set the next freeze
        self.scoring.adopt(self.model.result.scaling.encoder)
        self.scoring.close(due.start)

    def _prepare(self) -> None:
        """Give the experts the classes of the next answer, and let them fit if it is due."""
        schedule, model, experts = self._schedule, self.model, self._experts
        if model is not None and model.for_experts is None:
            return
        if model is not None:
            experts.adopt(model.view)
        elif not schedule.labels.declared:
            experts.adopt(schedule.labels.view(experts.n_labels))
        order = None if self.scoring.watched is None else schedule.order
        fitted = None if model is None else model.for_experts
        experts.fit_if_due(schedule.n, schedule.n - schedule.since, fitted, order)

    def frozen(self, schema: FeatureSchema) -> FrozenPredictor:
        """Return a frozen copy that answers rows without a label as this does now."""
        guarantee: tuple[Guarantee, GuaranteeReason | None] = ("none", None)
        if self.model is not None:
            guarantee = self.scoring.guarantee(*self.model.guarantee(self._lacks))
        requests = request_schema(self._config).of_features(schema.names, schema.dimension)
        promise = self.scoring.promise
        thresholds = None if promise is None else promise.thresholds()
        sets = self.scoring.sets
        of_sets = None if sets is None else sets.threshold
        parts = self._parts._replace(thresholds=thresholds, of_sets=of_sets)
        return FrozenPredictor(
            self._config, self._schedule.n, requests, parts, guarantee, self.scoring.notices
        )

    @property
    def _parts(self) -> AnsweringParts:
        return AnsweringParts(self._config, self.model, self._mixed, self._experts)

    def _on_restored(self) -> None:
        is_current, has_model = self._schedule.is_current, self.model is not None
        require(has_model or not is_current, "active")
        require(is_current or not has_model or self._schedule.since, "is_current")

    def _restored_model(self, state: State) -> ActiveModel:
        model = ActiveModel.from_state(state, self._config)
        self.scoring.encoder = model.result.scaling.encoder
        return model

    def _activated(self, due: DueModel) -> ActiveModel:
        self._models += 1
        self._calibrations += 1
        active = ActiveModel(self._config, due.result, due.view, self._models, due.training_codes)
        if self.model is not None and due.is_successor:
            active.follow(self.model)
        active.calibrate(due.outside, due.since, self._calibrations)
        return active

    def _relabel(self, correction: Correction) -> Waits[None]:
        """Change the label of a learned example for the next refit."""
        if self._schedule.is_waiting:
            yield
        self.activate_if_due()  # calibrated with the old label
        self._schedule.relabel(correction.n, correction.label)
        self._gaps.correct(correction.n)

    def _learn_block(self, order: LearningOrder, begin: int) -> tuple[LearningOrder, Answers]:
        """Answer and learn rows from `begin` up to the next change; return them with the answers.

        A row whose alarm is acted on ends the block. Only its answer shows which row that is. If it
        is not the last one, the state before the block is restored, and the block is learned again
        up to that row.
        """
        schedule, lacks, due = self._schedule, self._lacks, self._next_change()
        block = order.part(begin, self._end_of_block(order, begin, due))
        before = self._copy() if schedule.acts and len(block) > 1 else None
        answers = self._learn(block, lacks)
        acted = _acted_at(answers) if schedule.acts else None
        if before is not None and acted is not None:
            stop = int(np.searchsorted(block.before, acted))
            if stop < len(block):
                self.__dict__.update(before.__dict__)
                block = block.part(0, stop)
                answers = self._learn(block, lacks)
        schedule.learned(block)
        if not block.is_plain and block.gaps.any():
            self._gaps.unlabelled = int(block.before[block.gaps][-1])
        if acted is not None:
            self._restart()
        if schedule.acts and schedule.n == due:
            schedule.freeze_what_is_held()
        return block, answers

    def _copy(self) -> Self:
        """Return a copy of the state that answering a block changes; the rest is shared."""
        shared = [self._config, self._schedule, *self.scoring.immutable]
        shared += [] if self.model is None else self.model.immutable
        return deepcopy(self, {id(part): part for part in shared})

    def _restart(self) -> None:
        """Restart refits and tests with later examples.

        With the policy "reset" the active model is dropped too, and the predictor warms up again.
        """
        self._schedule.restart()
        self.scoring.restart()
        if self._config.on_drift == "reset":
            self.model, self._mixed = None, Ensemble.of_calibrators(self._config)
            self._experts = ExpertEnsemble(self._config)
            self.scoring.encoder = None

    def _next_change(self) -> int | None:
        """Return the smallest n above the present one at which the answering changes."""
        due = self._schedule.changes
        if self.model is not None:
            due += self._gaps.ends(self._schedule.n)
        if self.model is None or self.model.for_experts is not None:
            due.append(self._schedule.since + next_fit(self._schedule.n - self._schedule.since))
        return min(due, default=None)

    def _end_of_block(self, order: LearningOrder, begin: int, due: int | None) -> int:
        """Return the end of the block: at `due` learned examples at the latest.

        The first row with a probability changes the guarantee, and so does the first without a
        label: the block ends with that row.
        """
        stop = len(order) if due is None else int(order.before.searchsorted(due))
        if self.model is None and not self._schedule.labels.declared:
            # The answer after a new label knows its class.
            return begin + _with_first(order.codes[begin:stop] >= self._experts.n_labels)
        if self.model is None:
            return stop
        if self._config.learner == "psvm" and not self.model.has_probabilities:
            stop = begin + _with_first(~np.isnan(order.probs[begin:stop]))
        if not (order.is_plain or self._gaps.lies_in_window(self._schedule.n)):
            stop = begin + _with_first(order.gaps[begin:stop])
        return stop

    @property
    def memory(self) -> MemoryExperts | None:
        """The experts with long memory; None without a memory."""
        return self._experts.memory

    @property
    def _lacks(self) -> GuaranteeReason | None:
        """Why the window's labels do not support an exact guarantee; None if they do."""
        return self._gaps.reason(self._schedule.n)

    def _learn(self, order: LearningOrder, lacks: GuaranteeReason | None) -> Answers:
        """Answer and learn rows with one model and one fit of calibrators; score settled ones."""
        self._schedule.n = order.after
        rows = order.computed()
        block, columns = self._answer(rows, lacks) if len(rows) else (None, _NO_COLUMNS)
        return self.scoring.scored(order, block, columns, self._schedule.since)

    def _answer(
        self, rows: LearningOrder, lacks: GuaranteeReason | None
    ) -> tuple[PredictionBlock, Ints]:
        """Return the answers to the rows that ask, with the columns of their labels.

        A row that only learns is answered a second time, because `ActiveModel.answer` is where the
        model learns; this answer is dropped. The other answers are stored with waiting examples.
        """
        at_answer = answer_time_outputs(rows.examples, rows.learns, rows.answers, rows.before)
        self._experts.count_labels(rows.codes)
        block, columns = self._parts.answer(
            rows.X, rows.codes, rows.before,
            is_mixed=self.scoring.watched is not None, lacks=lacks, at_answer=at_answer,
        )  # fmt: skip
        if self.model is not None:
            self.model.note_learned(rows.learned().codes)
        if not (rows.is_plain or rows.answers.all()):
            block, columns, rows = (
                block.taken(rows.answers), columns[rows.answers], rows.taken(rows.answers),
            )  # fmt: skip
        self.scoring.count_kinds(rows.X)
        if rows.examples:
            if self._budget is not None:
                block = self._budget.marked(block, rows.examples[0].number)
            give(rows.examples, block)
        return self._costs.decided(block) if self._costs is not None else block, columns


def _acted_at(answers: Answers) -> int | None:
    """Return n at the first alarm that is acted on, or None."""
    acted = (a.n for a in answers if isinstance(a, Alarm) and a.action != "report")
    return next(acted, None)


def _with_first(marked: Bools) -> int:
    """Return the number of rows up to and including the first marked one, or all."""
    places = np.flatnonzero(marked)
    return int(places[0]) + 1 if len(places) else len(marked)
