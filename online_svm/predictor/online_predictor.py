"""OnlinePredictor: the one state machine. Answer, then learn; refit on schedule.

The schedule goes by n, the number of learned examples, alone:

- after the n-th example a report is due where n is a multiple of `metrics_every`;
- a refit freezes the last `window` examples where n is a multiple of `refit_every` (and early, at
  10, 20, 40, ...), and its model becomes active `lag` examples later, or at once while n is
  below `lags_from`;
- the maps are fitted at activation.

Between two such points nothing but counts changes, so rows are answered in blocks; where the
blocks of a caller begin and end changes no bit of any answer.

What a refit is given depends on the examples alone and on no answer. So it is submitted as soon as
its examples have come, be they answered yet or not, and in line behind the refit before it: that
gives it more time where it is computed elsewhere. When it is computed changes nothing.
Its result is taken when the next answer, or a snapshot, needs it, and is waited for only then.

Where `on_drift` acts on alarms, it does depend on answers. Then it is submitted when its last
example was learned. An alarm withdraws the refits under way, and the schedule begins anew with the
examples that follow.
"""

from collections import deque
from collections.abc import Sequence

import numpy as np

from online_svm.errors import InvalidExample, InvalidInput
from online_svm.predictor.active_model import ActiveModel
from online_svm.predictor.answering import Answers
from online_svm.predictor.late_answering import LateAnswering
from online_svm.predictor.learning_order import LearningOrder, report_counts
from online_svm.predictor.waits import Waits, finished
from online_svm.stream.example import Example
from online_svm.stream.given_answer import GivenAnswer, given_columns
from online_svm.stream.label_counts import Done
from online_svm.stream.prediction import (
    Prediction,
    PredictionBlock,
)
from online_svm.stream.schema import FeatureSchema
from online_svm.stream.slices import SliceValue
from online_svm.stream.targets import checked_probabilities
from online_svm.types import Floats, Ints


class OnlinePredictor(LateAnswering):
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
        """The model that answers now; None while warming up. A refit that is due is waited for."""
        self.activate_if_due()
        return self._active

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
        given: Sequence[GivenAnswer | None] | None = None,
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
        given : sequence of (GivenAnswer or None), length m, optional
            Answers that were given elsewhere before the labels came, where the setting
            `given_answers` is on: the headline and the monitors score them in place of the own
            ones. They change no answer, and nothing that is learned, but for what `on_drift` does.

        Returns
        -------
        list of (PredictionBlock, ValidityReport or Alarm)
            Blocks that cover the rows in order; a report follows the block that completed it, and
            an alarm the block, and the report, of the example that raised it.

        Raises
        ------
        InvalidInput
            If the lengths differ, a probability cannot be learned, or answers were given and
            `given_answers` is off.
        """
        return finished(
            self.steps_of_many(
                X, labels, probabilities, schema, ids=ids, times=times, slices=slices, given=given
            )
        )

    def steps_of_many(
        self,
        X: Floats,
        labels: Sequence[str | None],
        probabilities: Floats | None = None,
        schema: FeatureSchema | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        times: Sequence[int] | None = None,
        slices: Sequence[SliceValue | None] | None = None,
        given: Sequence[GivenAnswer | None] | None = None,
    ) -> Waits[Answers]:
        """Do what `step_many` does in steps: pause where an answer needs the result of a refit.

        Between two steps nothing may be asked of the predictor but `is_waiting`.
        """
        if given is not None and not self.config.given_answers:
            raise InvalidInput("given: the setting given_answers is off")
        if len(X) != len(labels):
            raise InvalidInput(f"labels: {len(labels)} for {len(X)} rows; give one for each row")
        are_taken = self.config.learner == "psvm"
        probs = checked_probabilities(probabilities, labels, are_taken=are_taken)
        if self.late is not None:
            self.late.accept_many(X, labels, probs, ids, times, self.slice_codes(slices, len(X)))
            return (yield from self.steps_of_accepted(schema))
        if schema is not None and len(X):
            self.schema = schema
        codes = self.labels.codes(labels)
        said = None if given is None else given_columns(given, len(self.schema.classes))
        of_rows = self.slice_codes(slices, len(X))
        order = LearningOrder.at_once(X, codes, probs, self.n, of_rows, said)
        return (yield from self._follow(order))

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
        return finished(self.steps_of_accepted(schema))

    def steps_of_accepted(self, schema: FeatureSchema | None = None) -> Waits[Answers]:
        """Do what `answer_accepted` does in steps, as `steps_of_many` does."""
        assert self.late is not None
        steps = self.late.take_steps()
        if schema is not None and any(step.kind == "answer" for step in steps):
            self.schema = schema
        self._counts = deque(report_counts(steps))
        answers: Answers = []
        begin = 0
        for i, step in enumerate(steps):
            if step.correction is not None:
                answers += yield from self._follow_steps(steps[begin:i])
                yield from self._relabel(step.correction)
                begin = i + 1
        return answers + (yield from self._follow_steps(steps[begin:]))
