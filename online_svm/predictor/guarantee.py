"""Guarantee of an answer, as missing labels and open alarms of the monitors reduce it."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from online_svm.config import PredictorConfig
from online_svm.metrics.label_weights import most_examples
from online_svm.metrics.sequential.monitor_set import MonitorSet
from online_svm.metrics.sequential.wealth import Finding
from online_svm.storage.state import require
from online_svm.storage.state_schema import (
    StateSchema,
    Stored,
    StoredHeader,
    json_of,
    number,
    numbers,
    part,
    texts,
)
from online_svm.stream.alarm import Alarm, Moved
from online_svm.stream.answer_columns import Guarantee
from online_svm.stream.guarantee_reason import GuaranteeReason
from online_svm.stream.notice import OpenNotices
from online_svm.stream.prediction import PredictionBlock, ScoredRows
from online_svm.stream.validity_report import MonitorsReport
from online_svm.types import Floats, Ints


class LabelGaps(StoredHeader):
    """The last example without a label, and the last one whose label was corrected after learning.

    `unlabelled`: examples learned before the last entry known to have no label.
    `corrected`: number of the last learned example with a corrected label.
    """

    _stored = StateSchema(number("unlabelled", optional=True), number("corrected", optional=True))

    def __init__(self, config: PredictorConfig) -> None:
        self._window = config.window
        # Conditional on which examples have labels, the labelled ones are still i.i.d. and
        # independent of the proper training set: the theorem holds for them under any rule.
        self._missing = "given_up" if config.takes_delayed_labels else "unlabelled"
        self.unlabelled: int | None = None
        self.corrected: int | None = None

    def correct(self, number: int) -> None:
        """Record that the label of the learned example `number` was corrected."""
        self.corrected = number if self.corrected is None else max(number, self.corrected)

    def lies_in_window(self, n: int) -> bool:
        """Return whether the window contains an entry without a label."""
        return self.unlabelled is not None and self._holds(self.unlabelled, n)

    def reason(self, n: int) -> GuaranteeReason | None:
        """Return why the window's labels, after `n` learned examples, give no exact guarantee."""
        if self.lies_in_window(n):
            return GuaranteeReason(self._missing)
        if self.corrected is not None and self._holds(self.corrected + 1, n):
            # Labels at the horizon are i.i.d. A later correction breaks that: later examples may
            # also be corrected after they are scored.
            return GuaranteeReason("corrected")
        return None

    def ends(self, n: int) -> list[int]:
        """Return, for each gap in the window, the count of learned examples at which it leaves."""
        if self._window is None:
            return []
        firsts = [self.unlabelled, None if self.corrected is None else self.corrected + 1]
        ends = [first + self._window for first in firsts if first is not None]
        return [end for end in ends if end > n]

    def _holds(self, first: int, n: int) -> bool:
        return self._window is None or n - first < self._window


CHANGE_PERIOD_EXAMPLES = 1000
"""The monitors act on at most `MAX_CHANGES_PER_PERIOD` changes in this many learned examples."""

MAX_CHANGES_PER_PERIOD = 2
"""Changes acted on in one period; later alarms are only reported."""

SAME_CHANGE_EXAMPLES = 50
"""Alarms within this many learned examples count as one change, which tests find one by one.

Each of these alarms is acted on. Otherwise a refit would use examples from before the later
alarms, and those alarms would stay open.
"""


class StreamMonitors(Stored):
    """Tests scored rows and keeps the open alarms.

    An alarm raised after n learned examples is open while the model or its calibration uses an
    example numbered below n. Only the newest alarm of each test is kept, because it closes last.

    `raised`: alarms so far.
    """

    _stored = StateSchema(
        part("_tests"),
        number("raised"),
        numbers("_acted"),
        json_of("_open_alarms", stored_as="open"),
        texts("_notices"),
        texts("_feature_notices"),
    )

    def __init__(self, config: PredictorConfig) -> None:
        self._config = config
        in_order = config.maturity == "horizon"
        self._tests = MonitorSet(
            config,
            config.seed,
            in_order=in_order,
            most=most_examples(config.label_budget),
            n_slices=len(config.slices),
        )
        self._open: dict[tuple[str | None, ...], Alarm] = {}
        self._acted: list[int] = []  # examples learned at the first alarm of each change
        self.raised = 0
        self._notices: list[str] = []
        self._feature_notices: list[str] = []

    @property
    def notices(self) -> tuple[str, ...]:
        """Codes of the open notices, those of features first."""
        return (*self._feature_notices, *self._notices)

    def watch(self, X: Floats, n: Ints, names: Sequence[str] | None) -> list[tuple[int, list[str]]]:
        """Rank the features of answered rows, for `cut`.

        `n`, shape (m,): examples learned before each row. Returns the rows before which the open
        notices of features change, with their codes then.
        """
        found = []
        for row, notices in self._tests.features.update(X, n):
            found.append((row + 1, [one.naming(names).code for one in notices]))
        return found

    def update(self, rows: ScoredRows, learned: Ints, since: int = 0) -> list[Alarm | OpenNotices]:
        """Add scored rows; return alarms and changes of the notices, in order, for `cut`.

        `learned`, shape (len(rows),): examples learned up to and including each row.
        `since`: examples learned at the last alarm that was acted on; see `MonitorSet.update`.
        """
        found = self._tests.update(rows, since)
        return [
            self._alarm(one, int(learned[one.row]))
            if isinstance(one, Finding)
            else OpenNotices(int(learned[one.row]), one.notices, one.of_labels)
            for one in found
        ]

    def restart(self) -> None:
        """Restart all tests after an alarm was acted on; open alarms stay open."""
        self._tests.restart()
        self._feature_notices = []
        self._notices = _notices_of(self._notices, of_labels=False)

    def _alarm(self, found: Finding, n: int) -> Alarm:
        action = self._config.on_drift
        if not self._may_act(n):
            action = "report"
        figure = (found.estimate, found.lower, found.upper, found.announced)
        test = (found.kind, found.scope, found.name, found.monitor)
        moved = tuple(Moved(*one) for one in found.moved)
        evidence = (found.log_wealth, found.threshold, found.since)
        return Alarm(n, *test, *evidence, *figure, found.examples, action, moved)

    def _may_act(self, n: int) -> bool:
        """Return whether an alarm after the n-th example is acted on; record it if so."""
        if self._config.on_drift == "report":
            return False
        self._acted = [earlier for earlier in self._acted if earlier > n - CHANGE_PERIOD_EXAMPLES]
        if self._acted and n < self._acted[-1] + SAME_CHANGE_EXAMPLES:
            return True
        if len(self._acted) == MAX_CHANGES_PER_PERIOD:
            return False
        self._acted.append(n)
        return True

    def cut(
        self,
        block: PredictionBlock | None,
        changes: Sequence[Alarm | OpenNotices],
        features: Sequence[tuple[int, list[str]]] = (),
    ) -> list[PredictionBlock | Alarm]:
        """Return answers and alarms, in order.

        Open alarms reduce the guarantee of answers; open notices are named in them.

        `block`: answers given while the alarms were raised.
        `changes`: each holds from the example that caused it, so the block is cut there.
        `features`: rows of the block and the codes of the open notices of features from there on.
        """
        if not changes and not features:
            return [] if block is None else [self._marked(block)]
        found: list[PredictionBlock | Alarm] = []
        begin, size = 0, 0 if block is None else len(block)
        places = [0 if block is None else int(np.searchsorted(block.n, one.n)) for one in changes]
        cuts: list[tuple[int, Alarm | OpenNotices | list[str]]] = [
            *zip(places, changes, strict=True), *features
        ]  # fmt: skip
        for stop, change in sorted(cuts, key=lambda cut: cut[0]):
            if block is not None and stop > begin:
                found.append(self._marked(block.part(begin, stop)))
                begin = stop
            if isinstance(change, Alarm):
                self.open(change)
                found.append(change)
            elif isinstance(change, OpenNotices):
                others = _notices_of(self._notices, of_labels=not change.of_labels)
                codes = [notice.code for notice in change.notices]
                self._notices = others + codes if change.of_labels else codes + others
            else:
                self._feature_notices = change
        if block is not None and begin < size:
            found.append(self._marked(block.part(begin, size)))
        return found

    def open(self, alarm: Alarm) -> None:
        """Keep an alarm until `close`; it replaces an older alarm of the same test."""
        self._open[alarm.test] = alarm
        self.raised += 1

    def close(self, since: int) -> bool:
        """Close alarms with n <= `since`: model and calibration use no example before `since`.

        Return whether any was open. When the last alarm closes, notices of bins, categories and
        slices close with it: their evidence is about an earlier model, and they have few rows.
        """
        before = len(self._open)
        self._open = {key: alarm for key, alarm in self._open.items() if alarm.n > since}
        has_closed = len(self._open) < before
        if has_closed and not self._open:
            self._tests.close_notices()
            self._notices = [
                code
                for code in self._notices
                if code.partition(":")[0] in ("overall", "class", "labels")
            ]
        return has_closed

    def _marked(self, block: PredictionBlock) -> PredictionBlock:
        guarantee, reason = self.guarantee(block.guarantee, block.reason)
        if (guarantee, reason, ()) == (block.guarantee, block.reason, self.notices):
            return block
        return replace(block, guarantee=guarantee, reason=reason, notices=self.notices)

    def guarantee(
        self, guarantee: Guarantee, reason: GuaranteeReason | None
    ) -> tuple[Guarantee, GuaranteeReason | None]:
        """Return the guarantee that remains while alarms are open, and the reason.

        An exchangeability alarm removes the guarantee. A calibration alarm makes it approximate,
        with its estimate in the reason.
        """
        if guarantee == "none":
            return guarantee, reason
        broken = self._newest("exchangeability") if self._open else None
        if broken is not None:
            return "none", GuaranteeReason.of_alarm(broken)
        off = self._newest("calibration") if self._open else None
        if off is None:
            return guarantee, self._proviso if guarantee == "exact" else reason
        return "approximate", GuaranteeReason.of_alarm(off, reason)

    @property
    def _proviso(self) -> GuaranteeReason | None:
        """Proviso of an exact guarantee: refits that alarms trigger depend on the labels."""
        if self._config.on_drift == "report":
            return None
        return GuaranteeReason("false_alarm", (("level", self._config.alarm_level),))

    def report(self) -> MonitorsReport:
        """Return the state of the tests and the open alarms, the oldest first."""
        ordered = sorted(self._open.values(), key=lambda alarm: alarm.n)
        return MonitorsReport(
            self.raised, tuple(ordered), self._tests.notices(), self._tests.features.notices(),
            self._tests.report(),
        )  # fmt: skip

    @property
    def _open_alarms(self) -> list[dict[str, Any]]:
        return [asdict(alarm) for alarm in self._open.values()]

    @_open_alarms.setter
    def _open_alarms(self, stored: list[dict[str, Any]]) -> None:
        self._open, raised = {}, self.raised
        for fields in stored:
            alarm = Alarm.of(fields)
            require(fields.keys() == asdict(alarm).keys(), "open")
            require(type(alarm.n) is int and alarm.n >= 0, "open")
            self.open(alarm)
        self.raised = raised

    def _newest(self, kind: str) -> Alarm | None:
        found: Sequence[Alarm] = [alarm for alarm in self._open.values() if alarm.kind == kind]
        return max(found, key=lambda alarm: alarm.n, default=None)


def _notices_of(codes: Sequence[str], *, of_labels: bool) -> list[str]:
    """Return the codes of the shares of the labels, or the other ones."""
    return [code for code in codes if code.startswith("labels:") == of_labels]
