"""RefitSchedule: freeze examples, have a refit computed, say when its model takes effect."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from online_svm.config import PredictorConfig
from online_svm.predictor.learning_order import LearningOrder
from online_svm.predictor.refit_distance import RefitDistance
from online_svm.refit.task import RefitResult, RefitTask, Refitter
from online_svm.storage.arrays import require
from online_svm.storage.fields import Fields, number
from online_svm.storage.state import Header, State, as_array
from online_svm.stream.available_examples import AvailableExamples
from online_svm.stream.labels import ClassView, LabelIndex
from online_svm.stream.split import is_early_refit, next_refit, window_parts
from online_svm.svm.hyperparameters import given_weights
from online_svm.types import Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class DueModel:
    """The result of a refit that takes effect now, and the examples it is to be calibrated by.

    Attributes
    ----------
    start : int
        Number of the first frozen example.
    result : RefitResult
    view : ClassView
        Classes known at the freeze.
    training_codes : ndarray of shape (n_training,)
        Codes of the labels of the proper training set.
    outside : ndarray of shape (n_outside,)
        Codes of the other available examples, in order.
    since : ndarray of shape (lag, n_features)
        Rows that were learned since the freeze.
    is_successor : bool
        Whether no alarm was acted on since the model before it.
    """

    start: int
    result: RefitResult
    view: ClassView
    training_codes: Ints
    outside: Ints
    since: Floats
    is_successor: bool


_FIELDS = Fields(number("start"), number("freeze"), number("activation"))


@dataclass(slots=True)
class PendingRefit:
    """What the predictor remembers of a frozen refit until its activation.

    Attributes
    ----------
    start, freeze : int
        The frozen examples are those numbered start ... freeze - 1.
    activation : int
        Value of n at which the model becomes active.
    view : ClassView
        Classes known at the freeze.
    result : RefitResult or None
        Where a snapshot has already waited for it.
    """

    start: int
    freeze: int
    activation: int
    view: ClassView
    result: RefitResult | None = None

    def state(self) -> State:
        """Return the refit with its result, which must have come."""
        assert self.result is not None
        header = _FIELDS.header_of(self) | {"labels": list(self.view.labels)}
        return State(header, {"pending": as_array(self.result.state())})

    @classmethod
    def from_state(cls, state: State, config: PredictorConfig) -> Self:
        """Return the pending refit that `state` describes."""
        header, arrays = state
        view = ClassView(header["labels"], config.classes is not None)
        result = RefitResult.from_state(arrays["pending"].tobytes(), len(config.members))
        return cls(view=view, result=result, **_FIELDS.values(cls, header, {}))


class RefitSchedule:
    """The learned examples, and the refits of them; the schedule goes by n alone.

    Parameters
    ----------
    config : PredictorConfig
    refitter : Refitter
        Where refits are computed.

    Attributes
    ----------
    n : int
        Learned examples.
    labels : LabelIndex
    since : int
        Examples learned at the last alarm that was acted on.
    order : ndarray of shape (n_features,)
        Of features with names, whose rows are cells: their places in the order of their names.
    acts : bool
        Whether more follows an alarm than a message.
    """

    def __init__(self, config: PredictorConfig, refitter: Refitter) -> None:
        self._config, self._refitter = config, refitter
        self._dense_until = config.dense_until  # it follows from other settings
        self.acts = config.on_drift != "report"
        self.n = self.since = 0
        self.order: Ints = np.empty(0, dtype=np.int64)
        self.labels = LabelIndex(config.classes)
        self._examples = AvailableExamples(len(self.labels.labels))
        self._pending: PendingRefit | None = None
        self._following: PendingRefit | None = None  # within a call of the predictor only
        self._distance = RefitDistance(config)
        self._frozen = 0  # examples learned at the last freeze that was due
        self._is_current = False  # a model of examples since the last alarm is active

    @property
    def is_waiting(self) -> bool:
        """Whether the next answer needs the result of a refit, which was not taken yet."""
        pending = self._pending
        return self.is_refitting and pending is not None and pending.activation == self.n

    @property
    def is_refitting(self) -> bool:
        """Whether there is a refit whose result was not taken yet; a snapshot would wait for it."""
        return self._pending is not None and self._pending.result is None

    @property
    def until_wait(self) -> int:
        """Examples that can be learned before an answer needs the result of a refit, at least.

        Where the next answer needs one already, those until another is needed.
        """
        pending = self._pending
        if pending is not None and pending.result is None and pending.activation > self.n:
            return pending.activation - self.n
        return self._activation_of(self._next_freeze() or self._earliest_freeze()) - self.n

    @property
    def changes(self) -> list[int]:
        """Numbers of learned examples at which the answering is to stop for a refit."""
        due = [] if self._pending is None else [self._pending.activation]
        freeze = self._next_freeze()
        return [*due, freeze] if self.acts and freeze is not None else due

    def hold(self, order: LearningOrder) -> None:
        """Take the examples that will be learned in this order."""
        held = order.learned()
        self._examples.append(held.X, held.codes, held.probs, len(self.labels.labels))

    def relabel(self, n: int, label: str) -> None:
        """Give the learned example n another label, for the next refit."""
        (code,) = self.labels.codes([label])
        self._examples.relabel(n, int(code), len(self.labels.labels))

    def freeze_what_is_held(self) -> None:
        """Submit the refits whose examples are held; the second waits in line behind the first."""
        # What a refit is given may depend on answers where alarms are acted on.
        held = self.n if self.acts else self._examples.stop
        while self._following is None:
            due = self._next_freeze()
            if due is None or due > held:
                return
            self._freeze(due)

    def begin_anew(self) -> None:
        """Let refits use only examples that follow the n-th; withdraw those under way."""
        self.since = self._frozen = self.n
        self._is_current = False
        self._pending = self._following = None
        self._distance = RefitDistance(self._config)
        self._refitter.withdraw()
        self._examples.begin_anew(self.n)

    def due_model(self) -> DueModel | None:
        """Return the model that takes effect now, if any; wait for its result where it must.

        `activated` is called once it is active.

        Raises
        ------
        Exception
            What the refitter raises if there will be no result.
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
        """Note that the model that was due is active; give up what no later refit can use."""
        window = self._config.window
        if self._pending is not None and self._pending.result is not None:
            self._distance.follow(self._pending.freeze - self.since, self._pending.result.staleness)
        self._pending, self._following = self._following, None
        self._is_current = True
        self._examples.drop_given()
        self._forget_before(0 if window is None else self.n - window)

    def state(self) -> State:
        """Return everything but the configuration, with the result of a refit under way.

        That is waited for.
        """
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
        """Return the schedule that `state` describes; see `continue_refits` for the refitter.

        Raises
        ------
        LookupError, TypeError, ValueError
            If a part is missing, or they do not fit one another.
        """
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
        """Let the refitter continue with the learner that was stored.

        Raises
        ------
        InvalidSnapshot
            If it cannot be read; the refitter is as it was then.
        """
        learner = state.arrays["learner"].tobytes() if self._has_learner else None
        self._refitter.reset(learner)

    def _load_drift(self, *, since: object, is_stale: object) -> None:
        if type(since) is not int or not 0 <= since <= self.n or type(is_stale) is not bool:
            raise ValueError(f"drift since {since!r}, stale {is_stale!r}")
        self.since, self._is_current = since, self._is_current and not is_stale

    @property
    def _has_learner(self) -> bool:
        """Whether the learner was given anything since it began."""
        return self._pending is not None or self._is_current

    def _next_freeze(self) -> int | None:
        """Return the number of learned examples at the next freeze; alarms begin the count anew.

        None where the refit under way decides it.
        """
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
        """Return the number of learned examples at which a refit frozen at `freeze` is active."""
        config, k = self._config, freeze - self.since
        early = k < config.lags_from or is_early_refit(k, config.distance, config.dense_until)
        return freeze if early else freeze + self._distance.lag

    def _freeze(self, n: int) -> None:
        """Freeze the examples available after the n-th, and submit a refit of them."""
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

        Labels that calibrate are not looked at: whether an answer exists would else depend on them,
        and no answer that follows would be calibrated.
        """
        config = self._config
        trains, _ = window_parts(config.split, start, n, config.training_share, config.seed)
        codes = self._examples.codes(start, n)[trains]
        return len(np.unique(codes[codes >= 0])) > 1

    def _forget_before(self, number: int) -> None:
        """Give up what no later refit can use."""
        self._examples.drop_before(number, with_rows=not self._has_learner)
