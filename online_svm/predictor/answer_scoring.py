"""AnswerScoring: score answers as their labels are learned; return the alarms and reports due."""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from online_svm.config import SCORE, PredictorConfig
from online_svm.metrics.agreement import Agreement
from online_svm.metrics.cost_matrix import RealisedCost
from online_svm.metrics.cumulative import OpenAnswers, StreamValidity
from online_svm.metrics.label_sets import LabelSets, settled_masses
from online_svm.metrics.label_weights import most_examples, without_p_values
from online_svm.metrics.promised_error import PromisedErrorRate, SettledAnswers
from online_svm.metrics.sequential.exchangeability import MAX_FEATURES
from online_svm.metrics.window_ring import SLICE_VALUES, SliceNames, SliceValues
from online_svm.metrics.windowed_validity import WindowedValidity
from online_svm.predictor.batch import Answers, LearningOrder
from online_svm.predictor.changed_kinds import ChangedKind, ChangedKinds
from online_svm.predictor.guarantee import StreamMonitors
from online_svm.predictor.label_budget import LabelBudgetCounts, is_marked
from online_svm.predictor.pending_examples import PendingExample
from online_svm.refit.feature_encoder import FeatureEncoder
from online_svm.storage.state import require
from online_svm.storage.state_schema import StateSchema, Stored, part
from online_svm.stream.alarm import Alarm
from online_svm.stream.answer_columns import Guarantee
from online_svm.stream.cells import watched
from online_svm.stream.guarantee_reason import GuaranteeReason
from online_svm.stream.input_batch import SliceValue
from online_svm.stream.notice import OpenNotices
from online_svm.stream.prediction import PredictionBlock, ScoredRows, SettledRows
from online_svm.stream.validity_report import (
    FeatureReport,
    LabelCounts,
    LateLabelReport,
    ValidityReport,
)
from online_svm.types import Floats, Ints

MAX_REPORTED_FEATURES = 256
"""Largest number of features whose kinds a report lists."""

Watched = list[PredictionBlock | Alarm]
Found = Alarm | OpenNotices


class AnswerScoring(Stored):
    """Scores of a stream's answers, overall and by window, with the monitors that test them.

    `features`: feature names, once known; an alarm names the features that moved.
    `watched`: number of features if rows are cells; else None.
    `encoder`: feature encoder of the active model.
    `counts`: one for each report due; empty between calls of the predictor.
    `settled`: rows that were learned or given up; empty between calls of the predictor.
    """

    _stored = StateSchema(
        part("_kinds", stored_as="changed_kinds"), part("_validity"),
        part("_windows", stored_as="windowed"), part("_slices"), part("_monitors"), part("_costs"),
        part("_budget"), part("promise"), part("sets"), part("_agreement"),
    )  # fmt: skip

    def __init__(self, config: PredictorConfig) -> None:
        self._config = config
        self.features: tuple[str, ...] | None = None
        self.watched: int | None = None
        self.encoder: FeatureEncoder | None = None
        self._hidden = [f for f, kind in enumerate(config.declared_kinds) if kind == "time"]
        if config.scores is not None:
            self._hidden.append(config.n_scores)  # a new version is a known change
        self.counts: deque[LabelCounts] = deque()
        self.settled: list[SettledRows] = []
        self._validity = StreamValidity(config.published, most_examples(config.label_budget))
        self._windows = WindowedValidity.of(config, most_examples(config.label_budget))
        self._budget = None if config.label_budget is None else LabelBudgetCounts()
        self._kinds = ChangedKinds()
        self._slices = SliceValues(len(config.slices), SLICE_VALUES)
        self._open = OpenAnswers()
        self._monitors = None if config.monitors == "off" else StreamMonitors(config)
        self._costs = RealisedCost.of(config)
        self.promise = PromisedErrorRate.of(config)
        self.sets = LabelSets.of(config)
        self._agreement = Agreement(config.tolerance, counts_asked=config.label_budget is None)

    def slice_codes(self, slices: Sequence[SliceValue | None] | None, count: int) -> Ints:
        """Return the slice codes of rows, in order, shape (count, n_slices).

        A new value takes the next code, so call this once for each row.
        """
        return self._slices.codes(slices, count)

    def guarantee(
        self, guarantee: Guarantee, reason: GuaranteeReason | None
    ) -> tuple[Guarantee, GuaranteeReason | None]:
        """Return the guarantee that open alarms leave, and the reason."""
        if self._monitors is None:
            return guarantee, reason
        return self._monitors.guarantee(guarantee, reason)

    @property
    def notices(self) -> tuple[str, ...]:
        """Codes of the open notices."""
        return () if self._monitors is None else self._monitors.notices

    @property
    def changed_kinds(self) -> tuple[ChangedKind, ...]:
        """Features whose answered values came in another kind than the active model learned."""
        return self._kinds.named(self.features)

    def drain_changed_kinds(self) -> tuple[ChangedKind, ...]:
        """Return the changed kinds, and those that a new model ended since the last call."""
        return self._kinds.drain(self.features)

    def count_kinds(self, X: Floats) -> None:
        """Count the values of answered rows that the active model does not read."""
        if self.encoder is not None:
            self._kinds.add(self.encoder, X, self._config.n_reserved)

    def adopt(self, encoder: FeatureEncoder | None) -> None:
        """Take over the feature encoder of a new model."""
        self.encoder = encoder
        self._kinds.drop_read(encoder)

    def restart(self) -> None:
        """Restart the tests after an alarm was acted on."""
        if self._monitors is not None:
            self._monitors.restart()

    def close(self, since: int) -> None:
        """Close alarms when model and calibration use only examples numbered `since` or higher."""
        if self._monitors is not None and self._monitors.close(since):
            self._agreement.restart()
        if self.promise is not None:
            self.promise.close(since)

    @property
    def immutable(self) -> list[object]:
        """Parts that scoring does not change."""
        return [self._config, self.features, self.encoder, self._slices, *self.settled]

    def scored(
        self, order: LearningOrder, block: PredictionBlock | None, columns: Ints, since: int
    ) -> Answers:
        """Score rows as their labels are learned; return answers, alarms and reports in order.

        With delayed labels an example is scored by the answer it got when it came.

        `block`: the answers to the rows of `order` that are answered; None if there are none.
        `columns`: class column of the label of each answer, or -1.
        `since`: examples learned at the last alarm that was acted on.
        """
        answers: Answers = []
        begin = done = 0
        for due, stop in [*self._due_reports(order), (None, len(order))]:
            if begin == stop:
                continue
            rows, answered = order.part(begin, stop), order.answered(stop)
            part = None if block is None or answered == done else block.part(done, answered)
            settled = rows.settled(part, columns[done:answered])
            self.settled += settled
            alarms = self._score_rows(rows, settled, since)
            if self.promise is not None:
                part = _decided(self.promise, rows, part, settled, alarms)
            if self.sets is not None:
                part = _with_sets(self.sets, rows, part, settled)
            watched = self._watched(part, alarms, rows.X if rows.is_plain else rows.X[rows.answers])
            answers += watched if due is None else with_report(watched, self.report(due))
            begin, done = stop, answered
        return answers

    def report(self, n: int) -> ValidityReport:
        """Return the report after `n` learned examples, which must all have been scored."""
        windows, monitors = self._windows, self._monitors
        tests = None if monitors is None else monitors.report()
        if tests is not None:
            names = SliceNames(self._config.slices, self._slices)
            tests = replace(
                tests,
                notices=tuple(map(names.of_finding, tests.notices)),
                features=tuple(one.naming(self.features) for one in tests.features),
                tests=[names.of_test(test) for test in tests.tests],
            )
        report, budget = self._validity.report(n), self._budget
        return replace(
            report if budget is None else without_p_values(report),
            labels=self._label_report(report),
            agreement=self._agreement.report(),
            windowed=None if windows is None else windows.report(self._slices),
            monitors=tests,
            costs=None if self._costs is None else self._costs.report(),
            features=self._features(),
            budget=None if budget is None else budget.report(),
            promise=None if self.promise is None else self.promise.report(),
            sets=None if self.sets is None else self.sets.report(),
        )

    def _features(self) -> dict[str, FeatureReport] | None:
        """Return the active model's view of named features; None if features have no names.

        Names that appeared after the refit are left out: they depend on how rows are batched.
        """
        if self.watched is None or self.features is None:
            return None
        reports = {} if self.encoder is None else self.encoder.reports()
        return {self.features[f]: one for f, one in islice(reports.items(), MAX_REPORTED_FEATURES)}

    def wait_for(self, examples: Iterable[PendingExample]) -> None:
        """Take up the restored examples that wait for labels."""
        for example in examples:
            is_fit = self._budget is None or is_marked(example, self._config)
            require(is_fit, "label_probability")
            if not example.has_target:
                self._open.add(example.terms)

    def _due_reports(self, order: LearningOrder) -> list[tuple[int | None, int]]:
        """Return examples learned, and rows up to then, for each report due."""
        every, before = self._config.metrics_every, order.before
        due = range((int(before[0]) // every + 1) * every, order.after + 1, every)
        return [(n, int(np.searchsorted(before, n))) for n in due]

    def _score_rows(
        self, order: LearningOrder, settled: Sequence[SettledRows], since: int
    ) -> list[Found]:
        """Score the examples that the rows settle; return alarms and changes of notices."""
        if self._budget is not None:
            self._budget.add(order)
        alarms = list[Found]()
        for rows in settled:
            if rows.block.status == "ok":
                alarms += self._score(rows, since)
        for row, change in enumerate(order.opens):
            if change:
                self._open.add(change * order.examples[row].terms)
        return alarms

    def _watched_rows(self, X: Floats) -> Floats:
        """Return the features that the monitors read."""
        if self.watched is None:
            return X
        return watched(X, min(self.watched, MAX_FEATURES), self._hidden)

    def _score(self, settled: SettledRows, since: int) -> list[Found]:
        """Score answers in the order of their labels; return alarms and changes of notices."""
        block, _, columns, slices, X, before = settled.wanted()
        if not len(columns):
            return []
        rows = ScoredRows.of(block, columns, slices, self._watched_rows(X))
        self._validity.update(block, columns)
        if self._windows is not None:
            self._windows.update(rows)
        if self._costs is not None:
            of = rows.repeated()
            self._costs.update(of.point, of.columns)
        if self._config.score_role == "watched":
            block = replace(block, point=np.ascontiguousarray(block.maps[SCORE]))
            rows = ScoredRows.of(block, columns, slices, self._watched_rows(X))
            rows = replace(rows, category_size=None)  # no count is behind them
        self._agreement.count(block.point, columns)
        learned = (before if len(rows) == len(columns) else before[columns >= 0]) + 1
        alarms = self._tested(rows, learned, since)
        self._compare(rows, learned, alarms)
        return alarms

    def _tested(self, rows: ScoredRows, learned: Ints, since: int) -> list[Found]:
        """Return alarms and changes of notices, by the names of features and slices."""
        if self._monitors is None or not len(rows):
            return []
        alarms = self._monitors.update(rows, learned, since)
        if not alarms:
            return alarms
        names = SliceNames(self._config.slices, self._slices)
        return [
            names.of_finding(found).naming(self.features)
            if isinstance(found, Alarm)
            else replace(found, notices=tuple(map(names.of_finding, found.notices)))
            for found in alarms
        ]

    def _compare(self, rows: ScoredRows, learned: Ints, alarms: Sequence[Found]) -> None:
        """Compare announced probabilities and labels; after an alarm, of later rows alone."""
        begin = 0
        for n in sorted({alarm.n for alarm in alarms if isinstance(alarm, Alarm)}):
            stop = int(np.searchsorted(learned, n, side="right"))
            self._agreement.update(rows.part(begin, stop), learned[begin:stop])
            self._agreement.restart(n)
            begin = stop
        self._agreement.update(rows.part(begin, len(rows)), learned[begin:])

    def _watched(self, block: PredictionBlock | None, found: Sequence[Found], X: Floats) -> Watched:
        """Return answers and alarms; `X` are the features of the answered rows."""
        if self._monitors is None:
            return [] if block is None else [block]
        if block is None:
            return self._monitors.cut(None, found)
        features = self._monitors.watch(self._watched_rows(X), block.n, self.features)
        return self._monitors.cut(block, found, features)

    def _label_report(self, report: ValidityReport) -> LateLabelReport | None:
        """Return the counts of delayed labels for a report that is due; else None."""
        if not self.counts:
            return None
        primary, scored = report.headline, report.scored
        if self._budget is not None:  # most open answers never get a label
            return LateLabelReport(self.counts.popleft(), self._open.count, None, None)
        return LateLabelReport(
            self.counts.popleft(),
            self._open.count,
            self._open.accuracy(scored, primary),
            self._open.brier(scored, primary, self._validity.n_known),
        )


def _decided(
    promise: PromisedErrorRate,
    order: LearningOrder,
    block: PredictionBlock | None,
    settled: Sequence[SettledRows],
    found: Sequence[Found],
) -> PredictionBlock | None:
    """Return the answers to the rows of `order` with decisions, and count the rows' labels."""
    withdrawing = [alarm.n for alarm in found if isinstance(alarm, Alarm)]
    counted = SettledAnswers.joined(
        SettledAnswers.of(rows.block, rows.columns, rows.before, promise.most) for rows in settled
    )
    thresholds = promise.follow(counted, _settled_before(order), withdrawing)
    return None if block is None else promise.decided(block, thresholds)


def _with_sets(
    sets: LabelSets,
    order: LearningOrder,
    block: PredictionBlock | None,
    settled: Sequence[SettledRows],
) -> PredictionBlock | None:
    """Return the answers to the rows of `order` with sets, and count the rows' labels."""
    ahead = [settled_masses(rows, sets.most) for rows in settled]
    thresholds = sets.learn(np.concatenate([np.empty(0), *ahead]), _settled_before(order))
    return None if block is None else sets.added_to(block, thresholds)


def _settled_before(order: LearningOrder) -> Ints:
    """Return the number of rows that are settled before each row that is answered."""
    is_settled = order.learns | order.gaps
    found: Ints = (np.cumsum(is_settled) - is_settled)[order.answers]
    return found


def with_report(watched: Watched, report: ValidityReport) -> Answers:
    """Insert a report before the alarms of the example that completed it."""
    end = len(watched)
    while end and isinstance(last := watched[end - 1], Alarm) and last.n == report.n:
        end -= 1
    return [*watched[:end], report, *watched[end:]]
