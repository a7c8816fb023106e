"""FeedClock: the time of a feed, which follows the times of its examples and no other clock.

The clock is the latest time of an example, and never goes back. One wrong time must not move it: an
example far ahead would end the horizon of every example that waits. So

- an example is *ahead* if its time is more than `max(horizon, one day, 100 * largest step so far)`
  after the clock. It waits by its own time, and the clock stays;
- the clock moves to examples that are ahead once the first of them is followed, without another
  example between, by three with other ids whose times are at most a horizon before its own. A
  feed that slept for a month goes on that way;
- until three further examples have confirmed the time of the first one, an example that lies as
  far before the clock takes it back: then the earlier ones are ahead.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from online_svm.storage.state import require
from online_svm.storage.state_schema import StateSchema, StoredHeader, flag, json_of, number

DAY = 86_400_000  # milliseconds
STEPS_AHEAD = 100  # largest distance of an example from the clock, in largest steps so far
CONFIRMATIONS = 3  # later examples that confirm the time of an example


class Dated(NamedTuple):
    """An accepted example with its time in milliseconds."""

    number: int
    time: int
    id: str | None = None


def _dated(stored: Any) -> list[Dated]:
    """Return at most three stored examples. Raises ValueError for anything else."""
    require(isinstance(stored, list) and len(stored) <= CONFIRMATIONS, "clock")
    for each in stored:
        fits = isinstance(each, list | tuple) and [type(part) for part in each[:2]] == [int, int]
        require(fits and len(each) == 3 and isinstance(each[2], str | None), "clock")
    return [Dated(*each) for each in stored]


class Placed(NamedTuple):
    """The examples whose place an accepted example decides, itself among them."""

    on_clock: Sequence[Dated]  # in order, each with the time of the clock then
    ahead: Sequence[Dated]  # those that were not ahead before


class FeedClock(StoredHeader):
    """The time of a feed. `horizon`, in milliseconds, is how long a label may take.

    `now`: the clock, in milliseconds; 0 before the first example.

    Examples
    --------
    >>> clock = FeedClock(1000)
    >>> for i, time in enumerate([5000, 6000, 4_000_000_000_000, 7000]):
    ...     placed = clock.place(Dated(i, time))
    ...     print([each.time for each in placed.on_clock], clock.now)
    [5000] 5000
    [6000] 6000
    [] 6000
    [7000] 7000
    """

    _stored = StateSchema(
        number("now"), number("_largest_step"), flag("_is_confirmed"), json_of("_first", of=_dated),
        json_of("_run", of=_dated),
    )  # fmt: skip

    def __init__(self, horizon: int) -> None:
        self.now = 0
        self._horizon = horizon
        self._largest_step = 0
        self._first: list[Dated] = []  # examples on the clock, until it is confirmed
        self._run: list[Dated] = []  # the newest examples, if they are ahead
        self._is_confirmed = False

    def place(self, example: Dated) -> Placed:
        """Decide which accepted examples are on the clock, and move it."""
        if not self._first and not self._is_confirmed:
            self.now = example.time
        if example.time > self.now + self._reach:
            return self._take_ahead(example)
        self._run = []
        if self._first and example.time < self.now - self._reach:
            return self._go_back_to(example)
        return Placed([self._advance(example)], [])

    @property
    def _reach(self) -> int:
        return max(self._horizon, DAY, STEPS_AHEAD * self._largest_step)

    def _advance(self, example: Dated) -> Dated:
        """Move the clock up to an example; return it with the time of the clock."""
        self._largest_step = max(self._largest_step, example.time - self.now)
        self.now = max(self.now, example.time)
        if not self._is_confirmed:
            self._first.append(example)
            self._is_confirmed = len(self._first) > CONFIRMATIONS
            self._first = [] if self._is_confirmed else self._first
        return example._replace(time=self.now)

    def _go_back_to(self, example: Dated) -> Placed:
        wrong, self._first = self._first, []
        self.now, self._largest_step = example.time, 0
        return Placed([self._advance(example)], wrong)

    def _take_ahead(self, example: Dated) -> Placed:
        run = self._run
        if run and example.time < run[0].time - self._horizon:
            run = []
        if example.id is None or all(example.id != each.id for each in run):
            run = [*run, example]
        self._run = run
        return self._go_on_with_run() if len(run) > CONFIRMATIONS else Placed([], [example])

    def _go_on_with_run(self) -> Placed:
        """Move the clock to the run, and place its examples again."""
        run, self._run = self._run, []
        self._first, self._is_confirmed = [], True
        self._advance(min(run, key=lambda each: each.time))
        placed = [self.place(each) for each in run]
        return Placed([each for part in placed for each in part.on_clock], placed[-1].ahead)
