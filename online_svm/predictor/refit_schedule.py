"""RefitSchedule: freeze examples, submit their refit, and say when its model takes effect."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from online_svm.config import PredictorConfig
from online_svm.predictor.batch import LearningOrder
from online_svm.refit.committee.staleness import Staleness
from online_svm.refit.task import RefitResult, RefitTask, Refitter
from online_svm.storage.state import Header, State, as_array, require
from online_svm.storage.state_schema import StateSchema, number, whole
from online_svm.stream.available_examples import AvailableExamples
from online_svm.stream.labels import ClassView, LabelIndex
from online_svm.stream.split import is_early_refit, next_refit, window_parts
from online_svm.svm.kernel_model import given_weights
from online_svm.types import Floats, Ints

LONGEST_DISTANCE = 2000
KEPT_SIXTEENTHS = 15  # sixteenths of the sums that each refit keeps: a memory of about 16 refits

_DISTANCE_SCHEMA = StateSchema(number("examples"), whole("_total"), number("_squares"))


class RefitDistance:
    """Learned examples from one freeze to the next, adapted to the value of refits.

    The distance starts at its minimum. After each refit it is doubled if older models lose no more
    than newer ones on examples that came after both, by at most half a standard error; else it is
    halved. A freeze decides the next distance from labels of its own proper training set alone.
    These labels do not calibrate its model, and the end of the previous model was decided one
    freeze earlier. So no calibration label influences how long its model answers, and the guarantee
    stays `exact`.

    `examples`: learned examples from the last freeze to the next.
    """

    def __init__(self, config: PredictorConfig) -> None:
        self._from, self._gathers_from = config.varies_from, config.dense_until
        self._shortest, self._lag = config.distance, config.lag
        self._stretches_lag = config.varies_from is not None and config.refit_lag is None
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

    def state(self) -> Header:
        """Return all but the configuration."""
        return _DISTANCE_SCHEMA.header_of(self)

    @classmethod
    def from_state(cls, state: Header, config: PredictorConfig) -> Self:
        """Return the distance described by `state`."""
        distance = cls(config)
        _DISTANCE_SCHEMA.fill(distance, state, {})
        require(distance._shortest <= distance.examples <= distance._longest, "distance")
        return distance


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


_SCHEMA = StateSchema(number("start"), number("freeze"), number("activation"))


@dataclass(slots=True)
class PendingRefit:
    """A frozen refit until its activation."""

    start: int  # number of the first frozen example
    freeze: int  # number after the last frozen example
    activation: int  # value of n at which the model becomes active
    view: ClassView  # classes known at the freeze
    result: RefitResult | None = None  # set once a snapshot or an activation has waited for it

    def state(self) -> State:
        """Return the refit with its result, which must be present."""
        assert self.result is not None
        header = _SCHEMA.header_of(self) | {"labels": list(self.view.labels)}
        return State(header, {"pending": as_array(self.result.state())})

    @classmethod
    def from_state(cls, state: State, config: PredictorConfig) -> Self:
        """Return the pending refit described by `state`."""
        header, arrays = state
        view = ClassView(header["labels"], config.classes is not None)
        result = RefitResult.from_state(arrays["pending"].tobytes(), len(config.members))
        return cls(view=view, result=result, **_SCHEMA.values(cls, header, {}))


class RefitSchedule:
    """The learned examples and their refits; the schedule depends only on n.

    `refitter`: computes the refits.
    `n`: learned examples.
    `since`: examples learned at the last alarm that was acted on.
    `order`, shape (n_features,): features with names: the column indices sorted by name.
    `acts`: whether alarms may restart the schedule (`on_drift` is not "report").
    """

    def __init__(self, config: PredictorConfig, refitter: Refitter) -> None:
        self._config, self._refitter = config, refitter
        self._dense_until = config.dense_until  # derived from other settings
        self.acts = config.on_drift != "report"
        self.n = self.since = 0
        self.order: Ints = np.empty(0, dtype=np.int64)
        self.labels = LabelIndex(config.classes)
        self._examples = AvailableExamples(len(self.labels.labels))
        self._pending: PendingRefit | None = None
        self._following: PendingRefit | None = None  # None between calls of the predictor
        self._distance = RefitDistance(config)
        self._frozen = 0  # examples learned at the last freeze that was due
        self._is_current = False  # the active model was trained after the last alarm

    @property
    def is_waiting(self) -> bool:
        """Whether the next answer waits for a refit result."""
        pending = self._pending
        return self.is_refitting and pending is not None and pending.activation == self.n

    @property
    def is_refitting(self) -> bool:
        """Whether a refit has no result yet; a snapshot would wait for it."""
        return self._pending is not None and self._pending.result is None

    @property
    def until_wait(self) -> int:
        """Lower bound on the examples to learn until an answer needs a refit result."""
        pending = self._pending
        if pending is not None and pending.result is None and pending.activation > self.n:
            return pending.activation - self.n
        return self._activation_of(self._next_freeze() or self._earliest_freeze()) - self.n

    @property
    def changes(self) -> list[int]:
        """Counts of learned examples at which answering must stop for a refit."""
        due = [] if self._pending is None else [self._pending.activation]
        freeze = self._next_freeze()
        return [*due, freeze] if self.acts and freeze is not None else due

    def hold(self, order: LearningOrder) -> None:
        """Store the examples that will be learned in this order."""
        held = order.learned()
        self._examples.append(held.X, held.codes, held.probs, len(self.labels.labels))

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
        self._is_current = False
        self._pending = self._following = None
        self._distance = RefitDistance(self._config)
        self._refitter.withdraw()
        self._examples.restart(self.n)

    def due_model(self) -> DueModel | None:
        """Return the model that takes effect now, if any; wait for its result.

        The caller calls `activated` once the model is active.
        """
        pending, config = self._pending, self._config
        if pending is None or pending.activation != self.n:
            return None
        result = pending.result = pending.result or self._refitter.result()
        trains, calibrates = window_parts(
            config.split, pending.start, pending.freeze, config.training_share, config.seed
        )
        codes = self._examples.codes(pending.start, self.n)
        frozen = len(trains)
        return DueModel(
            pending.start,
            result,
            pending.view,
            codes[:frozen][trains],
            np.concatenate([codes[:frozen][calibrates], codes[frozen:]]),
            self._examples.rows(pending.freeze, self.n),
            self._is_current,
        )

    def activated(self) -> None:
        """Record that the due model is active; drop examples that no later refit can use."""
        window = self._config.window
        if self._pending is not None and self._pending.result is not None:
            self._distance.follow(self._pending.freeze - self.since, self._pending.result.staleness)
        self._pending, self._following = self._following, None
        self._is_current = True
        self._examples.drop_given()
        self._forget_before(0 if window is None else self.n - window)

    def state(self) -> State:
        """Return everything but the configuration; wait for the result of a refit under way."""
        header: Header = {"n": self.n, "frozen": self._frozen, "distance": self._distance.state()}
        numbers, arrays = self._examples.state()
        header |= self.labels.state().header | numbers
        if self._pending is not None:
            self._pending.result = self._pending.result or self._refitter.result()
            header["pending"], parts = self._pending.state()
            arrays |= parts
        if self._has_learner:
            arrays["learner"] = as_array(self._refitter.state())
        if self.acts:
            is_stale = self.since > 0 and not self._is_current
            header["drift"] = {"since": self.since, "is_stale": is_stale}
        return State(header, arrays)

    @classmethod
    def from_state(cls, state: State, config: PredictorConfig, refitter: Refitter) -> Self:
        """Return the schedule described by `state`; `continue_refits` restores the refitter."""
        header, arrays = state
        schedule = cls(config, refitter)
        schedule.n, schedule._frozen = header["n"], header["frozen"]
        require(type(schedule.n) is int and schedule.n >= 0, "n")
        require(type(schedule._frozen) is int and 0 <= schedule._frozen <= schedule.n, "frozen")
        schedule._distance = RefitDistance.from_state(header["distance"], config)
        schedule.labels = LabelIndex.from_state(state, config.classes)
        known = len(schedule.labels.labels)
        schedule._examples = AvailableExamples.from_state(state, known)
        schedule._is_current = "active" in header
        if schedule.acts:
            schedule._load_drift(**header["drift"])
        if "pending" in header:
            pending = State(header["pending"], arrays)
            schedule._pending = PendingRefit.from_state(pending, config)
        return schedule

    def continue_refits(self, state: State) -> None:
        """Reset the refitter to the stored learner.

        Raises InvalidSnapshot if the learner cannot be read; the refitter is unchanged then.
        """
        learner = state.arrays["learner"].tobytes() if self._has_learner else None
        self._refitter.reset(learner)

    def _load_drift(self, *, since: object, is_stale: object) -> None:
        if type(since) is not int or not 0 <= since <= self.n or type(is_stale) is not bool:
            raise ValueError(f"drift since {since!r}, stale {is_stale!r}")
        self.since, self._is_current = since, self._is_current and not is_stale

    @property
    def _has_learner(self) -> bool:
        """Whether the learner was given a task since it started."""
        return self._pending is not None or self._is_current

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
        trains, _ = window_parts(config.split, start, n, config.training_share, config.seed)
        codes = self._examples.codes(start, n)[trains]
        return len(np.unique(codes[codes >= 0])) > 1

    def _forget_before(self, number: int) -> None:
        self._examples.drop_before(number, with_rows=not self._has_learner)
