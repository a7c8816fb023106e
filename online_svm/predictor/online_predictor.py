"""OnlinePredictor: the one state machine. Answer, then learn; refit on schedule.

The schedule goes by n, the number of learned examples, alone:

- after the n-th example a report is due where n is a multiple of `metrics_every`;
- a refit freezes the last `window` examples where n is a multiple of `refit_every` (and early, at
  10, 20, 40, ...), and its model becomes active `lag` examples later, or at once while n is
  below `lags_from`;
- the maps are fitted at activation, and again at each multiple of `maps_every` since.

Between two such points nothing but counts changes, so rows are answered in blocks; where the
blocks of a caller begin and end changes no bit of any answer.

What a refit is given depends on the examples alone and on no answer. So it is submitted as soon as
its examples have come, be they answered yet or not, and in line behind the refit before it: that
gives it more time where it is computed elsewhere. When it is computed changes nothing.

Where `on_drift` acts on alarms, it does depend on answers. Then it is submitted when its last
example was learned. An alarm withdraws the refits under way, and the schedule begins anew with the
examples that follow.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from online_svm.errors import InvalidExample, InvalidInput
from online_svm.predictor.active_model import ActiveModel
from online_svm.predictor.late_labels import Correction, Step
from online_svm.predictor.late_scores import open_terms, scored_answers
from online_svm.predictor.learning_order import LearningOrder, report_counts
from online_svm.predictor.pending_examples import give
from online_svm.predictor.published_maps import interval_maps
from online_svm.predictor.refit_cycle import RefitCycle
from online_svm.predictor.slice_names import SliceNames
from online_svm.predictor.warm_up import warming_block
from online_svm.stream.alarm import Alarm
from online_svm.stream.example import Example
from online_svm.stream.label_counts import Done
from online_svm.stream.prediction import (
    LateLabelReport,
    Prediction,
    PredictionBlock,
    ValidityReport,
)
from online_svm.stream.schema import FeatureSchema
from online_svm.stream.scored_rows import ScoredRows
from online_svm.stream.slices import SliceValue
from online_svm.stream.targets import checked_probabilities
from online_svm.types import Bools, Floats, Ints

Answers = list[PredictionBlock | ValidityReport | Alarm]
Watched = list[PredictionBlock | Alarm]


class OnlinePredictor(RefitCycle):
    """Answers a stream of examples, each before its label is learned.

    Parameters
    ----------
    config : PredictorConfig
    refitter : Refitter, optional
        Where refits are computed; in this process without it. It changes no answer.

    Attributes
    ----------
    n : int
        Learned examples.
    schema : FeatureSchema
        Names or number of the features, once known.
    labels : LabelIndex
        Labels declared or met so far, in the order of their codes.
    classes : tuple of str
        The same, sorted.
    late : LateLabels or None
        The examples that wait for their labels, where there is a horizon.

    Examples
    --------
    >>> from online_svm.config import PredictorConfig
    >>> predictor = OnlinePredictor(PredictorConfig(classes=["no", "yes"], refit_every=10))
    >>> for i in range(30):
    ...     prediction = predictor.step(Example([float(i % 2), 1.0], "yes" if i % 2 else "no"))
    >>> prediction.label, prediction.guarantee
    ('yes', 'exact')
    >>> copy = OnlinePredictor(predictor.config)
    >>> copy.restore(predictor.snapshot())
    >>> copy.step(Example([0.0, 1.0])) == predictor.step(Example([0.0, 1.0]))
    True
    """

    @property
    def classes(self) -> tuple[str, ...]:
        """Labels declared or met so far, sorted."""
        return tuple(label for label in self.labels.view().classes if label is not None)

    @property
    def active(self) -> ActiveModel | None:
        """The model that answers now; None while warming up."""
        return self._active

    @property
    def waits_at(self) -> int | None:
        """Learned examples at which the refit under way takes effect; None if none is.

        The example that makes it so many waits for the refit, if that is not finished. A caller
        with other work to do may do it just before.
        """
        return None if self._pending is None else self._pending.activation

    def step(self, example: Example) -> Prediction:
        """Answer one example, then learn it if it has a label or a probability.

        Raises
        ------
        InvalidExample
            If it cannot be answered; nothing has changed then.
        """
        row = self.schema.row(example.x)
        label = self.schema.label(example.y)
        probability = self.schema.probability(example.p)
        if label is not None and probability is not None:
            raise InvalidExample("duplicate_field", "both y and p are given; give one")
        slices = self.schema.slice_values(example.slices)
        schema = self.schema.of_example(example.x)
        probabilities = None if probability is None else np.array([probability])
        times = None if example.time is None else [example.time]
        answers = self.step_many(
            row[None, :],
            [label],
            probabilities,
            schema,
            ids=[example.id],
            times=times,
            slices=[slices],
        )
        block = answers[0]
        assert isinstance(block, PredictionBlock)
        return block.row(0)

    def label(self, id: str, y: str | int) -> Done:
        """Take the label of an example that was answered before; say what was done with it.

        It is learned as the setting `maturity` says.

        Raises
        ------
        InvalidExample
            If it is no label of this stream, or cannot be used; see `LateLabels.label`.
        InvalidInput
            If labels come with their examples here.

        Examples
        --------
        >>> from online_svm.config import PredictorConfig
        >>> predictor = OnlinePredictor(PredictorConfig(horizon=100))
        >>> answer = predictor.step(Example([0.5, 1.0], id="a"))
        >>> predictor.label("a", "spam"), predictor.label("a", "spam"), predictor.n
        ('accepted', 'repeated', 0)
        """
        if self.late is None:
            raise InvalidInput("label: a label comes with its example; set a horizon")
        label = self.schema.label(y)
        assert label is not None
        done = self.late.label(id, label)
        self.answer_accepted()
        return done

    def step_many(
        self,
        X: Floats,
        labels: Sequence[str | None],
        probabilities: Floats | None = None,
        schema: FeatureSchema | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        times: Sequence[int] | None = None,
        slices: Sequence[SliceValue | None] | None = None,
    ) -> Answers:
        """Answer and learn rows in order; the same as `step` on each.

        Parameters
        ----------
        X : ndarray of shape (m, n_features)
            Rows that `schema.row` accepted.
        labels : sequence of (str or None), length m
            Labels that `schema.label` accepted; None leaves a row unlearned, unless it has a
            probability.
        probabilities : ndarray of shape (m,), optional
            Values that `schema.probability` accepted, of rows without a label; NaN where there is
            none. They are learned, but take no part in calibration and are not scored.
        schema : FeatureSchema, optional
            The one the rows were checked by; if there are any, it is the predictor's from now on.
        ids : sequence of (str or None), length m, optional
            By which labels can be sent later, where there is a horizon; none may wait already.
        times : sequence of int, length m, optional
            Milliseconds, where the horizon counts time.
        slices : sequence of (SliceValue or None), length m, optional
            Values that `schema.slice_values` accepted.

        Returns
        -------
        list of (PredictionBlock, ValidityReport or Alarm)
            Blocks that cover the rows in order; a report follows the block that completed it, and
            an alarm the block, and the report, of the example that raised it.

        Raises
        ------
        InvalidInput
            If the lengths differ, or a probability cannot be learned.
        """
        if len(X) != len(labels):
            raise InvalidInput(f"labels: {len(labels)} for {len(X)} rows; give one for each row")
        has_label = np.array([label is not None for label in labels], dtype=np.bool_)
        are_taken = self.config.learner == "psvm"
        probs = checked_probabilities(probabilities, has_label, are_taken=are_taken)
        if self.late is not None:
            self.late.accept_many(X, labels, probs, ids, times, self.slice_codes(slices, len(X)))
            return self.answer_accepted(schema)
        if schema is not None and len(X):
            self.schema = schema
        codes = self.labels.codes(labels)
        order = LearningOrder.at_once(X, codes, probs, self.n, self.slice_codes(slices, len(X)))
        return self._follow(order)

    def slice_codes(self, slices: Sequence[SliceValue | None] | None, count: int) -> Ints:
        """Return the codes of the slices of accepted rows, in order, shape (count, n_slices).

        A value that is met for the first time takes the next code. It may be asked once a row.
        """
        return self._slices.codes(slices, count)

    def answer_accepted(self, schema: FeatureSchema | None = None) -> Answers:
        """Answer the examples that `late` accepted since the last call, and learn what is due.

        Parameters
        ----------
        schema : FeatureSchema, optional
            The one they were checked by.

        Returns
        -------
        As `step_many` does. A report follows the block of those that were answered before the
        example whose learning completed it.
        """
        assert self.late is not None
        steps = self.late.take_steps()
        if schema is not None and any(step.kind == "answer" for step in steps):
            self.schema = schema
        self._counts = deque(report_counts(steps))
        answers: Answers = []
        begin = 0
        for i, step in enumerate(steps):
            if step.correction is not None:
                answers += self._follow_steps(steps[begin:i])
                self._relabel(step.correction)
                begin = i + 1
        return answers + self._follow_steps(steps[begin:])

    def _follow_steps(self, steps: Sequence[Step]) -> Answers:
        learned = [step.example.label for step in steps if step.example and step.kind == "learn"]
        order = LearningOrder.of_steps(steps, self.labels.codes(learned), self.n)
        return self._follow(order) if len(order) else []

    def _relabel(self, correction: Correction) -> None:
        """Give a learned example another label, for the next refit."""
        (code,) = self.labels.codes([correction.label])
        self._examples.relabel(correction.n, int(code), len(self.labels.labels))

    def _follow(self, order: LearningOrder) -> Answers:
        """Answer and learn rows in this order, in blocks between which the answering changes."""
        held = order.learned()
        self._examples.append(held.X, held.codes, held.probs, len(self.labels.labels))
        answers: Answers = []
        begin = 0
        while begin < len(order):
            self._freeze_what_is_held()
            due = self._next_change()
            block = order.part(begin, self._end_of_block(order, begin, due))
            block, answered = self._answer_until_acted(block)
            answers += answered
            if block.gaps.any():
                self._unlabelled = int(block.before[block.gaps][-1])
            if _acted_at(answered) is not None:
                self._begin_anew(self.n)
            if self.n == due:
                self._change()
            begin += len(block)
        return answers

    def _answer_until_acted(self, block: LearningOrder) -> tuple[LearningOrder, Answers]:
        """Answer a block up to the first row whose alarm is acted on; return what was answered.

        Which row that is shows only when the block is answered. If it is not the last one, all that
        has changed is put back, and the block is answered again up to it.
        """
        all_labelled = not self._awaits_label
        before = self._copies() if self._acts and len(block) > 1 else None
        self.n = block.after
        answers = self._answer(block, all_labelled=all_labelled)
        n = _acted_at(answers)
        stop = len(block) if n is None else int(np.searchsorted(block.before, n))
        if before is None or stop == len(block):
            return block, answers
        self.__dict__.update(before)
        block = block.part(0, stop)
        self.n = block.after
        return block, self._answer(block, all_labelled=all_labelled)

    def _end_of_block(self, order: LearningOrder, begin: int, due: int | None) -> int:
        """Return the row before which the answering changes, at `due` learned examples or before.

        The first row with a probability changes the guarantee, and so does the first without a
        label.
        """
        stop = len(order) if due is None else int(np.searchsorted(order.before, due))
        if self._active is None:
            return stop
        if self.config.learner == "psvm" and not self._active.has_probabilities:
            stop = begin + _with_first(~np.isnan(order.probs[begin:stop]))
        if not self._awaits_label:
            stop = begin + _with_first(order.gaps[begin:stop])
        return stop

    @property
    def _awaits_label(self) -> bool:
        """Whether an entry without a label came since the window began; it is not kept itself."""
        window, since = self.config.window, self._unlabelled
        return since is not None and (window is None or self.n - since < window)

    def _answer(self, order: LearningOrder, *, all_labelled: bool) -> Answers:
        """Answer rows that one model answers, with one fit of its maps, and report on them."""
        if order.late is None:
            block, columns = self._block(order, all_labelled=all_labelled)
            return self._reported(order, block, columns)
        return self._late_reported(order, self._late_block(order, all_labelled=all_labelled))

    def _late_block(self, order: LearningOrder, *, all_labelled: bool) -> PredictionBlock | None:
        """Return the answers that rows ask for, kept with their examples; None if they ask none."""
        assert order.late is not None
        is_answered = order.late.answers
        rows = order.computed(is_answered)
        if not len(rows):
            return None
        block, _ = self._block(rows, all_labelled=all_labelled)
        given = block.taken(is_answered[order.learns | is_answered])
        give(order.late.chosen(is_answered), given)
        return given

    def _block(self, rows: LearningOrder, *, all_labelled: bool) -> tuple[PredictionBlock, Ints]:
        """Return the answers to rows, and the columns of what was learned of each after its answer.

        A row that was answered before is answered again on the way, since what a model has seen is
        learned there; nobody is told.
        """
        active = self._active
        if active is None:
            intervals = bool(interval_maps(self.config))
            block = warming_block(self._declared, rows.before, map_intervals=intervals)
            return block, rows.codes
        columns = active.view.columns(rows.codes)
        block = active.answer(rows.X, columns, rows.before, all_labelled=all_labelled)
        if self._mixture is not None:
            block = self._mixture.added_to(block, columns)
        active.note_learned(rows.learned().codes)
        return block, columns

    def _reported(self, order: LearningOrder, block: PredictionBlock, columns: Ints) -> Answers:
        """Return rows with the reports that they complete; each was scored as it was learned."""
        answers: Answers = []
        begin = 0
        for due, stop in self._due_reports(order):
            scored = self._scored(
                block.part(begin, stop), columns[begin:stop], order.part(begin, stop)
            )
            answers += _with_report(scored, self._report(due))
            begin = stop
        if begin < len(order):
            rest = order.part(begin, len(order))
            answers += self._scored(block.part(begin, len(order)), columns[begin:], rest)
        return answers

    def _due_reports(self, order: LearningOrder) -> list[tuple[int, int]]:
        """Return the reports due among rows: examples learned by then, and rows up to it."""
        every, before = self.config.metrics_every, order.before
        due = range((int(before[0]) // every + 1) * every, self.n + 1, every)
        return [(n, int(np.searchsorted(before, n))) for n in due]

    def _scored(self, block: PredictionBlock, columns: Ints, order: LearningOrder) -> Watched:
        """Return rows that were learned right after their answers, and the alarms they raised."""
        if block.status != "ok":
            return [block]
        rows = ScoredRows.of(block, columns, order.slices, order.X)
        return self._watched(block, self._score(block, columns, rows, block.n + 1))

    def _score(
        self, block: PredictionBlock, columns: Ints, rows: ScoredRows, learned: Ints
    ) -> list[Alarm]:
        """Add answers of a model and their labels, in the order in which they are learned.

        Returns
        -------
        list of Alarm
            What the monitors find; `learned` is the number of examples learned up to each row.
        """
        self._validity.update(block, columns)
        if self._windows is not None:
            self._windows.update(rows)
        if self._monitors is None or not len(rows):
            return []
        names = SliceNames(self.config.slices, self._slices)
        alarms = self._monitors.update(rows, learned[columns >= 0])
        return [names.of_alarm(alarm) for alarm in alarms]

    def _watched(self, block: PredictionBlock | None, alarms: Sequence[Alarm]) -> Watched:
        """Return answers and alarms in order, with the guarantee that open alarms leave them."""
        if self._monitors is None:
            return [] if block is None else [block]
        return self._monitors.cut(block, alarms)

    def _report(self, n: int) -> ValidityReport:
        """Return the report after `n` learned examples, which have all been scored."""
        windows, monitors = self._windows, self._monitors
        watched = None if monitors is None else monitors.report()
        if watched is not None:
            names = SliceNames(self.config.slices, self._slices)
            watched = replace(watched, tests=[names.of_test(test) for test in watched.tests])
        return replace(
            self._validity.report(n),
            windowed=None if windows is None else windows.report(self._slices),
            monitors=watched,
        )

    def _late_reported(self, order: LearningOrder, block: PredictionBlock | None) -> Answers:
        """Return what was answered, with the reports that the learning of examples completes.

        Examples that are learned are scored by the answers they were given.
        """
        assert order.late is not None
        answers: Answers = []
        given = np.cumsum(order.late.answers)
        begin = done = 0
        for due, stop in [*self._due_reports(order), (None, len(order))]:
            told = int(given[stop - 1])
            alarms = self._score_late(order.part(begin, stop))
            part = None if block is None or told == done else block.part(done, told)
            watched = self._watched(part, alarms)
            answers += watched if due is None else _with_report(watched, self._late_report(due))
            begin, done = stop, told
        return answers

    def _score_late(self, order: LearningOrder) -> list[Alarm]:
        """Score the examples that are learned; return the alarms that they raise."""
        assert order.late is not None
        learned, alarms = order.before[order.learns] + 1, list[Alarm]()
        for begin, block, columns, slices, X in scored_answers(order.late.chosen(order.learns)):
            rows = ScoredRows.of(block, columns, slices, X)
            alarms += self._score(block, columns, rows, learned[begin : begin + len(columns)])
        self._open.add(open_terms(order.late))
        return alarms

    def _late_report(self, n: int) -> ValidityReport:
        report = self._report(n)
        headline, scored = report.headline, report.scored
        labels = LateLabelReport(
            self._counts.popleft(),
            self._open.count,
            self._open.accuracy(scored, headline),
            self._open.brier(scored, headline),
        )
        return replace(report, labels=labels)

    def _next_change(self) -> int | None:
        """Return the smallest n above the present one at which the answering changes."""
        config, active = self.config, self._active
        due = [] if self._pending is None else [self._pending.activation]
        if active is not None and self._awaits_label and config.window is not None:
            assert self._unlabelled is not None
            due.append(self._unlabelled + config.window)
        if active is not None and config.maps_every is not None:
            due.append(self.n + config.maps_every - active.learned % config.maps_every)
        if self._acts:
            due.append(self._next_freeze())
        return min(due, default=None)

    def _change(self) -> None:
        """Do what changes the answers after the n-th example: activate a refit, refit the maps."""
        if self._acts:
            self._freeze_what_is_held()
        self._activate_if_due()
        self._refit_maps_if_due()

    def _refit_maps_if_due(self) -> None:
        active, every = self._active, self.config.maps_every
        if active is None or every is None or active.learned == 0 or active.learned % every:
            return
        self._calibrations += 1
        active.refit_maps(self._calibrations)


def _acted_at(answers: Answers) -> int | None:
    """Return the examples learned at the first alarm that is acted on; None without one."""
    acted = (a.n for a in answers if isinstance(a, Alarm) and a.action != "report")
    return next(acted, None)


def _with_report(watched: Watched, report: ValidityReport) -> Answers:
    """Return answers and alarms with a report, before the alarms of the example that completed it.

    Examples
    --------
    >>> first, second = (Alarm(n, "calibration", "overall", None, "t", 5, 4, 0) for n in (9, 10))
    >>> report = ValidityReport(10, 0, None, None, {})
    >>> [answer.n for answer in _with_report([first, second], report)]
    [9, 10, 10]
    """
    end = len(watched)
    while end and isinstance(last := watched[end - 1], Alarm) and last.n == report.n:
        end -= 1
    return [*watched[:end], report, *watched[end:]]


def _with_first(marked: Bools) -> int:
    """Return how many rows there are up to the first marked one, with it; all if none is.

    Examples
    --------
    >>> _with_first(np.array([False, True, True]))
    2
    """
    places = np.flatnonzero(marked)
    return int(places[0]) + 1 if len(places) else len(marked)
