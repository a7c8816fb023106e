"""LateLabels: which answered examples wait for their labels, and when each is learned.

What becomes of them is written down as steps, in the order of the entries: see `learning_order`.
"""

from collections.abc import Sequence
from typing import Self

import numpy as np

from online_svm.config import PredictorConfig
from online_svm.errors import InvalidInput
from online_svm.predictor.learning_order import Correction, Kind, LabelStep
from online_svm.predictor.pending_examples import (
    PendingExample,
    pending_from_state,
    pending_state,
)
from online_svm.predictor.settled_examples import GIVEN_UP, SettledExamples, has_probability
from online_svm.storage.arrays import nest, require, under
from online_svm.storage.fields import Fields, number
from online_svm.storage.state import State
from online_svm.stream.label_counts import Done, LabelCounts
from online_svm.types import Floats, Ints

NO_SLICES: Ints = np.empty(0, dtype=np.int64)


_FIELDS = Fields(number("learned"), number("_accepted"), number("_clock"))


class LateLabels:
    """The waiting examples of a stream in event order, and what is remembered of the others.

    Parameters
    ----------
    config : PredictorConfig
        With a horizon.

    Attributes
    ----------
    counts : LabelCounts
    learned : int
        Examples learned after the steps so far.
    met : dict of str to None
        Labels that came so far, in order.

    Examples
    --------
    >>> late = LateLabels(PredictorConfig(horizon=2))
    >>> for name in "abc":
    ...     late.accept(np.zeros(1), id=name)
    ...     print(late.label(name, "yes") if name != "b" else "")
    accepted
    <BLANKLINE>
    accepted
    >>> [step.kind for step in late.take_steps()]
    ['answer', 'label', 'answer', 'answer', 'learn', 'label']
    >>> late.counts.pending, late.counts.unlabelled
    (2, 1)
    """

    def __init__(self, config: PredictorConfig) -> None:
        self._horizon = config.horizon_length
        self._counts_time = config.counts_time
        self._at_arrival = config.maturity == "arrival"
        self._max_pending, self._window = config.max_pending, config.window
        self._metrics_every = config.metrics_every
        self.counts = LabelCounts()
        self.learned = 0
        self.met: dict[str, None] = {}
        self._accepted = 0
        self._clock = 0
        self._open_from = 0
        self._waiting: dict[int, PendingExample] = {}  # by number, which is the order of events
        self._known: dict[str, PendingExample] = {}  # those of them with an id
        self._settled = SettledExamples(config.max_pending)
        self._steps: list[LabelStep] = []

    def waiting(self, id: str) -> PendingExample | None:
        """Return the waiting example with this id, if there is one."""
        return self._known.get(id)

    @property
    def accepted(self) -> int:
        """Examples accepted so far."""
        return self._accepted

    @property
    def oldest_open(self) -> PendingExample | None:
        """The oldest waiting example without a label, or None.

        A label that came stays, so no example is looked at twice.
        """
        while self._open_from < self._accepted:
            found = self._waiting.get(self._open_from)
            if found is not None and not found.has_target:
                return found
            self._open_from += 1
        return None

    def accept(
        self,
        x: Floats,
        *,
        id: str | None = None,
        label: str | None = None,
        probability: float = float("nan"),
        time: int = 0,
        seq: int = 0,
        slices: Ints = NO_SLICES,
    ) -> None:
        """Take an example; those whose horizon passes with it are learned or given up.

        Parameters
        ----------
        x : ndarray of shape (n_features,)
            A copy is kept.
        id : str, optional
            By which its label can be sent later; no waiting example may have it.
        label : str, optional
            Its label, where it comes at once.
        probability : float
            In its place an annotator's probability.
        time : int
            Milliseconds. One that is before the latest so far counts as that. A horizon that counts
            examples does not use it.
        seq : int
            Of its entry.
        slices : ndarray of shape (n_slices,)
            Codes of the values of its slices.

        Raises
        ------
        InvalidInput
            If the id waits already; nothing has changed then.
        """
        if id in self._known:
            raise InvalidInput(f"id: {id[:40]!r} waits for its label already")
        if time < self._clock:
            self.counts.backwards += 1
        self._clock = max(self._clock, time)
        example = PendingExample(
            self._accepted, id, x.copy(), self._clock, seq, label, probability, slices
        )
        self._accepted += 1
        if label is not None:
            self.met[label] = None
        if id is not None:
            self.counts.early += self._settled.came_after_its_label(id)
            self._known[id] = example
        self._waiting[example.number] = example
        self.counts.pending += 1
        self._add("answer", example, opens=0 if example.has_target else 1)
        if self._at_arrival and example.has_target:
            self._learn(example)
        self._settle_what_is_due()

    def check_new(self, ids: Sequence[str | None]) -> None:
        """Check that examples with these ids may be accepted.

        Raises
        ------
        InvalidInput
            If an id waits already or is given twice.
        """
        known = [id for id in ids if id is not None]
        if len(set(known)) < len(known) or not self._known.keys().isdisjoint(known):
            raise InvalidInput("ids: one waits for its label already, or is given twice")

    def label(self, id: str, label: str) -> Done:
        """Take the label of the example with this id, and say what was done with it.

        Raises
        ------
        InvalidExample
            If it cannot be used: ``unknown_id``, ``after_horizon``, ``after_window`` or
            ``conflict``. Nothing has changed then, but for what is counted.
        """
        example = self._known.get(id)
        if example is None:
            return self._label_of_settled(id, label)
        if not np.isnan(example.probability):
            raise has_probability(id)
        before, example.label = example.label, label
        self.met[label] = None
        if before is not None:
            return self._said_again(before, label)
        self.counts.late += 1
        self._add("label", example, opens=-1)
        if self._at_arrival:
            self._learn(example)
        return "accepted"

    def take_steps(self) -> list[LabelStep]:
        """Return the steps since the last call."""
        steps, self._steps = self._steps, []
        return steps

    def examples(self) -> list[PendingExample]:
        """Return the waiting examples, in event order."""
        return list(self._waiting.values())

    def state(self) -> State:
        """Return everything but the configuration, between two calls of the predictor."""
        assert not self._steps
        waiting = pending_state(self.examples())
        header = waiting.header | {
            "counts": self.counts.state(),
            "met": list(self.met),
        }
        header |= _FIELDS.header_of(self)
        settled = self._settled.state()
        return State(header | settled.header, nest("waiting", waiting.arrays) | settled.arrays)

    @classmethod
    def from_state(cls, state: State, config: PredictorConfig) -> Self:
        """Return the examples that `state` describes.

        Raises
        ------
        LookupError, TypeError, ValueError
            If a part is missing, or they do not fit one another.
        """
        header, arrays = state
        late = cls(config)
        late.counts = LabelCounts.from_state(header["counts"])
        _FIELDS.fill(late, header, {})
        late.met = dict.fromkeys(header["met"])
        late._settled = SettledExamples.from_state(state, config.max_pending)
        waiting = pending_from_state(State(header, under("waiting", arrays)))
        late._waiting = {example.number: example for example in waiting}
        late._open_from = next(iter(late._waiting), late._accepted)
        late._known = {example.id: example for example in waiting if example.id is not None}
        require(len(late._waiting) == late.counts.pending, "pending")
        return late

    def _label_of_settled(self, id: str, label: str) -> Done:
        before, n = self._settled.relabel(id, label, self.learned - (self._window or self.learned))
        self.met[label] = None
        if before != label:
            self._steps.append(LabelStep("correct", correction=Correction(n, label)))
        return self._said_again(before, label)

    def _said_again(self, before: str, label: str) -> Done:
        if before == label:
            self.counts.repeated += 1
            return "repeated"
        self.counts.corrected += 1
        return "corrected"

    def _settle_what_is_due(self) -> None:
        """Learn or give up the examples whose horizon has passed, and those too many."""
        while self._waiting and self._is_due(oldest := next(iter(self._waiting.values()))):
            if oldest.has_target:
                self._learn(oldest)
            else:
                self.counts.censored += 1
                self._give_up(oldest)
        while len(self._waiting) > self._max_pending:
            oldest = next(iter(self._waiting.values()))
            if oldest.has_target:  # else a wrong time in the future would end all learning
                self._learn(oldest)
            else:
                self.counts.dropped += 1
                self._give_up(oldest)

    def _is_due(self, example: PendingExample) -> bool:
        if self._counts_time:
            return self._clock - example.time >= self._horizon
        return self._accepted - 1 - example.number >= self._horizon

    def _learn(self, example: PendingExample) -> None:
        self._settle(example, self.learned, example.label)
        self.learned += 1
        self._add("learn", example)
        if self.learned % self._metrics_every == 0:
            self._steps.append(LabelStep("report", counts=self.counts.copy()))

    def _give_up(self, example: PendingExample) -> None:
        self._settle(example, GIVEN_UP, None)
        self._add("give_up", example, opens=0 if example.has_target else -1)

    def _settle(self, example: PendingExample, n: int, label: str | None) -> None:
        """Let an example wait no longer, and remember what became of it."""
        del self._waiting[example.number]
        self.counts.pending -= 1
        if example.id is not None:
            del self._known[example.id]
            self._settled.remember(example.id, n, label)

    def _add(self, kind: Kind, example: PendingExample, opens: int = 0) -> None:
        self.counts.unlabelled += opens
        self._steps.append(LabelStep(kind, example, opens=opens))
