"""What a predictor remembers between two calls, and how that is saved and continued."""

from collections import deque
from copy import deepcopy
from typing import Any

from online_svm.config import PredictorConfig
from online_svm.errors import InvalidSnapshot
from online_svm.metrics.windowed.slice_values import SLICE_VALUES, SliceValues
from online_svm.metrics.windowed.windowed_validity import WindowedValidity
from online_svm.predictor.active_model import ActiveModel
from online_svm.predictor.label_gaps import LabelGaps
from online_svm.predictor.late_labels import LateLabels
from online_svm.predictor.late_scores import waiting_terms
from online_svm.predictor.mixture import SHARE, Mixture
from online_svm.predictor.open_answers import OpenAnswers
from online_svm.predictor.pending_refit import PendingRefit
from online_svm.predictor.stream_monitors import StreamMonitors
from online_svm.predictor.stream_validity import StreamValidity
from online_svm.refit.task import Refitter
from online_svm.semantics import are_equal
from online_svm.storage.arrays import nest, under
from online_svm.storage.snapshot import pack, unpack
from online_svm.storage.state import State, as_array
from online_svm.stream.available_examples import AvailableExamples
from online_svm.stream.label_counts import LabelCounts
from online_svm.stream.labels import LabelIndex
from online_svm.stream.schema import FeatureSchema
from online_svm.types import Arrays


class PredictorState:
    """The state of an `OnlinePredictor`, whose parameters and attributes these are."""

    def __init__(self, config: PredictorConfig, refitter: Refitter | None = None) -> None:
        self.config = config
        self._dense_until = config.dense_until  # it follows from other settings
        self._refitter = _inline(config) if refitter is None else refitter
        self._reset()

    def _reset(self) -> None:
        config = self.config
        self.n = 0
        self.schema = FeatureSchema(config)
        self.labels = LabelIndex(config.classes)
        self._declared = None if config.classes is None else self.labels.view().classes
        self._examples = AvailableExamples(len(self.labels.labels))
        self._active: ActiveModel | None = None
        self._pending: PendingRefit | None = None
        self._following: PendingRefit | None = None  # within `step_many` only
        self._models = self._calibrations = 0
        self._mixture = Mixture.of(config)
        self._frozen = 0  # examples learned at the last freeze that was due
        self._since = 0  # examples learned at the last alarm that was acted on
        self._is_stale = False  # no refit of later examples is active yet
        self._gaps = LabelGaps(config)
        self._validity = StreamValidity(config.published)
        self._windows = WindowedValidity.of(config)
        self._slices = SliceValues(len(config.slices), SLICE_VALUES)
        self.late = LateLabels(config) if config.takes_late_labels else None
        self._open = OpenAnswers()
        self._counts: deque[LabelCounts] = deque()  # within a call only: of the reports due
        self._monitors = StreamMonitors.of(config)

    def snapshot(self) -> bytes:
        """Return the whole state; `restore` continues from it byte for byte.

        A refit under way is waited for, and its result is part of the snapshot.
        """
        header: dict[str, Any] = {
            "config": self.config.model_dump(mode="json"),
            "n": self.n,
            "names": self.schema.names,
            "dimension": self.schema.dimension,
            "models": self._models,
            "calibrations": self._calibrations,
            **self._gaps.state(),
        }
        numbers, arrays = self._examples.state()
        header |= self.labels.state().header | numbers
        arrays |= nest("validity", self._validity.state())
        if self._windows is not None:
            header["windowed"], parts = self._windows.state()
            arrays |= nest("windowed", parts)
            header["slices"] = self._slices.state()
        if self.late is not None:
            header["late"], parts = self.late.state()
            arrays |= nest("late", parts)
        if self._monitors is not None:
            header["monitors"], parts = self._monitors.state()
            arrays |= nest("monitors", parts)
        if self._mixture is not None:
            arrays |= nest("mixture", self._mixture.state())
        if self._pending is not None:
            self._pending.result = self._pending.result or self._refitter.result()
            header["pending"], parts = self._pending.state()
            arrays |= parts
        if self._active is not None:
            header["active"], parts = self._active.state()
            arrays |= nest("active", parts)
        if self._has_learner:
            arrays["learner"] = as_array(self._refitter.state())
        if self._acts:
            header["drift"] = {"since": self._since, "is_stale": self._is_stale}
        return pack(header, arrays)

    def _copies(self) -> dict[str, Any]:
        """Return copies of the attributes that answering a block changes, by name."""
        names = ("_mixture", "_validity", "_windows", "_monitors", "_open", "_counts")
        copies = {name: deepcopy(getattr(self, name)) for name in names}
        return copies | {"_active": None if self._active is None else self._active.copy()}

    @property
    def _acts(self) -> bool:
        """Whether more follows an alarm than a message."""
        return self.config.on_drift != "report"

    @property
    def _has_learner(self) -> bool:
        """Whether the learner was given anything since it began."""
        return self._pending is not None or (self._active is not None and not self._is_stale)

    def restore(self, data: bytes | memoryview) -> None:
        """Continue from a snapshot of a predictor with the same configuration.

        Raises
        ------
        InvalidSnapshot
            If the bytes are damaged, or the configuration differs; nothing has changed then.
        """
        header, arrays = unpack(data)
        ours = self.config.model_dump(mode="json")
        if not are_equal(header.get("config"), ours):
            raise InvalidSnapshot("the snapshot was made under another configuration")
        restored = type(self)(self.config, self._refitter)
        try:
            restored._load(header, arrays)
            learner = arrays["learner"].tobytes() if restored._has_learner else None
            self._refitter.reset(learner)
        except (AttributeError, LookupError, OverflowError, TypeError, ValueError) as error:
            raise InvalidSnapshot(f"the snapshot lacks or contradicts itself: {error}") from error
        self.__dict__.update(restored.__dict__)

    def _load(self, header: dict[str, Any], arrays: Arrays) -> None:
        declared = self.config.classes is not None
        self.n = header["n"]
        if type(self.n) is not int or self.n < 0:
            raise ValueError(f"n is {self.n!r}")
        names = None if header["names"] is None else tuple(header["names"])
        self.schema = self.schema.of_features(names, header["dimension"])
        self.labels = LabelIndex.from_state(State(header, arrays), self.config.classes)
        self._frozen = self.n
        self._examples = AvailableExamples.from_state(
            State(header, arrays), len(self.labels.labels)
        )
        self._models, self._calibrations = header["models"], header["calibrations"]
        self._gaps = LabelGaps.from_state(header, self.config)
        if self._acts:
            self._load_drift(**header["drift"])
        published = self.config.published
        self._validity = StreamValidity.from_state(under("validity", arrays), published)
        if self._windows is not None:
            windowed = State(header["windowed"], under("windowed", arrays))
            self._windows = WindowedValidity.from_state(windowed, self.config)
            self._slices = SliceValues.from_state(
                header["slices"], len(self.config.slices), SLICE_VALUES
            )
        if self._monitors is not None:
            watched = State(header["monitors"], under("monitors", arrays))
            self._monitors = StreamMonitors.from_state(watched, self.config)
        if self._mixture is not None:
            logs = under("mixture", arrays)
            self._mixture = Mixture.from_state(logs, len(published), SHARE)
        if self.late is not None:
            self._load_late(State(header["late"], under("late", arrays)))
        if "pending" in header:
            pending = State(header["pending"], arrays)
            self._pending = PendingRefit.from_state(pending, declared)
        if "active" in header:
            active = State(header["active"], under("active", arrays))
            self._active = ActiveModel.from_state(active, self.config)

    def _load_late(self, state: State) -> None:
        self.late = LateLabels.from_state(state, self.config)
        if self.late.learned != self.n:
            raise ValueError(f"late labels are those of n = {self.late.learned}, not {self.n}")
        for example in self.late.examples():
            if not example.has_target:
                self._open.add(waiting_terms(example))

    def _load_drift(self, *, since: object, is_stale: object) -> None:
        if type(since) is not int or not 0 <= since <= self.n or type(is_stale) is not bool:
            raise ValueError(f"drift since {since!r}, stale {is_stale!r}")
        self._since, self._is_stale = since, is_stale


def _inline(config: PredictorConfig) -> Refitter:
    # Imported where it is used: a process whose refits are elsewhere starts without the solver.
    from online_svm.refit.inline import InlineRefitter

    return InlineRefitter(config)
