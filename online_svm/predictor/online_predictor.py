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
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from online_svm.config import PredictorConfig
from online_svm.errors import InvalidExample, InvalidInput, InvalidSnapshot
from online_svm.predictor.active_model import ActiveModel
from online_svm.predictor.mixture import Mixture
from online_svm.predictor.pending_refit import PendingRefit
from online_svm.predictor.published_maps import interval_maps
from online_svm.predictor.stream_validity import StreamValidity
from online_svm.predictor.warm_up import warming_block
from online_svm.refit.task import RefitTask, Refitter
from online_svm.semantics import are_equal
from online_svm.storage.arrays import nest, under
from online_svm.storage.snapshot import pack, unpack
from online_svm.storage.state import State, as_array
from online_svm.stream.available_examples import AvailableExamples
from online_svm.stream.example import Example
from online_svm.stream.labels import LabelIndex
from online_svm.stream.prediction import Prediction, PredictionBlock, ValidityReport
from online_svm.stream.schema import FeatureSchema
from online_svm.stream.split import is_early_refit, next_refit, window_parts
from online_svm.stream.targets import checked_probabilities
from online_svm.svm.hyperparameters import given_weights
from online_svm.types import Arrays, Bools, Floats, Ints


class OnlinePredictor:
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

    Examples
    --------
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

    def __init__(self, config: PredictorConfig, refitter: Refitter | None = None) -> None:
        self.config = config
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
        self._unlabelled: int | None = None  # examples learned before the last without a label
        self._validity = StreamValidity(config.published)

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
        schema = self.schema.of_example(example.x)
        probabilities = None if probability is None else np.array([probability])
        block = self.step_many(row[None, :], [label], probabilities, schema)[0]
        assert isinstance(block, PredictionBlock)
        return block.row(0)

    def step_many(
        self,
        X: Floats,
        labels: Sequence[str | None],
        probabilities: Floats | None = None,
        schema: FeatureSchema | None = None,
    ) -> list[PredictionBlock | ValidityReport]:
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

        Returns
        -------
        list of (PredictionBlock or ValidityReport)
            Blocks that cover the rows in order; a report follows the block that completed it.

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
        if schema is not None and len(X):
            self.schema = schema
        codes = self.labels.codes(labels)
        learns = has_label | ~np.isnan(probs)
        before = self.n + np.cumsum(learns) - learns  # examples learned before each row
        n_labels = len(self.labels.labels)
        if learns.all():
            self._examples.append(X, codes, probs, n_labels)
        else:
            self._examples.append(X[learns], codes[learns], probs[learns], n_labels)
        answers: list[PredictionBlock | ValidityReport] = []
        begin = 0
        while begin < len(labels):
            self._freeze_what_is_held()
            due = self._next_change()
            stop = len(labels) if due is None else int(np.searchsorted(before, due))
            stop = self._until_selected(probs, begin, stop) if are_taken else stop
            stop = self._until_unlabelled(learns, begin, stop)
            rows, all_labelled = slice(begin, stop), not self._awaits_label
            self.n = int(before[stop - 1]) + int(learns[stop - 1])
            answers += self._answer(
                X[rows], codes[rows], learns[rows], before[rows], all_labelled=all_labelled
            )
            if not learns[rows].all():
                self._unlabelled = int(before[rows][~learns[rows]][-1])
            if self.n == due:
                self._change()
            begin = stop
        return answers

    def _until_selected(self, probs: Floats, begin: int, stop: int) -> int:
        """Return where the block must end: the first probability changes the guarantee."""
        if self._active is None or self._active.has_probabilities:
            return stop
        given = np.flatnonzero(~np.isnan(probs[begin:stop]))
        return begin + int(given[0]) + 1 if len(given) else stop

    def _until_unlabelled(self, learns: Bools, begin: int, stop: int) -> int:
        """Return where the block must end: the first entry without a label does the same."""
        if self._active is None or self._awaits_label:
            return stop
        without = np.flatnonzero(~learns[begin:stop])
        return begin + int(without[0]) + 1 if len(without) else stop

    @property
    def _awaits_label(self) -> bool:
        """Whether an entry without a label came since the window began; it is not kept itself."""
        window, since = self.config.window, self._unlabelled
        return since is not None and (window is None or self.n - since < window)

    def _answer(
        self, X: Floats, codes: Ints, learns: Bools, before: Ints, *, all_labelled: bool
    ) -> list[PredictionBlock | ValidityReport]:
        """Answer rows that one model answers, with one fit of its maps, and report on them."""
        active = self._active
        if active is None:
            intervals = bool(interval_maps(self.config))
            columns = codes
            block = warming_block(self._declared, before, map_intervals=intervals)
        else:
            columns = active.view.columns(codes)
            block = active.answer(X, columns, before, all_labelled=all_labelled)
            if self._mixture is not None:
                block = self._mixture.added_to(block, columns)
            active.note_learned(codes[learns])
        answers: list[PredictionBlock | ValidityReport] = []
        begin, every = 0, self.config.metrics_every
        for due in range((int(before[0]) // every + 1) * every, self.n + 1, every):
            stop = int(np.searchsorted(before, due))
            answers += [self._scored(block, columns, begin, stop), self._validity.report(due)]
            begin = stop
        if begin < len(before):
            answers.append(self._scored(block, columns, begin, len(before)))
        return answers

    def _scored(
        self, block: PredictionBlock, columns: Ints, begin: int, stop: int
    ) -> PredictionBlock:
        """Return some rows of a block, added to the cumulative validity."""
        part = block.part(begin, stop)
        if part.status == "ok":
            self._validity.update(part, columns[begin:stop])
        return part

    def _next_change(self) -> int | None:
        """Return the smallest n above the present one at which the answering changes."""
        config, active = self.config, self._active
        due = [] if self._pending is None else [self._pending.activation]
        if active is not None and self._awaits_label and config.window is not None:
            assert self._unlabelled is not None
            due.append(self._unlabelled + config.window)
        if active is not None and config.maps_every is not None:
            due.append(self.n + config.maps_every - active.learned % config.maps_every)
        return min(due, default=None)

    def _change(self) -> None:
        """Do what changes the answers after the n-th example: activate a refit, refit the maps."""
        self._activate_if_due()
        self._refit_maps_if_due()

    def _refit_maps_if_due(self) -> None:
        active, every = self._active, self.config.maps_every
        if active is None or every is None or active.learned == 0 or active.learned % every:
            return
        self._calibrations += 1
        active.refit_maps(self._calibrations)

    def _freeze_what_is_held(self) -> None:
        """Submit the refits whose examples are held; the second waits in line behind the first."""
        while self._following is None:
            config = self.config
            due = next_refit(self._frozen, config.refit_every, config.dense_until)
            if due > self._examples.stop:
                break
            self._freeze(due)

    def _freeze(self, n: int) -> None:
        """Freeze the examples available after the n-th, and submit a refit of them."""
        config, self._frozen = self.config, n
        start = 0 if config.window is None else max(0, n - config.window)
        is_first = self._active is None and self._pending is None
        if is_first and not self._can_train(start, n):
            self._forget_before(start)
            return
        view = self.labels.view(self._examples.labels_before(n))
        first, rows = self._examples.give(start, n)
        given = config.class_weight if isinstance(config.class_weight, dict) else {}
        weights = given_weights(given, view.classes[: view.n_known])
        probs = self._examples.probs(start, n).copy() if config.learner == "psvm" else None
        columns = view.columns(self._examples.codes(start, n))
        self._refitter.submit(RefitTask(start, n, first, rows, columns, weights, probs))
        early = n < config.lags_from or is_early_refit(n, config.refit_every, config.dense_until)
        frozen = PendingRefit(start, n, n + (0 if early else config.lag), view)
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
        config = self.config
        trains, _ = window_parts(config.split, start, n, config.training_share, config.seed)
        codes = self._examples.codes(start, n)[trains]
        return len(np.unique(codes[codes >= 0])) > 1

    def _activate_if_due(self) -> None:
        pending = self._pending
        if pending is None or pending.activation != self.n:
            return
        config = self.config
        result = pending.result or self._refitter.result()
        trains, calibrates = window_parts(
            config.split, pending.start, pending.freeze, config.training_share, config.seed
        )
        codes = self._examples.codes(pending.start, self.n)
        frozen = len(trains)
        outside = np.concatenate([codes[:frozen][calibrates], codes[frozen:]])
        self._models += 1
        self._calibrations += 1
        active = ActiveModel(config, result, pending.view, self._models, codes[:frozen][trains])
        if self._active is not None:
            active.headline.follow(self._active.headline)
        since = self._examples.rows(pending.freeze, self.n)
        active.calibrate(outside, since, self._calibrations)
        self._active, self._pending, self._following = active, self._following, None
        self._examples.drop_given()
        self._forget_before(0 if config.window is None else self.n - config.window)

    def _forget_before(self, number: int) -> None:
        """Give up what no later refit can use."""
        self._examples.drop_before(number, with_rows=self._active is None)

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
            "unlabelled": self._unlabelled,
        }
        numbers, arrays = self._examples.state()
        header |= self.labels.state().header | numbers
        arrays |= nest("validity", self._validity.state())
        if self._mixture is not None:
            arrays |= nest("mixture", self._mixture.state())
        if self._pending is not None:
            self._pending.result = self._pending.result or self._refitter.result()
            header["pending"], parts = self._pending.state()
            arrays |= parts
        if self._active is not None:
            header["active"], parts = self._active.state()
            arrays |= nest("active", parts)
        if self._active is not None or self._pending is not None:
            arrays["learner"] = as_array(self._refitter.state())
        return pack(header, arrays)

    def restore(self, data: bytes) -> None:
        """Continue from a snapshot of a predictor with the same configuration.

        Raises
        ------
        InvalidSnapshot
            If the bytes are damaged, or the configuration differs; nothing has changed then.
        """
        header, arrays = unpack(data)
        ours = self.config.model_dump(mode="json")
        if not are_equal("predictor", header.get("config"), ours):
            raise InvalidSnapshot("the snapshot was made under another configuration")
        restored = OnlinePredictor(self.config, self._refitter)
        try:
            restored._load(header, arrays)
            needs_learner = restored._active is not None or restored._pending is not None
            self._refitter.reset(arrays["learner"].tobytes() if needs_learner else None)
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
        self._unlabelled = header["unlabelled"]
        if self._unlabelled is not None and type(self._unlabelled) is not int:
            raise ValueError(f"unlabelled is {self._unlabelled!r}")
        published = self.config.published
        self._validity = StreamValidity.from_state(under("validity", arrays), published)
        if self._mixture is not None:
            logs, share = under("mixture", arrays), self.config.mixed_share
            self._mixture = Mixture.from_state(logs, len(published), share)
        if "pending" in header:
            pending = State(header["pending"], arrays)
            self._pending = PendingRefit.from_state(pending, declared)
        if "active" in header:
            active = State(header["active"], under("active", arrays))
            self._active = ActiveModel.from_state(active, self.config)


def _inline(config: PredictorConfig) -> Refitter:
    # Imported where it is used: a process whose refits are elsewhere starts without the solver.
    from online_svm.refit.inline import InlineRefitter

    return InlineRefitter(config)
