"""The monitors of a stream: findings become alarms, and open alarms change the guarantee."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import groupby
from typing import Self

import numpy as np

from online_svm.config import PredictorConfig
from online_svm.config.groups import MonitorConfig
from online_svm.metrics.sequential.families import Finding
from online_svm.metrics.sequential.monitor_set import MonitorSet
from online_svm.storage.arrays import nest, under
from online_svm.storage.state import Header, State
from online_svm.stream.alarm import Alarm, Moved
from online_svm.stream.answer_columns import Guarantee
from online_svm.stream.prediction import MonitorsReport, PredictionBlock
from online_svm.stream.scored_rows import ScoredRows
from online_svm.types import Ints

PERIOD = 1000
"""Learned examples within which at most `MOST_CHANGES` changes are acted on."""

MOST_CHANGES = 2
"""Further alarms within that many examples are reported only."""

ONE_CHANGE = 50
"""Learned examples within which all alarms count as one change: one test after the other finds it.

Each is acted on. A refit would else use examples from before the later ones, which stayed open."""


class StreamMonitors:
    """Watches scored rows, and keeps the alarms that are open.

    An alarm that was raised when n examples were learned is open while the model or its
    calibration uses an example numbered below n. Of one test only the newest alarm is kept, which
    closes last.

    Parameters
    ----------
    config : MonitorConfig
    seed : int
        Of the ranks of equal scores.
    in_order : bool
        Whether rows are scored in the order of their examples, as `MonitorSet` needs it.

    Attributes
    ----------
    raised : int
        Alarms so far.

    Examples
    --------
    >>> monitors = StreamMonitors(MonitorConfig())
    >>> label, said = np.ones(40, dtype=np.int64), np.tile([0.6, 0.4], (40, 1))
    >>> rows = ScoredRows(np.arange(9000, 9040), ("a", "b"), label, said, said, said, said,
    ...                   np.zeros((40, 1)), label, model=1)
    >>> (alarm,) = monitors.update(rows, rows.n + 1)
    >>> monitors.open(alarm)
    >>> monitors.guarantee("exact", None)[0]
    'approximate'
    >>> monitors.close(since=alarm.n)
    >>> monitors.guarantee("exact", None)
    ('exact', None)
    """

    def __init__(self, config: MonitorConfig, seed: int = 0, *, in_order: bool = True) -> None:
        self._begin(config, MonitorSet(config, seed, in_order=in_order))

    def _begin(self, config: MonitorConfig, tests: MonitorSet) -> None:
        self._config, self._tests = config, tests
        self._open: dict[tuple[str | None, ...], Alarm] = {}
        self._acted: list[int] = []  # examples learned at the first alarm of each change
        self.raised = 0

    @classmethod
    def of(cls, config: PredictorConfig) -> Self | None:
        """Return the monitors that the settings ask for; None where they are off."""
        if config.monitors == "off":
            return None
        return cls(config, config.seed, in_order=config.maturity == "horizon")

    def update(self, rows: ScoredRows, learned: Ints, since: int = 0) -> list[Alarm]:
        """Add scored rows; return the alarms that they raise, in order. None is open yet.

        Parameters
        ----------
        rows : ScoredRows
        learned : ndarray of shape (len(rows),)
            Examples learned up to each row, with it.
        since : int
            Examples learned at the last alarm that was acted on; see `MonitorSet.update`.
        """
        found = self._tests.update(rows, since)
        return [self._alarm(one, int(learned[one.row])) for one in found]

    def begin_anew(self) -> None:
        """Give up all evidence so far, when an alarm is acted on; what is open stays open."""
        self._tests.begin_anew()

    def _alarm(self, found: Finding, n: int) -> Alarm:
        action = self._config.on_drift
        if found.kind == "comparison" or not self._may_act(n):
            action = "report"
        figure = (found.estimate, found.lower, found.upper)
        test = (found.kind, found.scope, found.name, found.monitor)
        moved = tuple(Moved(*one) for one in found.moved)
        evidence = (found.log_wealth, found.threshold, found.since)
        return Alarm(n, *test, *evidence, *figure, action, moved)

    def _may_act(self, n: int) -> bool:
        """Return whether an alarm after the n-th example is acted on, and count it if so."""
        if self._config.on_drift == "report":
            return False
        self._acted = [earlier for earlier in self._acted if earlier > n - PERIOD]
        if self._acted and n < self._acted[-1] + ONE_CHANGE:
            return True
        if len(self._acted) == MOST_CHANGES:
            return False
        self._acted.append(n)
        return True

    def cut(
        self, block: PredictionBlock | None, alarms: Sequence[Alarm]
    ) -> list[PredictionBlock | Alarm]:
        """Return answers with the guarantee that open alarms leave them, and alarms, in order.

        Parameters
        ----------
        block : PredictionBlock or None
            Answers given while the alarms were raised; None where there were none.
        alarms : sequence of Alarm
            They are open from the examples on that raised them: the block is cut there.
        """
        if not alarms:
            return [] if block is None else [self._marked(block)]
        found: list[PredictionBlock | Alarm] = []
        begin, size = 0, 0 if block is None else len(block)
        for n, raised in groupby(alarms, key=lambda alarm: alarm.n):
            if block is not None and (stop := int(np.searchsorted(block.n, n))) > begin:
                found.append(self._marked(block.part(begin, stop)))
                begin = stop
            for alarm in raised:
                self.open(alarm)
                found.append(alarm)
        if block is not None and begin < size:
            found.append(self._marked(block.part(begin, size)))
        return found

    def open(self, alarm: Alarm) -> None:
        """Keep an alarm until `close`; it replaces an older one of the same test."""
        self._open[(alarm.kind, alarm.scope, alarm.name, alarm.monitor)] = alarm
        self.raised += 1

    def close(self, since: int) -> None:
        """Close alarms: model and calibration now use only examples numbered `since` and more."""
        self._open = {key: alarm for key, alarm in self._open.items() if alarm.n > since}

    def _marked(self, block: PredictionBlock) -> PredictionBlock:
        """Return a block with the guarantee that the open alarms leave it."""
        guarantee, reason = self.guarantee(block.guarantee, block.reason)
        if (guarantee, reason) == (block.guarantee, block.reason):
            return block
        return replace(block, guarantee=guarantee, reason=reason)

    def guarantee(self, guarantee: Guarantee, reason: str | None) -> tuple[Guarantee, str | None]:
        """Return what open alarms leave of a guarantee, and why.

        An exchangeability alarm leaves none. A calibration alarm makes it approximate, with its
        figure. A comparison says nothing about it.
        """
        if guarantee == "none":
            return guarantee, reason
        broken = self._newest("exchangeability") if self._open else None
        if broken is not None:
            return "none", _reason(broken)
        off = self._newest("calibration") if self._open else None
        if off is None:
            return guarantee, self._proviso if guarantee == "exact" else reason
        return "approximate", "; ".join(filter(None, (reason, _reason(off))))

    @property
    def _proviso(self) -> str | None:
        """What an exact guarantee holds but for: what a refit is given depends on the labels."""
        if self._config.on_drift == "report":
            return None
        return f"but for the probability {self._config.alarm_level:g} that an alarm is false"

    def report(self) -> MonitorsReport:
        """Return where the tests stand, and which alarms are open, the oldest first."""
        ordered = sorted(self._open.values(), key=lambda alarm: alarm.n)
        return MonitorsReport(self.raised, tuple(ordered), self._tests.report()["tests"])

    def state(self) -> State:
        """Return the tests and the open alarms."""
        header = {
            "raised": self.raised,
            "acted": self._acted,
            "open": [asdict(alarm) for alarm in self._open.values()],
        }
        return State(header, nest("tests", self._tests.state()))

    @classmethod
    def from_state(cls, state: State, config: PredictorConfig) -> Self:
        """Return the monitors that `state` describes.

        Raises
        ------
        InvalidSnapshot, LookupError, TypeError, ValueError
            If a part is missing or has no such form.
        """
        header, arrays = state
        in_order = config.maturity == "horizon"
        tests = under("tests", arrays)
        restored = cls.__new__(cls)
        restored._begin(
            config, MonitorSet.from_state(tests, config, config.seed, in_order=in_order)
        )
        restored._load(header)
        return restored

    def _load(self, header: Header) -> None:
        self.raised = _count(header["raised"])
        self._acted = [_count(n) for n in header["acted"]]
        for fields in header["open"]:
            alarm = Alarm.of(fields)
            if fields.keys() != asdict(alarm).keys():
                raise ValueError("an open alarm has other fields")
            _count(alarm.n)
            self._open[(alarm.kind, alarm.scope, alarm.name, alarm.monitor)] = alarm

    def _newest(self, kind: str) -> Alarm | None:
        found: Sequence[Alarm] = [alarm for alarm in self._open.values() if alarm.kind == kind]
        return max(found, key=lambda alarm: alarm.n, default=None)


def _reason(alarm: Alarm) -> str:
    """Return why an open alarm changes the guarantee.

    Examples
    --------
    >>> _reason(Alarm(5040, "calibration", "class", "b", "bets", 5.0, 4.6, 5000, 0.06, 0.03, 0.09))
    'calibration alarm at n = 5,040: the probability of class b is too low by 0.060 \
(0.030 to 0.090) since n = 5,000'
    """
    return f"{alarm.kind} alarm at n = {alarm.n:,}: {alarm.finding}"


def _count(value: object) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is no count")
    return value
