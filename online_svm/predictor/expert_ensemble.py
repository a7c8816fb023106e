"""The ensemble of experts behind the primary prediction, from the first example on.

1. The committee's prediction, the base rate and two logistic regressions (`SimpleExperts`), and
   the given scores if there are any (`ScoreExperts`), are averaged with weights that follow their
   likelihood. Before there is a model, the base rate takes its place.
2. `LabelHistory` corrects the average by the last labels, and a second ensemble weighs corrected
   and uncorrected probabilities: on independent examples the correction loses its weight.
3. The intervals are those of `RecentIntervals`, for any number of classes.

With delayed labels, an example is learned with the experts' answers and the label statistics of the
moment when it was answered. The ensemble spans models. It does not change the Venn intervals.
"""

from dataclasses import replace
from typing import NamedTuple, Self

import numpy as np

from online_svm.config import PredictorConfig
from online_svm.predictor.ensemble import DELAYED_UPDATE, Ensemble, WeightUpdate
from online_svm.predictor.label_history import N_FEATURES, LabelHistory
from online_svm.predictor.pending_examples import AnswerTimeOutputs
from online_svm.predictor.recent_ensemble import MAX_FEATURES, RecentEnsemble
from online_svm.predictor.recent_interval import DELAYED_RULE, RULE, RecentIntervals
from online_svm.predictor.score_experts import N_SCORE_EXPERTS, ScoreExperts
from online_svm.predictor.simple_experts import (
    N_EXPERTS,
    SimpleExperts,
    bounded,
    most_fitted,
    next_fit,
)
from online_svm.refit.feature_encoder import FeatureEncoder
from online_svm.refit.scaling import Scaling
from online_svm.storage.state import State, nest, require, under
from online_svm.storage.state_schema import StateSchema, flag, floats, ints, number
from online_svm.stream.cells import widened
from online_svm.stream.labels import ClassView, LabelIndex
from online_svm.stream.prediction import PredictionBlock
from online_svm.stream.scores import ScoreColumns
from online_svm.types import Floats, Ints

EXPERTS = "experts"
"""Its name as a method in answers."""

EXPERTS_UPDATE = WeightUpdate(0.0005, first=0.5)
"""Of the committee's prediction, which starts with half of the weight, and the simple experts."""

HISTORY_UPDATE = WeightUpdate(0.002, first=0.7)
"""Of uncorrected and corrected probabilities.

On twenty-eight streams, a larger first weight of the correction gains little where it helps, and a
smaller one loses less than .001 where it does not.
"""

DELAYED_EXPERTS_UPDATE = WeightUpdate(0.0005, rate=0.03, first=0.9)
"""Of the same with delayed labels: the weights are as old as the labels, and the committee improves
while these are on their way. Tuned for horizons of 50 and 250."""

MAX_FIRST_EXAMPLES = 500
"""Newest examples that are kept for fits, until the recent ensemble holds as many; fewer if a row
has so many features that a fit takes fewer."""

MIN_ORIGINALS = 750
"""Original answers before their intervals count; by then they fill the count of 500."""

_SCHEMA = StateSchema(number("_fitted_at"), flag("_is_stale"), number("_model"), number("n_labels"))
_NO_LABELS: Ints = np.empty(0, dtype=np.int64)


class ExpertAnswers(NamedTuple):
    """Answers to m rows."""

    point: Floats  # shape (m, n_classes)
    interval: tuple[Floats, Floats] | None  # lower and upper; None without an interval level
    outputs: dict[str, Floats]  # with delayed labels, to store with each row; else empty


class RowsToLearn(NamedTuple):
    """Rows in order; a labelled row is learned after its answer."""

    X: Floats  # shape (m, n_features)
    scaled: Floats | None  # shape (m, n_columns); rows scaled by the model, if there is one
    columns: Ints  # shape (m,); class columns of the labels; -1 for a row without a label
    earlier: AnswerTimeOutputs | None  # of rows that are learned, with delayed labels


class FittedModel(NamedTuple):
    """What the regressions need of the model that answers."""

    version: int
    scaling: Scaling
    recent: RecentEnsemble


class ExpertEnsemble:
    """The experts of a feed; they span models."""

    def __init__(self, config: PredictorConfig) -> None:
        self._config, self._is_delayed = config, config.takes_delayed_labels
        of_experts, of_history = EXPERTS_UPDATE, HISTORY_UPDATE
        if self._is_delayed:
            of_experts, of_history = DELAYED_EXPERTS_UPDATE, DELAYED_UPDATE
        columns = None if config.score_role == "watched" else ScoreColumns.of(config)
        self._scores = None if columns is None else ScoreExperts(columns)
        self._n_experts = 1 + N_EXPERTS + (0 if columns is None else N_SCORE_EXPERTS)
        self._experts = Ensemble(self._n_experts, of_experts)
        self._corrected = Ensemble(2, of_history)
        self.n_labels = len(config.classes or ())  # labels with a code that were learned
        self._fitted_at = 0  # learned examples at the last fit
        self._is_stale = False  # the regressions no longer fit classes or scaling
        self._model = 0  # version of the model that the regressions fit
        self._kept: list[tuple[Floats, Ints]] = []  # rows and class columns for the next fit
        self._begin(LabelIndex(config.classes).view())

    def _begin(self, view: ClassView) -> None:
        self._view, n_classes = view, len(view.classes)
        self._simple, self._history = SimpleExperts(n_classes), LabelHistory(n_classes)
        level = self._config.interval_level
        # With delayed labels, "intervals" count answers of the state before a label is learned, and
        # "originals" the original answers.
        rule = DELAYED_RULE if self._is_delayed else RULE
        names = ("intervals", "originals") if self._is_delayed else ("intervals",)
        self._intervals = dict[str, RecentIntervals]()
        if level is not None:
            self._intervals = {name: RecentIntervals(level, view, rule) for name in names}

    @property
    def view(self) -> ClassView:
        """The classes of the answers."""
        return self._view

    @property
    def scales_itself(self) -> bool:
        """Whether the regressions need another scaling than that of a model."""
        return self._config.scale != "standard"

    def adopt(self, view: ClassView) -> None:
        """Answer with other classes from now on.

        What is known of a class that `view` lacks goes to the slot of unseen labels.
        """
        before, self._view = self._view, view
        if before.classes == view.classes:
            return
        n_classes = len(view.classes)
        index = {label: i for i, label in enumerate(view.classes)}
        places = [index.get(label, n_classes - 1) for label in before.classes]
        self._simple = self._simple.moved(places, n_classes)
        self._history = self._history.moved(places, n_classes)
        moved = np.array(places, dtype=np.int64)
        self._kept = [(X, moved[columns]) for X, columns in self._kept]
        self._is_stale = True
        for name, earlier in self._intervals.items():
            self._intervals[name] = RecentIntervals(earlier.level, view, earlier.rule)
            self._intervals[name].follow(earlier)

    def fit_if_due(self, n: int, k: int, model: FittedModel | None, order: Ints | None) -> None:
        """Fit the regressions if they are due after `n` learned examples.

        `k`: learned examples since the last restart.
        `model`: the model that answers, if any.
        `order`, shape (n_features,): feature indices sorted by name; None if rows have no names.
        """
        if model is not None and model.version != self._model:
            self._model = model.version
            self._is_stale |= not (self.scales_itself or self._simple.scales_like(model.scaling))
        is_due = self._is_stale or (k >= 4 and next_fit(k - 1) == k)
        if self._fitted_at == n or not is_due:
            return
        self._fitted_at, self._is_stale = n, False
        X, columns = self._examples(model)
        if len(columns):
            own = model is None or self.scales_itself
            scaling = self._scaling(X, order) if own or model is None else model.scaling
            self._simple.fit(X, columns, scaling)

    def answer(self, rows: RowsToLearn, point: Floats | None, recent: int = 0) -> ExpertAnswers:
        """Answer rows in order.

        `point`, shape (m, n_classes): the committee's prediction; None without a model.
        `recent`: examples that the recent ensemble holds.
        """
        shape = (len(rows.columns), len(self._view.classes))
        experts = np.empty((self._n_experts, *shape))
        if point is not None:
            experts[0] = point
        features = np.empty((shape[0] if self._is_delayed else 1, shape[1], N_FEATURES))
        sources = np.full(shape[0], -1, dtype=np.int64)
        if rows.earlier is not None:
            _fill_in_earlier(rows.earlier, sources, experts, features)
        scaled = None if self.scales_itself else rows.scaled
        own, of_scores = experts[: 1 + N_EXPERTS], experts[1 + N_EXPERTS :]
        self._simple.answer(rows.X, scaled, rows.columns, sources, own, has_model=point is not None)
        if self._scores is not None:
            self._scores.answer(rows.X, rows.columns, own[1], sources, of_scores)
            if point is None:
                is_new = sources != np.arange(len(sources))
                own[0][is_new] = of_scores[0][is_new]
        average = self._experts.answer(experts, rows.columns)
        corrected = self._history.answer(average, rows.columns, sources, features)
        mixed = self._corrected.answer([average, corrected], rows.columns)
        interval = self._interval(average, mixed, rows) if self._intervals else None
        self._keep(rows, recent)
        outputs = {}
        if self._is_delayed:
            outputs = {"experts": experts.swapaxes(0, 1), "history": features}
        return ExpertAnswers(mixed, interval, outputs)

    def added_to(self, warming: PredictionBlock, rows: RowsToLearn) -> PredictionBlock:
        """Return the answers to rows before there is a model, with everything else as in `warming`.

        While no label is known, they stay empty.
        """
        if not self._view.n_known:
            return warming
        found = self.answer(rows, None)
        lower, upper = found.interval or (np.zeros_like(found.point), np.ones_like(found.point))
        return replace(
            warming,
            classes=self._view.classes,
            label=found.point.argmax(axis=1).astype(np.int64, copy=False),
            point=found.point,
            lower=lower,
            upper=upper,
            method=EXPERTS,
            interval_level=self._config.interval_level,
            member_outputs=found.outputs or None,
        )

    def count_labels(self, codes: Ints) -> None:
        """Count the labels of learned rows."""
        self.n_labels = max(self.n_labels, int(codes.max(initial=-1)) + 1)

    def state(self) -> State:
        """Return everything but the configuration."""
        header = _SCHEMA.header_of(self) | {"labels": list(self._view.labels)}
        arrays = nest("weights", self._experts.state()) | nest("corrected", self._corrected.state())
        arrays |= nest("simple", self._simple.state()) | nest("history", self._history.state())
        for name, counted in self._intervals.items():
            arrays |= nest(name, counted.state())
        if self._scores is not None:
            header["scores"], parts = self._scores.state()
            arrays |= nest("scores", parts)
        if self._kept:
            arrays["X"], arrays["columns"] = self._join_kept()
        return State(header, arrays)

    @classmethod
    def from_state(cls, state: State, config: PredictorConfig) -> Self:
        """Return the ensemble described by `state`."""
        header, arrays = state
        ensemble = cls(config)
        _SCHEMA.fill(ensemble, header, {})
        view = ClassView(header["labels"], config.classes is not None)
        ensemble._begin(view)
        k = len(view.classes)
        ensemble._experts.restore(under("weights", arrays))
        ensemble._corrected.restore(under("corrected", arrays))
        ensemble._simple = SimpleExperts.from_state(under("simple", arrays), k)
        ensemble._history = LabelHistory.from_state(under("history", arrays), k)
        for name, counted in ensemble._intervals.items():
            counted.restore(under(name, arrays))
        columns = ScoreColumns.of(config)
        if ensemble._scores is not None and columns is not None:
            scores = State(header["scores"], under("scores", arrays))
            ensemble._scores = ScoreExperts.from_state(scores, columns)
        if "X" in arrays:
            schema = StateSchema(floats("X", "n f", optional=True), ints("columns", "n", below=k))
            kept = schema.values(cls, None, arrays)
            require(kept["X"].shape[1] <= MAX_FEATURES, "X")
            ensemble._kept = [(kept["X"], kept["columns"])]
        return ensemble

    def _interval(self, average: Floats, mixed: Floats, rows: RowsToLearn) -> tuple[Floats, Floats]:
        """Return lower and upper ends of the intervals, and count the learned rows.

        With delayed labels, the state has learned much since the original answers, so their errors
        say little about it; its own answers before each label say more. Under drift it is the other
        way round: the state has learned the examples just before the label, which no answer can.
        So the intervals hold those of both, once there are enough original answers that were given
        with at least half of the examples that are learned now.
        """
        earlier = rows.earlier
        lower, upper = self._intervals["intervals"].answer(
            average, rows.columns, _present(mixed, earlier)
        )
        originals = self._intervals.get("originals")
        if originals is None:
            return lower, upper
        counts = (
            np.zeros(len(mixed), dtype=bool)
            if earlier is None
            else earlier.comparable & earlier.learns
        )
        columns = np.where(counts, rows.columns, -1)
        joins = columns >= 0
        is_enough = originals.n_labels + np.cumsum(joins) - joins >= MIN_ORIGINALS
        low, high = originals.answer(average, columns, mixed)
        lower[is_enough] = np.minimum(lower, low)[is_enough]
        upper[is_enough] = np.maximum(upper, high)[is_enough]
        return lower, upper

    def _examples(self, model: FittedModel | None) -> tuple[Floats, Ints]:
        """Return labelled examples of known classes for a fit."""
        X, columns = self._join_kept()
        if model is not None and not len(columns):
            X, columns = model.recent.examples()
        known = columns < self._view.n_known
        return (X, columns) if known.all() else (X[known], columns[known])

    def _join_kept(self) -> tuple[Floats, Ints]:
        """Return the kept examples, the newest `MAX_FIRST_EXAMPLES`."""
        if not self._kept:
            return np.empty((0, 0)), _NO_LABELS
        if len(self._kept) > 1:
            width = max(X.shape[1] for X, _ in self._kept)
            newest = slice(-_most_kept(width), None)
            columns = np.concatenate([columns for _, columns in self._kept])[newest]
            parts, missing = list[Floats](), len(columns)
            for X, _ in reversed(self._kept):  # only what is kept is widened
                if missing > 0:
                    parts.insert(0, widened(X[-missing:], width))
                    missing -= len(X)
            self._kept = [(np.concatenate(parts), columns)]
        return self._kept[0]

    def _keep(self, rows: RowsToLearn, recent: int) -> None:
        """Keep labelled rows, until the recent ensemble has enough of them."""
        if recent >= MAX_FIRST_EXAMPLES:
            self._kept = []
            return
        labelled = rows.columns >= 0
        if labelled.any():
            newest = np.flatnonzero(labelled)[-_most_kept(rows.X.shape[1]) :]
            self._kept.append((rows.X[newest], rows.columns[newest]))
            if len(self._kept) > _most_kept(rows.X.shape[1]):
                self._join_kept()

    def _scaling(self, X: Floats, order: Ints | None) -> Scaling:
        encoder = None
        if order is not None:
            config = self._config
            encoder = FeatureEncoder.fit(
                X, config.max_categories, config.declared_kinds, None, order
            )
        return Scaling.fit(bounded(X, encoder), standard=True, encoder=encoder)


def _most_kept(n_features: int) -> int:
    """Return how many rows of so many features are kept for fits."""
    return min(MAX_FIRST_EXAMPLES, most_fitted(n_features))


def _present(mixed: Floats, earlier: AnswerTimeOutputs | None) -> Floats:
    """Return the probabilities with those of copies in the place of their learned rows."""
    if earlier is None or earlier.copied is None:
        return mixed
    return mixed[np.arange(len(mixed)) - earlier.copied]


def _fill_in_earlier(
    earlier: AnswerTimeOutputs, sources: Ints, experts: Floats, features: Floats
) -> None:
    """Set the sources of learned rows, and copy the outputs that were stored with their answers.

    Without outputs for these classes, a row is learned with outputs of now.
    """
    for row in np.flatnonzero(earlier.learns).tolist():
        sources[row] = earlier.rows[row]
        stored = earlier.answers[row]
        if sources[row] >= 0 or stored is None or "experts" not in stored:
            continue
        of_experts, of_history = stored["experts"], stored["history"]
        if of_experts.shape == experts[:, row].shape and of_history.shape == features[row].shape:
            experts[:, row], features[row] = of_experts, of_history
            sources[row] = row
