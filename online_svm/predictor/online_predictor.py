"""OnlinePredictor: the one state machine. Answer, then learn; refit on schedule.

The schedule goes by n, the number of learned examples, alone:

- after the n-th example a report is due where n is a multiple of `metrics_every`;
- a refit freezes the last `window` examples where n is a multiple of `refit_every` (and early, at
  10, 20, 40, ...), and its model becomes active `lag` examples later, or at once while n is
  below `lags_from`; without `refit_every`, a committee's refits from the 2,000th example on each
  say when the next one is (`refit_distance`);
- the maps are fitted at activation.

Between two such points nothing but counts changes, so rows are answered in blocks; where the
blocks of a caller begin and end changes no bit of any answer.

What a refit is given depends on the examples alone and on no answer. So it is submitted as soon as
its examples have come, be they answered yet or not, and in line behind the refit before it: that
gives it more time where it is computed elsewhere. When it is computed changes nothing.
Its result is taken when the next answer, or a snapshot, needs it, and is waited for only then.

Where `on_drift` acts on alarms, it does depend on answers. Then it is submitted when its last
example was learned. An alarm withdraws the refits under way, and the schedule begins anew with the
examples that follow.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from online_svm.config import PredictorConfig
from online_svm.config.semantics import are_equal
from online_svm.errors import InvalidExample, InvalidInput, InvalidSnapshot
from online_svm.predictor.active_model import ActiveModel
from online_svm.predictor.admission import LateAdmission, admit
from online_svm.predictor.answer_scoring import AnswerScoring
from online_svm.predictor.answerer import Answerer
from online_svm.predictor.answering_state import AnsweringState
from online_svm.predictor.batch_result import Answers, BatchResult, Waits, finished
from online_svm.predictor.late_labels import LateLabels
from online_svm.predictor.learning_order import LearningOrder, report_counts
from online_svm.predictor.refit_schedule import RefitSchedule
from online_svm.refit.task import Refitter
from online_svm.storage.arrays import nest, under
from online_svm.storage.container import pack, unpack
from online_svm.storage.state import Header, State
from online_svm.stream.given_answer import GivenAnswer, given_columns
from online_svm.stream.input_batch import (
    AnsweredIds,
    Example,
    InputBatch,
    LateLabel,
    checked_probabilities,
)
from online_svm.stream.label_counts import Done
from online_svm.stream.labels import LabelIndex
from online_svm.stream.prediction import Prediction, PredictionBlock
from online_svm.stream.schema import FeatureSchema
from online_svm.stream.slices import SliceValue
from online_svm.types import Floats, Ints


class OnlinePredictor:
    """Answers a stream of examples, each before its label is learned.

    Parameters
    ----------
    config : PredictorConfig
    refitter : Refitter, optional
        Where refits are computed; in this process without it. It changes no answer.

    Attributes
    ----------
    schema : FeatureSchema
        Names or number of the features, once known.
    late : LateLabels or None
        The examples that wait for their labels, where there is a horizon.

    Examples
    --------
    >>> from online_svm.config import PredictorConfig
    >>> predictor = OnlinePredictor(PredictorConfig(classes=["no", "yes"], refit_every=10))
    >>> for i in range(30):
    ...     prediction = predictor.step(Example([float(i % 2), 1.0], "yes" if i % 2 else "no"))
    >>> prediction.label, prediction.guarantee
    ('yes', 'exact')
    >>> copy = OnlinePredictor(predictor.config)
    >>> copy.restore(predictor.snapshot())
    >>> copy.step(Example([0.0, 1.0])) == predictor.step(Example([0.0, 1.0]))
    True
    """

    def __init__(self, config: PredictorConfig, refitter: Refitter | None = None) -> None:
        self.config = config
        self._refitter = _inline(config) if refitter is None else refitter
        self._schedule = RefitSchedule(config, self._refitter)
        self._answerer = Answerer(config, self._schedule)
        self.late = LateLabels(config) if config.takes_late_labels else None
        self.schema = FeatureSchema(config)
        self._tell_features()

    @property
    def n(self) -> int:
        """Learned examples."""
        return self._schedule.n

    @property
    def labels(self) -> LabelIndex:
        """Labels declared or met so far, in the order of their codes."""
        return self._schedule.labels

    @property
    def classes(self) -> tuple[str, ...]:
        """Labels declared or met so far, sorted."""
        return tuple(label for label in self.labels.view().classes if label is not None)

    @property
    def active(self) -> ActiveModel | None:
        """The model that answers now; None while warming up. A refit that is due is waited for."""
        self.activate_if_due()
        return self._answerer.model

    @property
    def is_waiting(self) -> bool:
        """Whether the next answer needs the result of a refit, which was not taken yet."""
        return self._schedule.is_waiting

    @property
    def is_refitting(self) -> bool:
        """Whether there is a refit whose result was not taken yet; a snapshot would wait for it."""
        return self._schedule.is_refitting

    @property
    def until_wait(self) -> int:
        """Examples that can be learned before an answer needs the result of a refit, at least.

        Where the next answer needs one already, those until another is needed.
        """
        return self._schedule.until_wait

    def activate_if_due(self) -> None:
        """Let the refit that is due now take effect; wait for its result where it must.

        It takes effect by itself where the next example is answered, and in a snapshot. A caller
        that has time before that may call this then.

        Raises
        ------
        Exception
            What the refitter raises if there will be no result.
        """
        self._answerer.activate_if_due()

    def step(self, example: Example) -> Prediction:
        """Answer one example, then learn it if it has a label or a probability.

        Raises
        ------
        InvalidExample
            If it cannot be answered; nothing has changed then.
        """
        schema = self.schema.knowing(example.x)
        row = schema.row(example.x)
        label = self.schema.label(example.y)
        probability = self.schema.probability(example.p)
        if label is not None and probability is not None:
            raise InvalidExample("duplicate_field", "both y and p are given; give one")
        slices = self.schema.slice_values(example.slices)
        schema = schema.of_example(example.x)
        probabilities = None if probability is None else np.array([probability])
        times = None if example.time is None else [example.time]
        answers = self.step_many(
            row[None, :],
            [label],
            probabilities,
            schema,
            ids=[example.id],
            times=times,
            slices=[slices],
        )
        block = answers[0]
        assert isinstance(block, PredictionBlock)
        return block.row(0)

    def label(self, id: str, y: str | int) -> Done:
        """Take the label of an example that was answered before; say what was done with it.

        It is learned as the setting `maturity` says.

        Raises
        ------
        InvalidExample
            If it is no label of this stream, or cannot be used; see `LateLabels.label`.
        InvalidInput
            If labels come with their examples here.

        Examples
        --------
        >>> from online_svm.config import PredictorConfig
        >>> predictor = OnlinePredictor(PredictorConfig(horizon=100))
        >>> answer = predictor.step(Example([0.5, 1.0], id="a"))
        >>> predictor.label("a", "spam"), predictor.label("a", "spam"), predictor.n
        ('accepted', 'repeated', 0)
        """
        if self.late is None:
            raise InvalidInput("label: a label comes with its example; set a horizon")
        label = self.schema.label(y)
        assert label is not None
        no_rows = np.empty((0, self.schema.dimension or 0))
        result = self.process(InputBatch(no_rows, [], [], {0: LateLabel(id, label)}))
        if result.rejected:
            raise result.rejected[0]
        return result.taken[0].done

    def step_many(
        self,
        X: Floats,
        labels: Sequence[str | None],
        probabilities: Floats | None = None,
        schema: FeatureSchema | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        times: Sequence[int] | None = None,
        slices: Sequence[SliceValue | None] | None = None,
        given: Sequence[GivenAnswer | None] | None = None,
    ) -> Answers:
        """Answer and learn rows in order; the same as `step` on each.

        Parameters
        ----------
        X : ndarray of shape (m, n_features)
            Rows that `schema.row` accepted.
        labels : sequence of (str or None), length m
            Labels that `schema.label` accepted; None leaves a row unlearned, unless it has a
            probability.
        probabilities : ndarray of shape (m,), optional
            Values that `schema.probability` accepted, of rows without a label; NaN where there is
            none. They are learned, but take no part in calibration and are not scored.
        schema : FeatureSchema, optional
            The one the rows were checked by; if there are any, it is the predictor's from now on.
        ids : sequence of (str or None), length m, optional
            By which labels can be sent later, where there is a horizon; none may wait already.
        times : sequence of int, length m, optional
            Milliseconds, where the horizon counts time.
        slices : sequence of (SliceValue or None), length m, optional
            Values that `schema.slice_values` accepted.
        given : sequence of (GivenAnswer or None), length m, optional
            Answers that were given elsewhere before the labels came, where the setting
            `given_answers` is on: the headline and the monitors score them in place of the own
            ones. They change no answer, and nothing that is learned, but for what `on_drift` does.

        Returns
        -------
        list of (PredictionBlock, ValidityReport or Alarm)
            Blocks that cover the rows in order; a report follows the block that completed it, and
            an alarm the block, and the report, of the example that raised it.

        Raises
        ------
        InvalidInput
            If the lengths differ, a probability cannot be learned, or answers were given and
            `given_answers` is off.
        """
        if self.late is not None and ids is not None:
            self.late.check_new(ids)
        batch = InputBatch(
            X,
            labels,
            range(len(X)),
            first=0 if self.late is None else self.late.accepted,
            probabilities=probabilities,
            schema=schema,
            ids=ids,
            times=times,
            slices=slices,
            given=given,
        )
        return self.process(batch).found

    def process(
        self, batch: InputBatch, ids: AnsweredIds | None = None, max_classes: int | None = None
    ) -> BatchResult:
        """Take examples and labels in order; say what became of each, and what it caused.

        Where a batch begins and ends changes no bit of any answer.

        Parameters
        ----------
        batch : InputBatch
            Labels of earlier examples may be in it where there is a horizon.
        ids : AnsweredIds, optional
            An example whose id is among these is a repeat. The ids of the batch are added.
        max_classes : int, optional
            Bound on the labels where none are declared; a label beyond it rejects its example.

        Raises
        ------
        InvalidInput
            As in `step_many`.

        Examples
        --------
        >>> from online_svm.config import PredictorConfig
        >>> predictor = OnlinePredictor(PredictorConfig(horizon=100))
        >>> batch = InputBatch(np.eye(2), [None, "b"], [0, 2], {1: LateLabel("i", "a")}, ids="ij")
        >>> result = predictor.process(batch)
        >>> result.taken[1].done, [answered.indices for answered in result.answers]
        ('accepted', [[0, 2]])
        """
        return finished(self.processing(batch, ids, max_classes))

    def processing(
        self, batch: InputBatch, ids: AnsweredIds | None = None, max_classes: int | None = None
    ) -> Waits[BatchResult]:
        """Do what `process` does in steps: pause where an answer needs the result of a refit.

        Between two steps nothing may be asked of the predictor but `is_waiting`.
        """
        batch = self._checked(batch)
        most = None if self.labels.declared else max_classes
        if self.late is not None:
            return (yield from self._processing_late(batch, self.late, ids, most))
        schema = batch.schema
        batch, result = admit(batch, ids, self.labels, most)
        if len(batch) or (schema is not None and schema.is_mixed):
            self._know(schema)
        codes = self.labels.codes(batch.labels)
        given = batch.given
        said = None if given is None else given_columns(given, len(self.schema.classes))
        slices = self._answerer.scoring.slice_codes(batch.slices, len(batch))
        assert batch.probabilities is not None
        order = LearningOrder.at_once(batch.X, codes, batch.probabilities, self.n, slices, said)
        result.before, result.answered = self.n, batch.indices
        result.learned_by = order.of_learned(batch.indices)
        result.found = yield from self._answerer.follow(order)
        return result

    def _processing_late(
        self,
        batch: InputBatch,
        late: LateLabels,
        ids: AnsweredIds | None,
        max_classes: int | None,
    ) -> Waits[BatchResult]:
        slices = partial(_slices_of, self._answerer.scoring, batch)
        result = LateAdmission(batch, late, slices, ids, max_classes).result()
        steps = late.take_steps()
        if result.answered or (batch.schema is not None and batch.schema.is_mixed):
            self._know(batch.schema)
        learned = (step.example for step in steps if step.kind == "learn")
        result.learned = [example for example in learned if example is not None]
        self._answerer.scoring.counts = deque(report_counts(steps))
        result.found = yield from self._answerer.follow_steps(steps)
        return result

    def _checked(self, batch: InputBatch) -> InputBatch:
        """Return a batch with its probabilities, if it can be used."""
        X, labels = batch.X, batch.labels
        if batch.given is not None and not self.config.given_answers:
            raise InvalidInput("given: the setting given_answers is off")
        if len(X) != len(labels):
            raise InvalidInput(f"labels: {len(labels)} for {len(X)} rows; give one for each row")
        are_taken = self.config.learner == "psvm"
        probs = checked_probabilities(batch.probabilities, labels, are_taken=are_taken)
        return replace(batch, probabilities=probs)

    def _know(self, schema: FeatureSchema | None) -> None:
        """Take over the features by which rows were checked."""
        if schema is not None and schema is not self.schema:
            self.schema = schema
            self._tell_features()

    def _tell_features(self) -> None:
        schema = self.schema
        self._answerer.know(schema)
        if schema.is_mixed and schema.names is not None:
            order = sorted(range(len(schema.names)), key=schema.names.__getitem__)
            self._schedule.order = np.array(order, dtype=np.int64)

    def answering_state(self) -> AnsweringState:
        """Return what answers rows without a label as this predictor does now; it cannot learn.

        It shares its model with the predictor: once that has learned more, ask for another.

        Examples
        --------
        >>> from online_svm.config import PredictorConfig
        >>> predictor = OnlinePredictor(PredictorConfig(classes=["no", "yes"]))
        >>> predictor.answering_state().answer(np.zeros((1, 2))).status, predictor.n
        ('warming', 0)
        """
        self.activate_if_due()
        return self._answerer.answering_state(self.schema)

    def answering(self) -> bytes:
        """Return `answering_state` as bytes.

        `AnsweringState.restore` reads it, in a process that has the configuration.
        """
        return self.answering_state().snapshot()

    def snapshot(self) -> bytes:
        """Return the whole state; `restore` continues from it byte for byte.

        A refit under way is waited for, and its result is part of the snapshot.
        """
        self.activate_if_due()
        header: Header = {
            "config": self.config.model_dump(mode="json"),
            "names": self.schema.names,
            "dimension": self.schema.dimension,
            "first": self.schema.first,
        }
        learned, arrays = self._schedule.state()
        answering, parts = self._answerer.state()
        header |= learned | answering
        arrays |= parts
        if self.late is not None:
            header["late"], parts = self.late.state()
            arrays |= nest("late", parts)
        return pack(header, arrays)

    def restore(self, data: bytes | memoryview) -> None:
        """Continue from a snapshot of a predictor with the same configuration.

        Raises
        ------
        InvalidSnapshot
            If the bytes are damaged, or the configuration differs; nothing has changed then.
        """
        state = unpack(data)
        ours = self.config.model_dump(mode="json")
        if not are_equal(state.header.get("config"), ours):
            raise InvalidSnapshot("the snapshot was made under another configuration")
        restored = type(self)(self.config, self._refitter)
        try:
            restored._load(state)
        except (AttributeError, LookupError, OverflowError, TypeError, ValueError) as error:
            raise InvalidSnapshot(f"the snapshot lacks or contradicts itself: {error}") from error
        self.__dict__.update(restored.__dict__)

    def _load(self, state: State) -> None:
        header, arrays = state
        names = None if header["names"] is None else tuple(header["names"])
        self._schedule = RefitSchedule.from_state(state, self.config, self._refitter)
        if self.late is not None:
            late = State(header["late"], under("late", arrays))
            self.late = LateLabels.from_state(late, self.config)
            if self.late.learned != self.n:
                raise ValueError(f"late labels are those of n = {self.late.learned}, not {self.n}")
        waiting = [] if self.late is None else self.late.examples()
        self._answerer = Answerer.from_state(state, self.config, self._schedule, waiting)
        self._know(self.schema.of_features(names, header["dimension"], header.get("first")))
        self._schedule.continue_refits(state)


def _slices_of(scoring: AnswerScoring, batch: InputBatch, row: int) -> Ints:
    codes: Ints = scoring.slice_codes(None if batch.slices is None else [batch.slices[row]], 1)[0]
    return codes


def _inline(config: PredictorConfig) -> Refitter:
    # Imported where it is used: a process whose refits are elsewhere starts without the solver.
    from online_svm.refit.inline import InlineRefitter

    return InlineRefitter(config)
