"""DelayedLabels: the queue of answered examples that wait for delayed labels.

It records when each example is answered, learned or dropped as a list of steps, in the order of the
entries, with the corrections of learned labels between them. The order depends on the entries
alone, not on answers. Kinds of steps:

- ``answer``: answer an example;
- ``learn``: learn an example that was answered before;
- ``give_up``: drop an example unlearned: its horizon passed without a label, or the queue is full;
- ``label``: a waiting example got its label.

With horizon 0 no example waits, and the queue stays empty. A horizon in time is counted by the
clock of the feed (`FeedClock`); an example ahead of the clock waits apart, by its own time.
"""

from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush
from itertools import chain, islice
from operator import attrgetter
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from online_svm.config import PredictorConfig
from online_svm.errors import SHOWN, InvalidExample, InvalidInput
from online_svm.predictor.feed_clock import DAY, Dated, FeedClock
from online_svm.predictor.pending_examples import (
    PendingExample,
    pending_from_state,
    pending_state,
)
from online_svm.storage.state import State, nest, require, under
from online_svm.storage.state_schema import StateSchema, Stored, ints, number, texts
from online_svm.stream.validity_report import Done, LabelCounts
from online_svm.types import Ints

GIVEN_UP = -1
"""Example number of an example that was dropped without being learned."""

MAX_EARLY_LABEL_IDS = 1000
"""Ids of labels for unknown examples that are kept, to count labels that precede their example."""


Kind = Literal["answer", "learn", "give_up", "label"]


class Correction(NamedTuple):
    """The new label of the learned example `n`."""

    n: int
    label: str


class LabelStep(NamedTuple):
    """One step; the module docstring lists the kinds."""

    kind: Kind
    example: PendingExample
    opens: int = 0  # change in the number of answers that wait for a label: 1, 0 or -1


class Records(NamedTuple):
    """Settled examples, as they are stored: `numbers` has shape (n,)."""

    ids: list[str]
    labels: list[str | None]
    numbers: Ints


class SettledExamples(Stored):
    """Learned and dropped examples by id, and ids of labels that came too early, oldest first.

    `most`: capacity; the oldest are forgotten beyond it.
    """

    _stored = StateSchema(
        texts("_early"), texts("_records.ids", stored_as="settled_ids"),
        texts("_records.labels", stored_as="settled_labels", optional=True),
        ints("_records.numbers", "n", least=GIVEN_UP, stored_as="settled"),
    )  # fmt: skip

    def __init__(self, most: int) -> None:
        self._most = most
        # Number of the learned example, or `GIVEN_UP`; its label, None if it was learned from a
        # probability or not learned.
        self._by_id: dict[str, tuple[int, str | None]] = {}
        self._early: dict[str, None] = {}

    def remember(self, id: str, n: int, label: str | None) -> None:
        """Record an example as learned or dropped."""
        self._by_id[id] = (n, label)
        _forget_oldest(self._by_id, self._most)

    def came_after_its_label(self, id: str) -> bool:
        """Forget the id of an arriving example; return whether its label came before it."""
        self._by_id.pop(id, None)
        return self._early.pop(id, False) is None

    def relabel(self, id: str, label: str, first: int) -> tuple[str, int]:
        """Replace the label of a settled example; return the old label and the example's number.

        `first`: number of the first example of the window.

        Raises InvalidExample if the label cannot be used: ``unknown_id``, ``after_horizon``,
        ``after_window`` or ``conflict``. Only an unknown id changes the state: it is remembered.
        """
        if id not in self._by_id:
            self._early[id] = None
            _forget_oldest(self._early, MAX_EARLY_LABEL_IDS)
            raise InvalidExample("id_unknown", id=id[:SHOWN])
        n, before = self._by_id[id]
        if n == GIVEN_UP:
            raise InvalidExample("id_given_up", id=id[:SHOWN])
        if before is None:
            raise InvalidExample("id_with_probability", id=id[:SHOWN])
        if before != label and n < first:
            raise InvalidExample("id_left_window", id=id[:SHOWN])
        self._by_id[id] = (n, label)
        return before, n

    @property
    def _records(self) -> Records:
        numbers = np.array([n for n, _ in self._by_id.values()], dtype=np.int64)
        return Records(list(self._by_id), [label for _, label in self._by_id.values()], numbers)

    @_records.setter
    def _records(self, records: Records) -> None:
        rows = zip(records.ids, records.numbers.tolist(), records.labels, strict=True)
        self._by_id = {id: (n, label) for id, n, label in rows}


def _forget_oldest(remembered: dict[str, Any], most: int) -> None:
    while len(remembered) > most:
        del remembered[next(iter(remembered))]


_SCHEMA = StateSchema(number("learned"), number("_accepted"))


def _first(waiting: dict[int, PendingExample]) -> Iterable[tuple[int, PendingExample]]:
    """Return the number and the example that waits for the longest time, if there is one."""
    return islice(waiting.items(), 1)


class DelayedLabels:
    """The waiting examples of a stream in event order, and the record of settled ones.

    `is_delayed`: whether there is a horizon.
    `learned`: examples learned after the steps so far.
    `seen_labels`: seen labels, in order.
    `known`: waiting examples by id.
    """

    def __init__(self, config: PredictorConfig) -> None:
        self.is_delayed, self._horizon = config.takes_delayed_labels, config.horizon_length
        self._counts_time = config.counts_time
        self._at_arrival = config.maturity == "arrival"
        self._max_pending, self._window = config.max_pending, config.window
        self._metrics_every = config.metrics_every
        self.counts = LabelCounts()
        self.learned = 0
        self.seen_labels: dict[str, None] = {}
        self._accepted = 0
        self._clock = FeedClock(self._clock_horizon)
        self._open_from = 0
        self._waiting: dict[int, PendingExample] = {}  # keyed by number: event order
        # Waiting examples ahead of the clock, by number; and their times and numbers as a heap,
        # with those of examples that wait no longer, or no longer ahead.
        self._ahead: dict[int, PendingExample] = {}
        self._ahead_times: list[tuple[int, int]] = []
        self.known: dict[str, PendingExample] = {}
        self._settled = SettledExamples(config.max_pending)
        self._steps: list[LabelStep | Correction] = []
        self._report_counts: list[LabelCounts] = []

    @property
    def accepted(self) -> int:
        """Examples accepted so far."""
        return self._accepted

    @property
    def ahead(self) -> int:
        """Waiting examples whose times are ahead of the clock of the feed."""
        return len(self._ahead)

    @property
    def open_for(self) -> int | None:
        """Milliseconds by the clock of the feed since the oldest open example; None without one."""
        oldest = self.oldest_open
        return None if oldest is None else max(self._clock.now - oldest.time, 0)

    @property
    def oldest_open(self) -> PendingExample | None:
        """The oldest waiting example without a label that is not ahead of the clock, or None.

        Labels are never removed, so the search resumes where it stopped: amortised constant time.
        """
        while self._open_from < self._accepted:
            found = self._waiting.get(self._open_from)
            if found is not None and not found.has_target:
                return found
            self._open_from += 1
        return None

    def accept(self, example: PendingExample) -> None:
        """Add an example; learn or drop the examples whose horizon it completes.

        It gets its number. Its time is raised to the clock of the feed, unless it lies ahead.

        Raises InvalidInput if an example with its id waits already; the state is unchanged then.
        """
        if example.id in self.known:
            raise InvalidInput(f"id: {example.id[:40]!r} waits for its label already")
        self.counts.backwards += example.time < self._clock.now
        example.number = self._accepted
        self._accepted += 1
        if example.label is not None:
            self.seen_labels[example.label] = None
        if example.id is not None:
            self.counts.early += self._settled.came_after_its_label(example.id)
            self.known[example.id] = example
        self._place(example)
        self.counts.pending += 1
        self._add("answer", example, opens=0 if example.has_target else 1)
        if self._at_arrival and example.has_target:
            self._learn(example)
        self._settle_what_is_due()

    def check_new(self, ids: Sequence[str | None]) -> None:
        """Check that examples with these ids can be accepted.

        Raises InvalidInput if an example with one of the ids waits already, or an id occurs twice.
        """
        if not self.is_delayed:  # no example waits
            return
        known = [id for id in ids if id is not None]
        if len(set(known)) < len(known) or not self.known.keys().isdisjoint(known):
            raise InvalidInput("ids: one waits for its label already, or is given twice")

    def label(self, id: str, label: str) -> Done:
        """Take the label of the example with this id; return what was done with it.

        Raises InvalidExample if it cannot be used: ``unknown_id``, ``after_horizon``,
        ``after_window`` or ``conflict``. Only counts, and the memory of unknown ids, change then.
        """
        example = self.known.get(id)
        if example is None:
            return self._label_of_settled(id, label)
        if not np.isnan(example.probability):
            raise InvalidExample("id_with_probability", id=id[:SHOWN])
        before, example.label = example.label, label
        self.seen_labels[label] = None
        if before is not None:
            return self._said_again(before, label)
        self.counts.late += 1
        self._add("label", example, opens=-1)
        if self._at_arrival:
            self._learn(example)
        return "accepted"

    def take_steps(self) -> tuple[list[LabelStep | Correction], list[LabelCounts]]:
        """Return the steps since the last call, and the counts at each report that became due."""
        taken = self._steps, self._report_counts
        self._steps, self._report_counts = [], []
        return taken

    def examples(self) -> list[PendingExample]:
        """Return the waiting examples, in event order."""
        waiting = chain(self._waiting.values(), self._ahead.values())
        return sorted(waiting, key=attrgetter("number")) if self._ahead else list(waiting)

    def state(self) -> State:
        """Return everything but the configuration. No steps may be pending."""
        assert not self._steps
        waiting = pending_state(self.examples())
        header = waiting.header | {
            "counts": self.counts.state(),
            "met": list(self.seen_labels),
            "clock": self._clock.state(),
            "ahead": list(self._ahead),
        }
        header |= _SCHEMA.header_of(self)
        settled = self._settled.state()
        return State(header | settled.header, nest("waiting", waiting.arrays) | settled.arrays)

    @classmethod
    def from_state(cls, state: State, config: PredictorConfig) -> Self:
        """Return the queue described by `state`."""
        header, arrays = state
        late = cls(config)
        late.counts.restore(header["counts"])
        _SCHEMA.fill(late, header, {})
        late.seen_labels = dict.fromkeys(header["met"])
        late._settled.restore(state)
        late._clock.restore(header["clock"])
        waiting = pending_from_state(State(header, under("waiting", arrays)))
        late._waiting = {example.number: example for example in waiting}
        for ahead in header["ahead"]:
            require(type(ahead) is int and ahead in late._waiting, "ahead")
            late._wait_ahead(late._waiting.pop(ahead))
        late._open_from = next(iter(late._waiting), late._accepted)
        late.known = {example.id: example for example in waiting if example.id is not None}
        require(len(waiting) == late.counts.pending, "pending")
        return late

    def _label_of_settled(self, id: str, label: str) -> Done:
        before, n = self._settled.relabel(id, label, self.learned - (self._window or self.learned))
        self.seen_labels[label] = None
        if before != label:
            self._steps.append(Correction(n, label))
        return self._said_again(before, label)

    def _said_again(self, before: str, label: str) -> Done:
        if before == label:
            self.counts.repeated += 1
            return "repeated"
        self.counts.corrected += 1
        return "corrected"

    @property
    def _clock_horizon(self) -> int:
        return self._horizon if self._counts_time else DAY

    def _place(self, example: PendingExample) -> None:
        """Let an example wait, on the clock or ahead of it, with those whose place it decides."""
        placed = self._clock.place(Dated(example.number, example.time, example.id))
        self.counts.ahead += len(placed.ahead)
        if not self._counts_time:
            self._waiting[example.number] = example
            return
        new = {example.number: example}
        for each in placed.on_clock:
            found = new.get(each.number) or self._ahead.pop(each.number, None)
            if found is not None:  # else it was learned or dropped
                found.time = each.time
                self._waiting[each.number] = found
                self._open_from = min(self._open_from, each.number)
        for each in placed.ahead:
            found = new.get(each.number) or self._waiting.pop(each.number, None)
            if found is not None:
                self._wait_ahead(found)

    def _wait_ahead(self, example: PendingExample) -> None:
        self._ahead[example.number] = example
        heappush(self._ahead_times, (example.time, example.number))
        if len(self._ahead_times) > 2 * len(self._ahead) + 100:  # most of them wait no longer
            self._ahead_times = [(each.time, number) for number, each in self._ahead.items()]
            heapify(self._ahead_times)

    def _settle_what_is_due(self) -> None:
        """Learn or drop the examples whose horizon has passed, and those above `max_pending`."""
        while self._waiting and self._is_due(oldest := next(iter(self._waiting.values()))):
            self._settle_due(oldest)
        while (first := self._first_ahead()) is not None and self._is_due(first):
            self._settle_due(first)
        while len(self._waiting) + len(self._ahead) > self._max_pending:
            oldest = min(chain(_first(self._waiting), _first(self._ahead)))[1]
            if oldest.has_target:
                self._learn(oldest)
            else:
                self.counts.dropped += 1
                self._give_up(oldest)

    def _settle_due(self, example: PendingExample) -> None:
        if example.has_target:
            self._learn(example)
        else:
            self.counts.censored += 1
            self._give_up(example)

    def _first_ahead(self) -> PendingExample | None:
        """Return the example ahead of the clock with the earliest time."""
        while self._ahead_times:
            example = self._ahead.get(self._ahead_times[0][1])
            if example is not None:
                return example
            heappop(self._ahead_times)
        return None

    def _is_due(self, example: PendingExample) -> bool:
        if self._counts_time:
            return self._clock.now - example.time >= self._horizon
        return self._accepted - 1 - example.number >= self._horizon

    def _learn(self, example: PendingExample) -> None:
        self._settle(example, self.learned, example.label)
        self.learned += 1
        self._add("learn", example)
        if self.learned % self._metrics_every == 0:
            self._report_counts.append(self.counts.copy())

    def _give_up(self, example: PendingExample) -> None:
        self._settle(example, GIVEN_UP, None)
        self._add("give_up", example, opens=0 if example.has_target else -1)

    def _settle(self, example: PendingExample, n: int, label: str | None) -> None:
        """Remove an example from the queue and record its outcome."""
        del (self._ahead if example.number in self._ahead else self._waiting)[example.number]
        self.counts.pending -= 1
        if example.id is not None:
            del self.known[example.id]
            self._settled.remember(example.id, n, label)

    def _add(self, kind: Kind, example: PendingExample, opens: int = 0) -> None:
        self.counts.unlabelled += opens
        self._steps.append(LabelStep(kind, example, opens))
