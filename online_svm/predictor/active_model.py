"""ActiveModel: the model of one refit with its calibration set, counts and calibrators."""

from copy import deepcopy
from typing import Self

import numpy as np

from online_svm.calibration.one_against_all import OneAgainstAll
from online_svm.config import MIXED, SCORE, PredictorConfig
from online_svm.predictor.calibrators import (
    Calibrator,
    calibrators_from_state,
    fit_calibrators,
    implied_probabilities,
    interval_calibrators,
)
from online_svm.predictor.expert import RowsToLearn
from online_svm.predictor.expert_ensemble import EXPERTS, ExpertEnsemble, FittedModel
from online_svm.predictor.frequency_interval import FrequencyIntervals
from online_svm.predictor.pair_prediction import PairPrediction, PrimaryAnswers, PrimaryPrediction
from online_svm.predictor.pending_examples import AnswerTimeOutputs
from online_svm.predictor.recent_ensemble import MemberOutputs, RecentEnsemble
from online_svm.predictor.recent_interval import (
    DELAYED_RULE,
    RULE,
    RULE_BEFORE_6,
    RecentIntervals,
)
from online_svm.refit.committee.stack import CommitteeModel
from online_svm.refit.task import RefitResult
from online_svm.storage.state import State, as_array, nest, under
from online_svm.storage.state_schema import StateSchema, flag, floats, ints, number
from online_svm.stream.answer_columns import Guarantee
from online_svm.stream.labels import ClassView
from online_svm.stream.prediction import PredictionBlock
from online_svm.stream.scores import ScoreColumns
from online_svm.svm.probability_tube import posterior, steepness
from online_svm.types import Arrays, Bools, Floats, Ints
from online_svm.venn.counted_set import VennSet, svm_classes
from online_svm.venn.scheme import VennScheme

TAXONOMY_BINS = 4
"""Bins of each class in the taxonomies class-quantile, class-rank and margin of a feed."""

# Conditional on which examples have labels, the labelled ones are still i.i.d. and independent of
# T, so the theorem holds for them under any labelling rule. But the answered example may get a
# probability instead, and such examples may differ.
SELECTED = (
    "some examples have a probability instead of a label: exact for those that get a label, for "
    "all only if which they get does not depend on the example"
)

ARRIVAL = (
    "maturity is arrival: an example is learned when its label comes, and those whose labels come "
    "soon may be unlike the others"
)

CROSSFIT = (
    "split is crossfit: the calibration scores are out of fold, by machines that trained on the "
    "rest of the calibration set"
)


TIME = "time: a feature is a time, which comes once, so the examples are not i.i.d."
NAMES = "names: more than max_features came, so which are known depends on all examples"

_SCHEMA = StateSchema(
    number("version"), number("calibration_version"), number("learned"), flag("has_probabilities")
)


class ActiveModel:
    """Answers examples and adds the labelled ones to its calibration set.

    `view`: the classes known at the freeze.
    `version`: number of models so far.
    `training_codes`, shape (n_training,): label codes of the proper training set, for calibrators
        fitted on training scores.
    """

    def __init__(
        self,
        config: PredictorConfig,
        result: RefitResult,
        view: ClassView,
        version: int,
        training_codes: Ints,
    ) -> None:
        self.config, self.result, self.view = config, result, view
        self.version = version
        self.training_columns = view.columns(training_codes)
        taxonomy = config.taxonomy_of(view.n_known)
        self.scheme = VennScheme(
            taxonomy, TAXONOMY_BINS, view.n_known, len(view.classes), config.window
        )
        self.primary = _primary_prediction(config, view.n_known)
        self.recent_ensemble: RecentEnsemble | None = None
        if self.primary.uses_recent_ensemble:
            self.recent_ensemble = RecentEnsemble(
                len(config.members), view.n_known, is_delayed=config.takes_delayed_labels
            )
        self._published = [name for name in config.published if name not in (SCORE, MIXED)]
        self._scores = ScoreColumns.of(config) if SCORE in config.published else None
        self._interval_calibrators = interval_calibrators(config)
        self.calibrators: dict[str, Calibrator] = {}
        self.calibration_version = 0
        self.learned = 0  # examples learned since the activation
        self.has_probabilities = False
        self._set: VennSet | None = None
        self._intervals: FrequencyIntervals | RecentIntervals | None = None
        if self._has_recent_intervals:
            assert config.interval_level is not None
            rule = DELAYED_RULE if config.takes_delayed_labels else RULE
            if config.semantics < 6:
                rule = RULE_BEFORE_6
            self._intervals = RecentIntervals(config.interval_level, view, rule)

    @property
    def _has_recent_intervals(self) -> bool:
        """Whether this model makes intervals from recent predictions, not the expert ensemble."""
        if self.config.interval_level is None:
            return False
        if self.config.semantics < 6:
            return self.view.n_known > 2
        return self.recent_ensemble is None

    @property
    def for_experts(self) -> FittedModel | None:
        """What the expert ensemble needs; None if only the Venn predictor answers."""
        if self.recent_ensemble is None:
            return None
        return FittedModel(self.version, self.result.scaling, self.recent_ensemble)

    @property
    def calibration(self) -> VennSet:
        """The calibration set; `calibrate` or `from_state` creates it."""
        assert self._set is not None
        return self._set

    def follow(self, before: "ActiveModel") -> None:
        """Carry over the state that spans models from the previous model."""
        self.primary.follow(before.primary)
        if self.recent_ensemble is not None and before.recent_ensemble is not None:
            self.recent_ensemble.follow(before.recent_ensemble, self.result.scaling)
        ours, theirs = self._intervals, before._intervals
        if isinstance(ours, RecentIntervals) and isinstance(theirs, RecentIntervals):
            ours.follow(theirs)

    def score(self, X: Floats) -> Floats:
        """Return the scores of unscaled rows, shape (m, n_scores)."""
        return self.result.model.scores(self.result.scaling.transform(X))

    def calibrate(self, codes: Ints, X_since: Floats, calibration_version: int) -> None:
        """Create the calibration set and fit the calibrators.

        `codes`, shape (n_calibration + len(X_since),): label codes of the available examples
            outside T, then of those learned since. Examples without a label (-1) are left out of
            the calibration set.
        `X_since`, shape (m, n_features): examples learned since the freeze.
        `calibration_version`: number of calibrations so far.
        """
        columns = self.view.columns(codes)
        labelled = columns >= 0
        self.has_probabilities = not labelled.all() or bool((self.training_columns < 0).any())
        old = self.result.calibration_scores
        first = _first_of_newest(labelled, self.config.window)
        scores = np.concatenate([old[first:], self.score(X_since[max(first - len(old), 0) :])])
        columns, labelled = columns[first:], labelled[first:]
        self._set = self.scheme.begin(
            self.result.training_scores, scores[labelled], columns[labelled]
        )
        self._count_frequencies()
        self.refit_calibrators(calibration_version)

    def refit_calibrators(self, calibration_version: int) -> None:
        """Fit calibrators and primary prediction on the calibration set (or on training scores)."""
        self.calibration_version = calibration_version
        if self.config.map_data == "training":
            scores, columns = self.result.training_scores, self.training_columns
        else:
            scores, columns = self.calibration.scores, self.calibration.codes
        # An unseen label has no score column; -1 marks a probability without a label.
        known = (columns >= 0) & (columns < self.view.n_known)
        self.calibrators = fit_calibrators(self.config, scores[known], columns[known])
        self.primary.fit(scores[known], columns[known])

    def answer(
        self,
        X: Floats,
        columns: Ints,
        n: Ints,
        *,
        lacks: str | None = None,
        earlier: AnswerTimeOutputs | None = None,
        experts: ExpertEnsemble | None = None,
    ) -> PredictionBlock:
        """Answer rows in order; a labelled row joins the calibration set after its answer.

        `X`, shape (m, n_features).
        `columns`, shape (m,): class columns of the labels; -1 for a row without a label.
        `n`, shape (m,): examples learned before each row.
        `lacks`: why the window's labels do not support an exact guarantee; None if they do.
        `earlier`: answer-time outputs of the rows that are learned, with delayed labels.
        `experts`: the ensemble that the primary prediction joins, if any.
        """
        rows = self.result.scaling.transform(X)
        model = self.result.model
        odds = None
        if self.recent_ensemble is not None and isinstance(model, CommitteeModel):
            scores, odds = model.member_outputs(rows)
        else:
            scores = model.scores(rows)
        venn = self.calibration.answer(scores, columns)
        primary = self.primary.answer(scores, venn, columns)
        outputs = None
        if self.recent_ensemble is not None and odds is not None:
            given = MemberOutputs(X, rows, odds)
            point, outputs = self.recent_ensemble.answer(given, primary.point, columns, earlier)
            primary = PrimaryAnswers.within(point, venn)
        method, lower, upper, level = self.primary.method, primary.lower, primary.upper, None
        if self._intervals is not None:
            level = self.config.interval_level
            lower, upper = self._intervals.answer(scores, columns, primary.point)
        if experts is not None and self.recent_ensemble is not None:
            method, joining = EXPERTS, RowsToLearn(X, rows, columns, earlier)
            found = experts.answer(joining, primary.point, len(self.recent_ensemble))
            primary = PrimaryAnswers.within(found.point, venn)
            lower, upper = primary.lower, primary.upper
            if found.interval is not None:
                level = self.config.interval_level
                lower, upper = found.interval
            outputs = None if outputs is None else outputs | found.outputs
        guarantee, reason = self.guarantee(lacks)
        return PredictionBlock(
            status="ok",
            classes=self.view.classes,
            n=n,
            label=primary.labels(),
            svm_label=svm_classes(scores),
            point=primary.point,
            lower=lower,
            upper=upper,
            venn_point=venn.point,
            venn_lower=venn.lower,
            venn_upper=venn.upper,
            maps=self._probabilities(rows, scores) | self._stated(X, venn.point),
            map_intervals=self._map_intervals(scores),
            scores=scores,
            category=venn.category,
            category_size=venn.size,
            imputed=self.result.scaling.imputed(X),
            model=self.version,
            calibration=self.calibration_version,
            taxonomy=self.version,
            guarantee=guarantee,
            reason=reason,
            method=method,
            interval_level=level,
            member_outputs=outputs,
        )

    def note_learned(self, codes: Ints) -> None:
        """Count learned examples; code -1 marks an example with a probability."""
        self.learned += len(codes)
        if self.config.learner == "psvm":
            self.has_probabilities |= bool((codes < 0).any())

    def copy(self) -> Self:
        """Return an independent copy; immutable parts are shared."""
        shared = (self.config, self.result, self.view, self.scheme, self.calibrators)
        return deepcopy(self, {id(part): part for part in shared})

    def state(self) -> State:
        """Return everything but the configuration."""
        header = _SCHEMA.header_of(self) | {"labels": list(self.view.labels)}
        arrays: Arrays = {
            "result": as_array(self.result.state()),
            "training_columns": self.training_columns,
        }
        arrays |= nest("set", self.calibration.state())
        arrays |= nest("headline", self.primary.state())
        if self.recent_ensemble is not None:
            arrays |= nest("lately", self.recent_ensemble.state())
        if isinstance(self._intervals, RecentIntervals):
            arrays |= nest("intervals", self._intervals.state())
        for name, fitted in self.calibrators.items():
            arrays |= nest(f"map.{name}", fitted.state())
        return State(header, arrays)

    @classmethod
    def from_state(cls, state: State, config: PredictorConfig) -> Self:
        """Return the active model described by `state`."""
        header, arrays = state
        view = ClassView(header["labels"], config.classes is not None)
        result = RefitResult.from_state(arrays["result"].tobytes(), len(config.members))
        machines, classes = result.calibration_scores.shape[1], len(view.classes)
        checked = StateSchema(
            floats("set.scores", f"n {machines}"), ints("set.codes", "n", below=classes),
            # -1 marks a probability without a label.
            ints("training_columns", f"{len(result.training_scores)}", least=-1, below=classes),
        ).values(cls, None, arrays)  # fmt: skip
        active = cls(config, result, view, 0, np.empty(0, dtype=np.int64))
        active.training_columns = checked["training_columns"]
        _SCHEMA.fill(active, header, {})
        active._set = active.scheme.from_state(under("set", arrays), result.training_scores)
        if isinstance(active._intervals, RecentIntervals):
            active._intervals.restore(under("intervals", arrays))
        active._count_frequencies()
        active.calibrators = calibrators_from_state(under("map", arrays), config, machines)
        active.primary.restore(under("headline", arrays))
        if active.recent_ensemble is not None:
            active.recent_ensemble.restore(under("lately", arrays), result.scaling)
        return active

    def _count_frequencies(self) -> None:
        """Build the intervals of a two-class model from its calibration set, if enabled."""
        is_of_frequencies = self.config.semantics < 6 and self.view.n_known == 2
        if self.config.interval_level is None or not is_of_frequencies:
            return
        self._intervals = FrequencyIntervals(
            self.config.interval_level,
            self.result.training_scores,
            self.calibration.scores,
            self.calibration.codes,
            self.config.window,
        )

    def _probabilities(self, rows: Floats, scores: Floats) -> dict[str, Floats]:
        """Return each published calibrator's probabilities, except for mixed."""
        found = {name: self._by_calibrator(name, rows, scores) for name in self._published}
        if self.view.declared:
            return found
        unseen = np.zeros((len(scores), 1))
        return {name: np.concatenate([known, unseen], axis=1) for name, known in found.items()}

    def _stated(self, X: Floats, otherwise: Floats) -> dict[str, Floats]:
        """Return the probabilities that given scores state; `otherwise` for rows without one."""
        if self._scores is None:
            return {}
        found = self._scores.probabilities(X)
        return {SCORE: np.where(np.isnan(found), otherwise, found)}

    def _by_calibrator(self, name: str, rows: Floats, scores: Floats) -> Floats:
        if name == "implied":
            return implied_probabilities(self.result.banks, rows)
        if name == "psvm":
            return posterior(scores[:, 0], steepness(self.config.eta))
        return self.calibrators[name].predict_unchecked(scores)

    def _map_intervals(self, scores: Floats) -> dict[str, Floats] | None:
        """Return the calibrators' intervals; unseen labels get [0, 1]."""
        names = self._interval_calibrators
        if not names:
            return None
        unseen = np.tile([0.0, 1.0], (len(scores), len(self.view.classes) - self.view.n_known, 1))
        return {
            name: np.concatenate(
                [self._interval_calibrator(name).predict_interval(scores), unseen], axis=1
            )
            for name in names
        }

    def _interval_calibrator(self, name: str) -> OneAgainstAll:
        fitted = self.calibrators[name]
        assert isinstance(fitted, OneAgainstAll)  # a joint calibrator gives only points
        return fitted

    def guarantee(self, lacks: str | None = None) -> tuple[Guarantee, str | None]:
        """Return the guarantee of an answer, and the reason if it is not exact; see `answer`."""
        if self.calibration.reason is not None:
            return "none", self.calibration.reason
        if not self.view.declared:
            return "approximate", "classes are discovered, not declared"
        if self.config.split == "crossfit":
            return "approximate", CROSSFIT
        if self.has_probabilities:
            return "approximate", SELECTED
        if self.config.maturity == "arrival":
            return "approximate", ARRIVAL
        encoder = self.result.scaling.encoder
        if encoder is not None and encoder.has_times:
            return "approximate", TIME
        if encoder is not None and encoder.lacks_names:
            return "approximate", NAMES
        return ("exact", None) if lacks is None else ("approximate", lacks)


def _primary_prediction(config: PredictorConfig, n_known: int) -> PrimaryPrediction:
    """Return an unfitted primary prediction for `n_known` classes."""
    if not config.members:
        return PrimaryPrediction()
    if n_known == 2:
        is_pair = config.taxonomy_of(n_known) == "venn-abers"
        return PairPrediction() if is_pair else PrimaryPrediction()
    # Lazy import: a worker with two classes starts without these kernels.
    from online_svm.predictor.joint_prediction import JointPrediction

    return JointPrediction()


def _first_of_newest(labelled: Bools, limit: int | None) -> int:
    """Return the index of the oldest of the newest `limit` labelled rows, or 0."""
    places = np.flatnonzero(labelled)
    return 0 if limit is None or len(places) <= limit else int(places[-limit])
