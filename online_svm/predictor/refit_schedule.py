"""RefitSchedule: freeze examples, submit their refit, and say when its model takes effect."""

from dataclasses import dataclass

import numpy as np

from online_svm.config import PredictorConfig
from online_svm.predictor.batch import LearningOrder
from online_svm.predictor.memory_fits import MemoryFits
from online_svm.refit.committee.staleness import Staleness
from online_svm.refit.task import RefitResult, RefitTask, Refitter
from online_svm.storage.state import as_array, require
from online_svm.storage.state_schema import (
    StateSchema,
    Stored,
    StoredHeader,
    bytes_of,
    flag,
    number,
    part,
    texts,
    whole,
)
from online_svm.stream.available_examples import AvailableExamples
from online_svm.stream.labels import ClassView, LabelIndex
from online_svm.stream.split import is_early_refit, next_refit, training_mask
from online_svm.svm.kernel_model import given_weights
from online_svm.types import Bytes, Floats, Ints

LONGEST_DISTANCE = 2000
KEPT_SIXTEENTHS = 15  # sixteenths of the sums that each refit keeps: a memory of about 16 refits


class RefitDistance(StoredHeader):
    """Learned examples from one freeze to the next, adapted to the value of refits.

    The distance starts at its minimum. After each refit it is doubled if older models lose no more
    than newer ones on examples that came after both, by at most half a standard error; else it is
    halved. A freeze decides the next distance from labels of its own proper training set alone.
    These labels do not calibrate its model, and the end of the previous model was decided one
    freeze earlier. So no calibration label influences how long its model answers, and the guarantee
    stays `exact`.

    `examples`: learned examples from the last freeze to the next.
    """

    _stored = StateSchema(number("examples"), whole("_total"), number("_squares"))

    def __init__(self, config: PredictorConfig) -> None:
        self._from, self._gathers_from = config.varies_from, config.dense_until
        self._shortest, self._lag = config.distance, config.lag
        self._stretches_lag = config.varies_from is not None and config.lags_from > 0
        self._longest = max(
            self._shortest, min(LONGEST_DISTANCE, config.window or LONGEST_DISTANCE)
        )
        self.examples = self._shortest
        # Excess loss of older models and its sum of squares, in units of `Staleness`.
        self._total = self._squares = 0

    @property
    def lag(self) -> int:
        """Learned examples from a late freeze to the activation of its model.

        By default a quarter of the distance before that freeze.
        """
        return max(self._lag, self.examples // 4 - 1) if self._stretches_lag else self._lag

    def is_free_from(self, k: int) -> bool:
        """Return whether the refit frozen at k learned examples decides the next freeze."""
        return self._from is not None and k >= self._from

    def follow(self, k: int, found: Staleness) -> None:
        """Update the distance with the result of the refit frozen at k learned examples.

        A refit without a comparison, as after a correction, leaves the distance unchanged.
        """
        if self._from is None or k <= self._gathers_from or found.n == 0:
            return
        self._total = self._total * KEPT_SIXTEENTHS // 16 + found.total
        self._squares = self._squares * KEPT_SIXTEENTHS // 16 + found.squares
        if not self.is_free_from(k):
            return
        # Stale if the total exceeds half a standard error, estimated by the sum of squares.
        is_stale = self._total > 0 and 4 * self._total * self._total > self._squares
        wanted = self.examples // 2 if is_stale else 2 * self.examples
        self.examples = min(max(wanted, self._shortest), self._longest)

    def _on_restored(self) -> None:
        require(self._shortest <= self.examples <= self._longest, "distance")


@dataclass(frozen=True, slots=True, eq=False)
class DueModel:
    """A refit that takes effect now, with the data for its calibration."""

    start: int  # number of the first frozen example
    result: RefitResult
    view: ClassView  # classes known at the freeze
    training_codes: Ints  # shape (n_training,); label codes of the proper training set
    outside: Ints  # shape (n_outside,); label codes of the other available examples, in order
    since: Floats  # shape (lag, n_features); rows learned since the freeze
    # Whether the active model may hand over its state: no alarm was acted on since.
    is_successor: bool


@dataclass(slots=True)
class PendingRefit(Stored):
    """A frozen refit until its activation."""

    _stored = StateSchema(
        number("start"), number("freeze"), number("activation"), texts("_labels"),
        bytes_of("_result", "n"),
    )  # fmt: skip

    start: int  # number of the first frozen example
    freeze: int  # number after the last frozen example
    activation: int  # value of n at which the model becomes active
    view: ClassView  # classes known at the freeze
    result: RefitResult | None = None  # set once a snapshot or an activation has waited for it

    @property
    def _labels(self) -> list[str]:
        return list(self.view.labels)

    @_labels.setter
    def _labels(self, labels: list[str]) -> None:
        self.view = ClassView(labels, self.view.declared)

    @property
    def _result(self) -> Bytes:
        return as_array(b"" if self.result is None else self.result.state())

    @_result.setter
    def _result(self, stored: Bytes) -> None:
        self.result = RefitResult.from_state(stored.tobytes())


class RefitSchedule(Stored):
    """The learned examples and their refits; the schedule depends only on n.

    `refitter`: computes the refits.
    `n`: learned examples.
    `since`: examples learned at the last alarm that was acted on.
    `order`, shape (n_features,): features with names: the column indices sorted by name.
    `acts`: whether alarms may restart the schedule (`on_drift` is not "report").
    `is_current`: whether the active model was trained after the last alarm that was acted on.
    `memory`: the rows and fits of the trees with long memory; None without them.
    """

    _stored = StateSchema(
        number("n"), number("since"), number("_frozen"), flag("is_current"),
        bytes_of("_learner", "n"), part("_distance"), part("labels", stored_as=""),
        part("_examples", stored_as="", of="_new_examples"),
        part("_awaited", stored_as="pending", of="_new_pending"), part("memory"),
    )  # fmt: skip

    def __init__(self, config: PredictorConfig, refitter: Refitter) -> None:
        self._config, self._refitter = config, refitter
        self.memory = MemoryFits(config, refitter) if config.has_memory else None
        self._dense_until = config.dense_until  # derived from other settings
        self.acts = config.on_drift != "report"
        self.n = self.since = 0
        self.order: Ints = np.empty(0, dtype=np.int64)
        self.labels = LabelIndex(config.classes)
        self._examples = self._new_examples()
        self._pending: PendingRefit | None = None
        self._following: PendingRefit | None = None  # None between calls of the predictor
        self._distance = RefitDistance(config)
        self._frozen = 0  # examples learned at the last freeze that was due
        self.is_current = False
        self._stored_learner = b""  # from a snapshot, until `continue_refits`

    @property
    def is_waiting(self) -> bool:
        """Whether the next answer waits for a refit result, or for trees of the memory."""
        return self.is_waiting_for_refit or (self.memory is not None and self.memory.is_waiting)

    @property
    def is_waiting_for_refit(self) -> bool:
        """Whether the next answer waits for a refit result."""
        pending = self._pending
        return self.is_refitting and pending is not None and pending.activation == self.n

    @property
    def is_refitting(self) -> bool:
        """Whether a refit has no result yet; a snapshot would wait for it."""
        return self._pending is not None and self._pending.result is None

    @property
    def until_wait(self) -> int:
        """Lower bound on the examples to learn until an answer needs a result or trees."""
        until = self._until_refit
        return until if self.memory is None else min(until, self.memory.until_wait)

    @property
    def _until_refit(self) -> int:
        pending = self._pending
        if pending is not None and pending.result is None and pending.activation > self.n:
            return pending.activation - self.n
        return self._activation_of(self._next_freeze() or self._earliest_freeze()) - self.n

    @property
    def changes(self) -> list[int]:
        """Counts of learned examples at which answering must stop for a refit."""
        due = [] if self._pending is None else [self._pending.activation]
        freeze = self._next_freeze()
        due += [] if self.memory is None else self.memory.changes
        return [*due, freeze] if self.acts and freeze is not None else due

    def hold(self, order: LearningOrder) -> None:
        """Store the examples that will be learned in this order."""
        held = order.learned()
        self._examples.append(held.X, held.codes, held.probs, len(self.labels.labels))

    def learned(self, order: LearningOrder) -> None:
        """Add the rows that were learned to the memory."""
        if self.memory is not None:
            held = order.learned()
            self.memory.learn(held.X, held.codes, held.ids)

    def relabel(self, n: int, label: str) -> None:
        """Change the label of a learned example for the next refit."""
        (code,) = self.labels.codes([label])
        self._examples.relabel(n, int(code), int(code) + 1)

    def freeze_what_is_held(self) -> None:
        """Submit the refits whose examples have arrived; at most two are queued."""
        # If alarms are acted on, the input of a refit may depend on answers.
        held = self.n if self.acts else self._examples.stop
        while self._following is None:
            due = self._next_freeze()
            if due is None or due > held:
                return
            self._freeze(due)

    def restart(self) -> None:
        """Restart with the examples that follow the n-th; withdraw the refits under way."""
        self.since = self._frozen = self.n
        self.is_current = False
        self._pending = self._following = None
        self._distance = RefitDistance(self._config)
        self._refitter.withdraw()
        self._examples.restart(self.n)
        if self.memory is not None:
            self.memory.restart()

    def due_model(self) -> DueModel | None:
        """Return the model that takes effect now, if any; wait for its result.

        The caller calls `activated` once the model is active.
        """
        pending, config = self._pending, self._config
        if pending is None or pending.activation != self.n:
            return None
        result = pending.result = pending.result or self._refitter.result()
        trains = training_mask(
            config.split, pending.start, pending.freeze, config.training_share, config.seed
        )
        codes = self._examples.codes(pending.start, self.n)
        frozen = len(trains)
        return DueModel(
            pending.start,
            result,
            pending.view,
            codes[:frozen][trains],
            np.concatenate([codes[:frozen][~trains], codes[frozen:]]),
            self._examples.rows(pending.freeze, self.n),
            self.is_current,
        )

    def activated(self) -> None:
        """Record that the due model is active; drop examples that no later refit can use."""
        window = self._config.window
        if self._pending is not None and self._pending.result is not None:
            self._distance.follow(self._pending.freeze - self.since, self._pending.result.staleness)
        self._pending, self._following = self._following, None
        self.is_current = True
        self._examples.drop_given()
        self._forget_before(0 if window is None else self.n - window)

    @property
    def _awaited(self) -> PendingRefit | None:
        """The refit under way, with its result."""
        if self._pending is not None:
            self._pending.result = self._pending.result or self._refitter.result()
        return self._pending

    @_awaited.setter
    def _awaited(self, pending: PendingRefit | None) -> None:
        self._pending = pending

    @property
    def _learner(self) -> Bytes:
        """The state of the refitter after the refit under way; empty before the first one."""
        has_learner = self._awaited is not None or self.is_current
        return as_array(self._refitter.state() if has_learner else b"")

    @_learner.setter
    def _learner(self, stored: Bytes) -> None:
        self._stored_learner = stored.tobytes()

    @property
    def _n_labels(self) -> int:
        return len(self.labels.labels)

    def _new_examples(self) -> AvailableExamples:
        return AvailableExamples(self._n_labels)

    def _new_pending(self) -> PendingRefit:
        return PendingRefit(0, 0, 0, self.labels.view())

    def _on_restored(self) -> None:
        require(self._frozen <= self.n, "frozen")
        require(self.since <= (self.n if self.acts else 0), "since")
        result = None if self._pending is None else self._pending.result
        require(result is None or result.n_members == len(self._config.members), "members")
        require(bool(self._stored_learner) == self._has_learner, "learner")

    def continue_refits(self) -> None:
        """Reset the refitter to the restored learner.

        Raises InvalidSnapshot if the learner cannot be read; the refitter is unchanged then.
        """
        learner, self._stored_learner = self._stored_learner, b""
        self._refitter.reset(learner or None)
        if self.memory is not None:
            self.memory.continue_fits()

    @property
    def _has_learner(self) -> bool:
        """Whether the learner was given a task since it started."""
        return self._pending is not None or self.is_current

    def _next_freeze(self) -> int | None:
        """Return n at the next freeze; None if the refit under way decides it."""
        k = self._frozen - self.since
        if not self._distance.is_free_from(k):
            return self._earliest_freeze()
        if self._pending is not None and self._pending.freeze == self._frozen:
            return None
        return self._frozen + self._distance.examples

    def _earliest_freeze(self) -> int:
        k = self._frozen - self.since
        return self.since + next_refit(k, self._config.distance, self._dense_until)

    def _activation_of(self, freeze: int) -> int:
        """Return n at the activation of a refit frozen at `freeze`."""
        config, k = self._config, freeze - self.since
        early = k < config.lags_from or is_early_refit(k, config.distance, config.dense_until)
        return freeze if early else freeze + self._distance.lag

    def _freeze(self, n: int) -> None:
        """Freeze the examples available after the n-th, and submit their refit."""
        config, self._frozen = self._config, n
        start = max(self.since, 0 if config.window is None else n - config.window)
        if not self._has_learner and not self._can_train(start, n):
            self._forget_before(start)
            return
        view = self.labels.view(self._examples.labels_before(n))
        first, rows = self._examples.give(start, n)
        given = config.class_weight if isinstance(config.class_weight, dict) else {}
        weights = given_weights(given, view.classes[: view.n_known])
        probs = self._examples.probs(start, n).copy() if config.learner == "psvm" else None
        columns = view.columns(self._examples.codes(start, n))
        is_relabelled = self._examples.take_relabelled()
        task = RefitTask(start, n, first, rows, columns, weights, probs, is_relabelled, self.order)
        self._refitter.submit(task)
        frozen = PendingRefit(start, n, self._activation_of(n), view)
        if self._pending is None:
            self._pending = frozen
            self._examples.drop_given()
        else:
            self._following = frozen

    def _can_train(self, start: int, n: int) -> bool:
        """Return whether the proper training set of these examples has two classes.

        Calibration labels are ignored. Otherwise they would decide whether an answer exists, and
        the calibration would not be valid for the answers that follow.
        """
        config = self._config
        trains = training_mask(config.split, start, n, config.training_share, config.seed)
        codes = self._examples.codes(start, n)[trains]
        return len(np.unique(codes[codes >= 0])) > 1

    def _forget_before(self, number: int) -> None:
        self._examples.drop_before(number, with_rows=not self._has_learner)
