"""OnlinePredictor: the one state machine. Answer, then learn; refit on schedule.

The schedule depends only on n, the number of learned examples:

- a report is due after the n-th example if n is a multiple of `metrics_every`;
- a refit freezes the last `window` examples if n is a multiple of `refit_every` (and early, at
  10, 20, 40, ...). Its model becomes active `lag` examples later, or at once while n is below
  `lags_from`. Without `refit_every`, each refit of a committee from the 2,000th example on sets
  the distance to the next one (`refit_distance`);
- the calibrators are fitted at activation.

Between two such points only counts change, so rows are answered in blocks. How a caller cuts rows
into blocks changes no bit of any answer.

The input of a refit depends on the examples alone, not on answers. So a refit is submitted as soon
as its examples have arrived, answered or not, and queued behind the refit before it; a remote
refitter gets more time that way. The predictor takes the result when the next answer or a snapshot
needs it, and waits only then.

With `on_drift` set to act on alarms, the input does depend on answers. Then a refit is submitted
after its last example was learned. An alarm withdraws the refits under way, and the schedule
restarts with the examples that follow.
"""

from collections.abc import Collection, Iterable, Sequence
from importlib import import_module
from itertools import chain

import numpy as np

from online_svm.config import PredictorConfig
from online_svm.config.semantics import are_equal
from online_svm.errors import InvalidExample, InvalidInput, InvalidSnapshot
from online_svm.memory.rows import MemoryChunk
from online_svm.predictor.active_model import ActiveModel
from online_svm.predictor.batch import (
    Admission,
    Answers,
    BatchResult,
    Events,
    LearningOrder,
    Waits,
    finished,
    in_order,
)
from online_svm.predictor.changed_kinds import ChangedKind
from online_svm.predictor.delayed_labels import DelayedLabels, LabelStep
from online_svm.predictor.frozen_predictor import FrozenPredictor
from online_svm.predictor.inference_engine import InferenceEngine
from online_svm.predictor.memory_fits import MemoryStatus
from online_svm.predictor.refit_schedule import RefitSchedule
from online_svm.refit.task import Refitter
from online_svm.storage.state import Header, State, as_array, nest, pack, under, unpack
from online_svm.stream.input_batch import (
    AnsweredIds,
    DelayedLabel,
    Example,
    InputBatch,
    SliceValue,
    checked_slices,
)
from online_svm.stream.labels import LabelIndex
from online_svm.stream.prediction import Prediction, PredictionBlock
from online_svm.stream.schema import FeatureSchema
from online_svm.stream.validity_report import Done
from online_svm.types import Floats

_CHUNK = "memory_chunk"
"""Name of the chunks of the memory in a snapshot."""


class OnlinePredictor:
    """Answers each example of a stream before learning its label.

    Parameters
    ----------
    refitter : Refitter, optional
        Computes the refits; by default this process does. It changes no answer.

    Attributes
    ----------
    schema : FeatureSchema
        Names or number of the features, once known.
    delayed_labels : DelayedLabels
        The examples that wait for delayed labels; without a horizon none does.

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
        self._engine = InferenceEngine(config, self._schedule)
        self.delayed_labels = DelayedLabels(config)
        self.schema = FeatureSchema(config)
        self._tell_features()

    @property
    def n(self) -> int:
        """Learned examples."""
        return self._schedule.n

    @property
    def labels(self) -> LabelIndex:
        """Declared and seen labels, in the order of their codes."""
        return self._schedule.labels

    @property
    def classes(self) -> tuple[str, ...]:
        """Declared and seen labels, sorted."""
        return tuple(label for label in self.labels.view().classes if label is not None)

    @property
    def changed_kinds(self) -> tuple[ChangedKind, ...]:
        """Features whose values came in another kind than the active model learned.

        These values count as missing.

        Examples
        --------
        >>> predictor = OnlinePredictor(PredictorConfig(classes=["no", "yes"]))
        >>> for i in range(40):
        ...     _ = predictor.step(Example({"flag": i % 2}, "yes" if i % 2 else "no"))
        >>> _ = predictor.step(Example({"flag": True}))
        >>> predictor.changed_kinds
        (ChangedKind(feature='flag', learned='numbers', came='true and false', values=1),)
        """
        return self._engine.scoring.changed_kinds

    def drain_changed_kinds(self) -> tuple[ChangedKind, ...]:
        """Return `changed_kinds`, and those that a new model ended since the last call.

        A model that is adopted between two calls may have learned the new kind; the answers before
        it still lacked these values.
        """
        return self._engine.scoring.drain_changed_kinds()

    @property
    def active(self) -> ActiveModel | None:
        """The model that answers now, after waiting for a due refit; None while warming up."""
        self.activate_if_due()
        return self._engine.model

    @property
    def is_waiting(self) -> bool:
        """Whether the next answer needs a refit result, or trees of the memory, not taken yet."""
        return self._schedule.is_waiting

    @property
    def is_waiting_for_refit(self) -> bool:
        """Whether the next answer needs a refit result that has not been taken yet."""
        return self._schedule.is_waiting_for_refit

    @property
    def is_waiting_for_trees(self) -> bool:
        """Whether the next answer needs trees of the memory that are not fitted yet."""
        return self._schedule.memory is not None and not self._schedule.memory.is_ready

    @property
    def is_refitting(self) -> bool:
        """Whether a refit has no result yet; a snapshot would wait for it."""
        return self._schedule.is_refitting

    @property
    def until_wait(self) -> int:
        """Lower bound on the examples that can be learned before an answer needs a refit or trees.

        If the next answer already needs one, the count starts after that answer.
        """
        return self._schedule.until_wait

    def activate_if_due(self) -> None:
        """Activate the refit that is due now; wait for its result if it has to take effect now.

        The next answer and a snapshot do this by themselves. A caller with idle time may do it
        earlier. Raises the refitter's exception if no result will come.
        """
        self._engine.activate_if_due()

    def step(self, example: Example) -> Prediction:
        """Answer one example, then learn it if it has a label or a probability.

        Raises
        ------
        InvalidExample
            If it cannot be answered; the predictor is unchanged then.
        """
        x = self.schema.scored(example.x, example.score, example.score_version)
        schema = self.schema.knowing(x)
        row = schema.row(x)
        label = self.schema.label(example.y)
        probability = self.schema.probability(example.p)
        if label is not None and probability is not None:
            raise InvalidExample("y_and_p")
        slices = checked_slices(example.slices, self.schema.slices)
        schema = schema.of_example(x)
        probabilities = None if probability is None else np.array([probability])
        times = None if example.time is None else [example.time]
        self.delayed_labels.check_new([example.id])
        batch = InputBatch(
            row[None, :], [label], [0], {}, self.delayed_labels.accepted, probabilities, schema,
            [example.id], times, [slices],
        )  # fmt: skip
        block = self.process(batch).found[0]
        assert isinstance(block, PredictionBlock)
        return block.row(0)

    def label(self, id: str, y: str | int) -> Done:
        """Take the delayed label of an answered example; return what was done with it.

        The setting `maturity` decides when the example is learned.

        Raises
        ------
        InvalidExample
            If it is no label of this stream, or cannot be used; see `DelayedLabels.label`.
        InvalidInput
            If the stream has no horizon, so that labels come with their examples.

        Examples
        --------
        >>> from online_svm.config import PredictorConfig
        >>> predictor = OnlinePredictor(PredictorConfig(horizon=100))
        >>> answer = predictor.step(Example([0.5, 1.0], id="a"))
        >>> predictor.label("a", "spam"), predictor.label("a", "spam"), predictor.n
        ('accepted', 'repeated', 0)
        """
        if not self.config.takes_delayed_labels:
            raise InvalidInput("label: a label comes with its example; set a horizon")
        label = self.schema.label(y)
        assert label is not None
        no_rows = np.empty((0, self.schema.dimension or 0))
        result = self.process(InputBatch(no_rows, [], [], {0: DelayedLabel(id, label)}))
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
        slices: Sequence[SliceValue | None] | None = None,
    ) -> Answers:
        """Answer and learn rows in order; equal to `step` on each.

        A horizon that counts time needs `process`, whose batch has the times.

        Parameters
        ----------
        X : ndarray of shape (m, n_features)
            Rows that `schema.row` accepted.
        labels : sequence of (str or None), length m
            Labels that `schema.label` accepted. A row with None is learned only if it has a
            probability.
        probabilities : ndarray of shape (m,), optional
            Values that `schema.probability` accepted, for rows without a label; NaN elsewhere. They
            are learned, but neither calibrate the model nor are scored.
        schema : FeatureSchema, optional
            The schema that checked the rows; it replaces the predictor's if there are rows.
        ids : sequence of (str or None), length m, optional
            Keys by which delayed labels can be sent; no waiting example may have one of them.
        slices : sequence of (SliceValue or None), length m, optional
            Values that `schema.slice_values` accepted.

        Returns
        -------
        list of (PredictionBlock, ValidityReport or Alarm)
            Blocks that cover the rows in order. A report follows the block that completed it; an
            alarm follows the block, and the report, of the example that raised it.

        Raises
        ------
        InvalidInput
            If the lengths differ, or a probability cannot be learned.
        """
        queue, rows = self.delayed_labels, range(len(X))
        queue.check_new(ids or ())
        batch = InputBatch(
            X, labels, rows, {}, queue.accepted, probabilities, schema, ids, slices=slices
        )
        return self.process(batch).found

    def process(
        self, batch: InputBatch, ids: AnsweredIds | None = None, max_classes: int | None = None
    ) -> BatchResult:
        """Process examples and labels in order; return the outcome of each and the answers.

        How a caller cuts the stream into batches changes no bit of any answer.

        Parameters
        ----------
        batch : InputBatch
            With a horizon it may contain labels of earlier examples.
        ids : AnsweredIds, optional
            An example whose id is in this set is a repeat. The ids of the batch are added to it.
        max_classes : int, optional
            Bound on undeclared labels; a label beyond it rejects its example.

        Raises
        ------
        InvalidInput
            As in `step_many`.

        Examples
        --------
        >>> from online_svm.config import PredictorConfig
        >>> predictor = OnlinePredictor(PredictorConfig(horizon=100))
        >>> label = DelayedLabel("i", "a")
        >>> batch = InputBatch(np.eye(2), [None, "b"], [0, 2], {1: label}, ids="ij")
        >>> result = predictor.process(batch)
        >>> result.taken[1].done, [answered.indices for answered in result.answers]
        ('accepted', [[0, 2]])
        """
        return finished(self.processing(batch, ids, max_classes))

    def processing(
        self, batch: InputBatch, ids: AnsweredIds | None = None, max_classes: int | None = None
    ) -> Waits[BatchResult]:
        """Run `process` as a generator that pauses when an answer needs a refit result.

        While it is paused, a caller may read only `is_waiting`.
        """
        batch, most = batch.checked(self.config), None if self.labels.declared else max_classes
        seen = set() if most is None else {*self.labels.labels, *self.delayed_labels.seen_labels}
        batch, result = Admission(batch, self.delayed_labels, ids, seen, most).admitted()
        if result.answered or (batch.schema is not None and batch.schema.is_mixed):
            self._know(batch.schema)
        result.before = self.n
        result.found = yield from self._engine.follow(self._events(batch, result))
        result.settled, self._engine.scoring.settled = self._engine.scoring.settled, []
        return result

    def _events(self, batch: InputBatch, result: BatchResult) -> Events:
        """Return the events of a batch of admitted examples; record them in its result."""
        slices = self._engine.scoring.slice_codes(batch.slices, len(batch))
        if not self.delayed_labels.is_delayed:
            codes = self.labels.codes(batch.labels)
            order = LearningOrder.at_once(batch, codes, slices, self.n)
            result.learned_by = order.of_learned(batch.indices)
            return [order]
        steps, counts = self.delayed_labels.take_steps()
        rows = (step for step in steps if isinstance(step, LabelStep))
        accepted = (step.example for step in rows if step.kind == "answer")
        for example, of_example in zip(accepted, slices, strict=True):
            example.slices = of_example
        self._engine.scoring.counts.extend(counts)
        return in_order(steps, self.labels, self.n)

    def _know(self, schema: FeatureSchema | None) -> None:
        if schema is not None and schema is not self.schema:
            self.schema = schema
            self._tell_features()

    def _tell_features(self) -> None:
        schema = self.schema
        self._engine.know(schema)
        if schema.is_mixed and schema.names is not None:
            order = sorted(range(len(schema.names)), key=schema.names.__getitem__)
            self._schedule.order = np.array(order, dtype=np.int64)

    def frozen(self) -> FrozenPredictor:
        """Return a frozen copy that answers rows without a label as this predictor does now.

        It shares its model with the predictor, so it is valid only until the predictor learns more.
        """
        self.activate_if_due()
        return self._engine.frozen(self.schema)

    @property
    def memory_status(self) -> MemoryStatus | None:
        """Rows, bytes, bound, last fit and weights of the memory; None without a memory."""
        fits, experts = self._schedule.memory, self._engine.memory
        if fits is None or experts is None:
            return None
        rows = fits.rows
        return MemoryStatus(len(rows), rows.n_bytes, fits.bound, experts.fitted_at, experts.weights)

    @property
    def memory_stop(self) -> int:
        """Number of the next row of the memory; 0 without a memory."""
        return 0 if self._schedule.memory is None else self._schedule.memory.stop

    @property
    def memory_first_chunk(self) -> int:
        """Index of the first chunk of the memory that this state needs; 0 without a memory."""
        fits = self._schedule.memory
        return 0 if fits is None else fits.first_chunk

    def memory_chunks(self, since: int = 0) -> list[MemoryChunk]:
        """Return the chunks of the memory with rows numbered `since` or higher, the open one too.

        Together with a snapshot without rows they are the whole state: see `restore`. A finished
        chunk changes no more, so `since` may be the `memory_stop` of the last call.
        """
        self.activate_if_due()
        fits = self._schedule.memory
        return [] if fits is None else fits.chunks(self.labels.labels, since)

    def erase_rows(self, ids: Collection[str]) -> int:
        """Delete the rows of these ids from the memory; return their number.

        What the memory learned is discarded, and its trees are fitted to the rows that remain; this
        is awaited. The window, the machines and everything else stay.
        """
        fits = self._schedule.memory
        count = 0 if fits is None else fits.erase(ids)
        if count:
            self._engine.fit_memory(forgets=True)
        return count

    def adopt_rows(self, chunks: Iterable[bytes], ids: Collection[str]) -> int:
        """Replace the rows of the memory by those of chunks; return how many are left out.

        For a predictor that has learned the newest examples again, without those of `ids`: the
        chunks are those of the predictor before. Rows of `ids` are left out, and rows of labels
        that this predictor does not know. The trees are then fitted as after `erase_rows`.

        Raises InvalidSnapshot if a chunk is damaged.
        """
        fits = self._schedule.memory
        if fits is None:
            return 0
        count = fits.adopt(chunks, ids, self.labels.labels)
        self._engine.fit_memory(forgets=True)
        return count

    def recall(self, X: Floats, labels: Sequence[str], schema: FeatureSchema) -> None:
        """Take rows that came before the first example into the memory; nothing else learns them.

        The memory's trees are then fitted by `fit_memory`, not before. Without a memory nothing is
        done.

        `X`, shape (m, n_features); `labels`, length m; `schema`: as in `step_many`.
        """
        fits = self._schedule.memory
        if fits is not None:
            self._know(schema)
            fits.recall(X, self.labels.codes(labels))

    def fit_memory(self) -> None:
        """Fit the memory's trees to all of its rows now; weights and stacks stay."""
        if self._schedule.memory is not None:
            self.activate_if_due()
            self._engine.fit_memory(forgets=False)

    def snapshot(self, *, with_rows: bool = True) -> bytes:
        """Return the whole state, including the result of a refit under way, which is awaited.

        `restore` continues from it byte for byte. A fit of the memory's trees under way is not
        awaited; it is computed again after a restore.

        `with_rows`: whether to include the rows of the memory; see `memory_chunks`.
        """
        self.activate_if_due()
        header: Header = {"config": self.config.model_dump(mode="json")}
        header |= {name: getattr(self.schema, name) for name in ("names", "dimension")}
        learned, arrays = self._schedule.state()
        answering, parts = self._engine.state()
        header |= learned | answering
        arrays |= parts
        if self.config.takes_delayed_labels:
            header["late"], parts = self.delayed_labels.state()
            arrays |= nest("late", parts)
        chunks = self.memory_chunks() if with_rows else ()
        arrays |= {f"{_CHUNK}.{chunk.index}": as_array(chunk.data) for chunk in chunks}
        return pack(header, arrays)

    def restore(self, data: bytes | memoryview, chunks: Iterable[bytes] = ()) -> None:
        """Continue from a snapshot of a predictor with the same configuration.

        Parameters
        ----------
        data : bytes
            What `snapshot` returned.
        chunks : iterable of bytes, optional
            The data of the chunks of the memory, if the snapshot has no rows. Rows that this state
            does not need are ignored.

        Raises
        ------
        InvalidSnapshot
            If the bytes are damaged, the configuration differs, or a row of the memory is missing;
            the predictor is unchanged then.
        """
        state = unpack(data)
        ours = self.config.model_dump(mode="json")
        if not are_equal(state.header.get("config"), ours):
            raise InvalidSnapshot("the snapshot was made under another configuration")
        restored = type(self)(self.config, self._refitter)
        try:
            restored._load(state, chunks)
        except (AttributeError, LookupError, OverflowError, TypeError, ValueError) as error:
            raise InvalidSnapshot(f"the snapshot lacks or contradicts itself: {error}") from error
        self.__dict__.update(restored.__dict__)

    def _load(self, state: State, chunks: Iterable[bytes]) -> None:
        header, arrays = state
        names = None if header["names"] is None else tuple(header["names"])
        self._schedule = RefitSchedule(self.config, self._refitter).restore(state)
        if self.config.takes_delayed_labels:
            delayed = State(header["late"], under("late", arrays))
            self.delayed_labels = DelayedLabels.from_state(delayed, self.config)
            learned = self.delayed_labels.learned
            if learned != self.n:
                raise ValueError(f"late labels are those of n = {learned}, not {self.n}")
        self._engine = InferenceEngine(self.config, self._schedule).restore(state)
        self._engine.scoring.wait_for(self.delayed_labels.examples())
        self._know(self.schema.of_features(names, header["dimension"]))
        if self._schedule.memory is not None:
            own = (chunk.tobytes() for chunk in under(_CHUNK, arrays).values())
            self._schedule.memory.take_rows(chain(own, chunks), self.labels.labels)
        self._schedule.continue_refits()


def _inline(config: PredictorConfig) -> Refitter:
    # By name: a worker sends its refits to other processes and never loads the solver.
    refitter: Refitter = import_module("online_svm.refit.learner").InlineRefitter(config)
    return refitter


def with_chunks(snapshot: bytes | memoryview, chunks: Sequence[bytes]) -> bytes:
    """Return a snapshot without rows with the rows of these chunks of the memory in it.

    Raises InvalidSnapshot if the snapshot is damaged.
    """
    if not chunks:
        return bytes(snapshot)
    header, arrays = unpack(snapshot)
    added = {f"{_CHUNK}.{i}": as_array(chunk) for i, chunk in enumerate(chunks)}
    return pack({k: v for k, v in header.items() if k != "format"}, arrays | added)
