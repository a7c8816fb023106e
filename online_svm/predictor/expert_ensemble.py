"""The ensemble of experts behind the primary prediction, from the first example on.

1. The experts of the model, the recent stacks and those of the table `EXPERTS`, such as the base
   rate and two logistic regressions, are averaged with weights that follow their likelihood.
2. Experts that correct, such as `LabelHistory`, correct the average, and a second ensemble weighs
   corrected and uncorrected probabilities: on independent examples a correction loses its weight.
3. With a memory, `MemoryExperts` average that present answer with trees that learn all rows.
4. The intervals are those of `RecentIntervals`, for any number of classes. With delayed labels the
   state has learned much since the original answers, so they count what it says just before each
   label: the average of 1 without its stacks, and then that of 3.

With delayed labels, an example is learned with the outputs of the moment when it was answered
(`AnswerTimeOutputs`). The ensemble spans models. It does not change the Venn intervals.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from online_svm.config import PredictorConfig
from online_svm.predictor.ensemble import Ensemble, WeightUpdate
from online_svm.predictor.expert import Expert, RowsToLearn
from online_svm.predictor.expert_average import AverageRows, ExpertAverage
from online_svm.predictor.label_history import LabelHistory
from online_svm.predictor.memory_experts import N_STORED, PRESENT, MemoryExperts
from online_svm.predictor.pair_prediction import PairPrediction
from online_svm.predictor.recent_interval import RecentIntervals
from online_svm.predictor.recent_stacks import STACKS, RecentStacks
from online_svm.predictor.score_experts import ScoreExperts
from online_svm.predictor.simple_experts import FirstExamples, SimpleExperts, bounded, next_fit
from online_svm.refit.feature_encoder import FeatureEncoder
from online_svm.refit.scaling import Scaling
from online_svm.storage.state import require
from online_svm.storage.state_schema import StateSchema, Stored, flag, number, part, texts
from online_svm.stream.labels import ClassView, LabelIndex
from online_svm.stream.prediction import PredictionBlock
from online_svm.types import Arrays, Floats, Ints

EXPERTS: dict[str, Callable[[PredictorConfig, int], Expert | None]] = {
    "simple": lambda _config, n_classes: SimpleExperts(n_classes),
    "scores": lambda config, _n_classes: ScoreExperts.of(config),
    "history": lambda _config, n_classes: LabelHistory(n_classes),
}
"""The table of experts that span models: the constructor of each, by the name of its state.

A constructor takes the settings and the number of classes; it returns None if the settings ask for
no such expert. Experts answer in this order, after those of the model and the recent stacks.
"""


def groups_of(n_known: int, experts: Mapping[str, Expert]) -> dict[str, str]:
    """Return the group of each averaged expert by name, in their order.

    `n_known`: number of known classes; the experts of a model depend on it.
    `experts`: those that span models.
    """
    of_model: tuple[str, ...] = PairPrediction.outputs
    if n_known > 2:
        # Lazy import: a worker with two classes starts without these kernels.
        from online_svm.predictor.joint_prediction import JointPrediction

        of_model = JointPrediction.outputs
    groups = dict.fromkeys(of_model, "model") | dict.fromkeys(STACKS, "stack")
    for expert in experts.values():
        if not expert.corrects:
            groups |= dict.fromkeys(expert.outputs, expert.group)
    return groups


MEMORY = "memory"
"""Name of what is stored of a row for the experts with long memory."""

EXPERTS_METHOD = "experts"
"""Name of the ensemble as a method in answers."""

HISTORY_UPDATE = WeightUpdate(0.002, first=0.7)
"""Update of the weights of uncorrected and corrected probabilities.

On twenty-eight streams, a larger first weight of the correction gains little where it helps, and a
smaller one loses less than .001 where it does not.
"""

DELAYED_UPDATE = HISTORY_UPDATE._replace(rate=0.03)
"""Update with delayed labels: slower, because the weights are as old as the labels."""


class ExpertAnswers(NamedTuple):
    """Answers to m rows."""

    point: Floats  # shape (m, n_classes)
    interval: tuple[Floats, Floats] | None  # lower and upper; None without an interval level
    outputs: dict[str, Floats]  # with delayed labels, to store with each row; else empty


class FittedModel(NamedTuple):
    """What fits need of the model that answers."""

    version: int
    scaling: Scaling
    recent: RecentStacks


class ExpertEnsemble(Stored):
    """The experts of a feed; they span models."""

    _stored = StateSchema(
        number("_fitted_at"), flag("_is_stale"), number("_model"), number("n_labels"),
        texts("_labels"), part("_first"), part("_average", stored_as="weights"),
        part("_corrected"), part("experts", stored_as=""), part("memory"), part("_intervals"),
    )  # fmt: skip

    def __init__(self, config: PredictorConfig) -> None:
        self._config, self._is_delayed = config, config.takes_delayed_labels
        self._scales_itself = not config.standardizes  # not by the scaling of a model
        self.n_labels = len(config.classes or ())  # labels with a code that were learned
        self._fitted_at = 0  # learned examples at the last fit
        self._is_stale = False  # an expert no longer fits classes or scaling
        self._model = 0  # version of the model that the experts fit
        self._first = FirstExamples()
        self._begin(LabelIndex(config.classes).view())
        update = DELAYED_UPDATE if self._is_delayed else HISTORY_UPDATE
        self._corrected = Ensemble(1 + len(self._corrections), update)

    def forget_memory(self) -> None:
        """Start again with the experts that have long memory."""
        self.memory = None
        if self._config.has_memory:
            self.memory = MemoryExperts(self.view, is_delayed=self._is_delayed)

    @property
    def memory_of_feed(self) -> MemoryExperts:
        """The experts with long memory, which the configuration must have."""
        assert self.memory is not None
        return self.memory

    def _begin(self, view: ClassView) -> None:
        self.view = view  # the classes of the answers
        made = ((key, make(self._config, len(view.classes))) for key, make in EXPERTS.items())
        self.experts: dict[str, Expert] = {key: one for key, one in made if one is not None}
        correcting = (one.outputs for one in self.experts.values() if one.corrects)
        self._corrections = [name for outputs in correcting for name in outputs]
        self._average = ExpertAverage(self._groups, is_delayed=self._is_delayed)
        self.forget_memory()
        self._intervals = self._new_intervals()

    def _new_intervals(self) -> RecentIntervals | None:
        level = self._config.interval_level
        if level is None:
            return None
        return RecentIntervals(level, self.view, is_delayed=self._is_delayed)

    @property
    def _groups(self) -> dict[str, str]:
        return groups_of(self.view.n_known, self.experts)

    @property
    def weights(self) -> dict[str, float]:
        """Part of each expert in the next answer, by name; they sum to one.

        An expert that corrects has the part of the corrected average. A stack of the memory counts
        as one expert, though it weighs the present answer, too.
        """
        has_trees = self.memory is not None and self.memory.is_awake
        memory = self.memory_of_feed.weights if has_trees else {}
        present = memory.pop(PRESENT, 1.0)
        uncorrected, *corrections = (present * w for w in self._corrected.weights.tolist())
        parts = {name: uncorrected * part for name, part in self._average.weights.items()}
        return parts | dict(zip(self._corrections, corrections, strict=True)) | memory

    def adopt(self, view: ClassView) -> None:
        """Answer with other classes from now on.

        What is known of a class that `view` lacks goes to the slot of unseen labels.
        """
        before, self.view = self.view, view
        if before.classes == view.classes:
            return
        n_classes = len(view.classes)
        index = {label: i for i, label in enumerate(view.classes)}
        places = [index.get(label, n_classes - 1) for label in before.classes]
        self.experts = {key: one.moved(places, n_classes) for key, one in self.experts.items()}
        self._average = self._average.of_experts(self._groups)
        self._first.move(np.array(places, dtype=np.int64))
        self._is_stale = True
        if self.memory is not None:
            self.memory.adopt(view)
        intervals, self._intervals = self._intervals, self._new_intervals()
        if intervals is not None and self._intervals is not None:
            self._intervals.follow(intervals)

    def fit_if_due(self, n: int, k: int, model: FittedModel | None, order: Ints | None) -> None:
        """Fit the experts if they are due after `n` learned examples.

        `k`: learned examples since the last restart.
        `model`: the model that answers, if any.
        `order`, shape (n_features,): feature indices sorted by name; None if rows have no names.
        """
        if model is not None and model.version != self._model:
            self._model = model.version
            fits = all(one.scales_like(model.scaling) for one in self.experts.values())
            self._is_stale |= not (self._scales_itself or fits)
        is_due = self._is_stale or (k >= 4 and next_fit(k - 1) == k)
        if self._fitted_at == n or not is_due:
            return
        self._fitted_at, self._is_stale = n, False
        X, columns = self._examples(model)
        if len(columns):
            has_own = model is None or self._scales_itself
            scaling = self._scaling(X, order) if has_own or model is None else model.scaling
            for expert in self.experts.values():
                expert.fit(X, columns, scaling)

    def answer(self, rows: RowsToLearn, recent: int = 0) -> ExpertAnswers:
        """Answer rows in order.

        `recent`: examples that the recent stacks hold.
        """
        X, scaled, columns, at_answer, model, *_ = rows
        shapes, m = self._shapes() if self._is_delayed else {}, len(columns)
        stored = {key: np.empty((m, *of)) for key, of in shapes.items()}
        sources = np.full(m, -1) if at_answer is None else at_answer.sources(shapes)
        if at_answer is not None:
            for key, values in stored.items():
                at_answer.fill(key, values, sources)
        scaled = None if self._scales_itself else scaled
        rows = RowsToLearn(X, scaled, columns, at_answer, model, sources)
        found: dict[str, Floats] = dict(model)
        self._ask(rows, stored, found, corrects=False)
        average, present = self._averaged(rows, found, stored)
        found["average"] = average
        self._ask(rows, stored, found, corrects=True)
        corrected = [found[name] for name in self._corrections]
        mixed = self._corrected.answer([average, *corrected], columns)
        point = mixed
        if self._is_delayed:
            point = np.where(sources[:, None] >= 0, present, mixed)
        if self.memory is not None:
            point = self.memory.answer(point, rows._replace(stored=stored.get(MEMORY)))
        interval = None
        if self._intervals is not None:
            interval = self._intervals.answer(columns, point)
        self._first.keep(X, columns, recent)
        return ExpertAnswers(point, interval, stored)

    def _averaged(self, rows: RowsToLearn, found: Arrays, stored: Arrays) -> tuple[Floats, Floats]:
        """Return the average of the experts, and for rows with a source that of now.

        Without a model, its own experts and the stacks are asleep.
        """
        m, k = len(rows.columns), len(self.view.classes)
        asleep = np.full((m, k), np.nan)
        now = np.array([found.get(name, asleep) for name in self._average.names])
        weightings, experts = self._average.shape
        ages = np.zeros(m) if rows.at_answer is None else rows.at_answer.ages
        mixed, present = np.empty((m, k)), np.empty((m if self._is_delayed else 1, k))
        self._average.answer(AverageRows(
            now, stored.get("experts", np.empty((1, experts, k))),
            stored.get("forecasts", np.empty((1, weightings, k))),
            rows.columns, rows.sources, ages, mixed, present,
        ))  # fmt: skip
        return mixed, present

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of what is stored of a row, by name."""
        k = len(self.view.classes)
        weightings, experts = self._average.shape
        shapes: dict[str, tuple[int, ...]] = {"experts": (experts, k), "forecasts": (weightings, k)}
        if self.memory is not None:
            shapes[MEMORY] = (k, N_STORED)
        return shapes | {
            key: (k, one.n_stored) for key, one in self.experts.items() if one.n_stored
        }

    def _ask(self, rows: RowsToLearn, stored: Arrays, found: Arrays, *, corrects: bool) -> None:
        """Add to `found` the answers of the experts that correct, or of the others."""
        for key, expert in self.experts.items():
            if expert.corrects == corrects:
                own = rows._replace(stored=stored[key]) if key in stored else rows
                found |= zip(expert.outputs, expert.answer(own, found), strict=True)

    def added_to(self, warming: PredictionBlock, rows: RowsToLearn) -> PredictionBlock:
        """Return the answers to rows before there is a model, with everything else as in `warming`.

        While no label is known, they stay empty.
        """
        if not self.view.n_known:
            return warming
        found = self.answer(rows)
        lower, upper = found.interval or (np.zeros_like(found.point), np.ones_like(found.point))
        return replace(
            warming,
            classes=self.view.classes,
            label=found.point.argmax(axis=1).astype(np.int64, copy=False),
            point=found.point,
            lower=lower,
            upper=upper,
            method=EXPERTS_METHOD,
            interval_level=self._config.interval_level,
            member_outputs=found.outputs or None,
        )

    def count_labels(self, codes: Ints) -> None:
        """Count the labels of learned rows."""
        self.n_labels = max(self.n_labels, int(codes.max(initial=-1)) + 1)

    @property
    def _labels(self) -> list[str]:
        return list(self.view.labels)

    @_labels.setter
    def _labels(self, labels: list[str]) -> None:
        self._begin(ClassView(labels, self._config.classes is not None))

    def _on_restored(self) -> None:
        require(self._first.n_classes <= len(self.view.classes), "columns")

    def _examples(self, model: FittedModel | None) -> tuple[Floats, Ints]:
        """Return labelled examples of known classes for a fit."""
        X, columns = self._first.joined()
        if model is not None and not len(columns):
            X, columns = model.recent.examples()
        known = columns < self.view.n_known
        return (X, columns) if known.all() else (X[known], columns[known])

    def _scaling(self, X: Floats, order: Ints | None) -> Scaling:
        encoder, config = None, self._config
        if order is not None:
            kinds = config.declared_kinds
            encoder = FeatureEncoder.fit(X, kinds, None, order)
        return Scaling.fit(bounded(X, encoder), standard=True, encoder=encoder)
