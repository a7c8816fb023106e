"""ActiveModel: the model of one refit with its calibration set, counts and calibrators.

`AnsweringParts` answers with it, with the experts, and before there is a model.
"""

from typing import NamedTuple, Self

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
from online_svm.predictor.ensemble import Ensemble
from online_svm.predictor.expert import RowsToLearn
from online_svm.predictor.expert_ensemble import EXPERTS_METHOD, ExpertEnsemble, FittedModel
from online_svm.predictor.pair_prediction import PairPrediction, PrimaryPrediction
from online_svm.predictor.pending_examples import AnswerTimeOutputs
from online_svm.predictor.recent_interval import RecentIntervals
from online_svm.predictor.recent_stacks import STACKS, MemberOutputs, RecentStacks
from online_svm.refit.committee.stack import CommitteeModel
from online_svm.refit.task import RefitResult
from online_svm.storage.state import State, as_array, require
from online_svm.storage.state_schema import (
    StateSchema,
    Stored,
    bytes_of,
    flag,
    floats,
    ints,
    number,
    part,
    record,
    texts,
)
from online_svm.stream.answer_columns import Guarantee
from online_svm.stream.guarantee_reason import GuaranteeReason
from online_svm.stream.labels import ClassView, LabelIndex
from online_svm.stream.prediction import PredictionBlock
from online_svm.stream.scores import ScoreColumns
from online_svm.svm.probability_tube import posterior, steepness
from online_svm.types import Bools, Bytes, Floats, Ints
from online_svm.venn.counted_set import VennSet, svm_classes
from online_svm.venn.scheme import VennScheme

TAXONOMY_BINS = 4
"""Bins of each class in the taxonomy class-rank of a feed."""

# Conditional on which examples have labels, the labelled ones are still i.i.d. and independent of
# T, so the theorem holds for them under any labelling rule. But the answered example may get a
# probability instead, and such examples may differ.
_MADE_FROM = (texts("_labels", is_given=True), bytes_of("_result", "n", is_given=True))


VENN = "venn"
"""Source of the answers of a model without experts."""


class CalibrationExamples(NamedTuple):
    """The calibration set, as it is stored."""

    scores: Floats
    codes: Ints


class ActiveModel(Stored):
    """Answers examples and adds the labelled ones to its calibration set.

    `view`: the classes known at the freeze.
    `version`: number of models so far.
    `training_codes`, shape (n_training,): label codes of the proper training set.
    """

    _stored = StateSchema(
        *_MADE_FROM, number("version"), number("calibration_version"), number("learned"),
        flag("has_probabilities"),
        # -1 marks a probability without a label
        ints("training_columns", "t", least=-1, below="._n_columns"),
        floats("_examples.scores", "n ._n_scores", stored_as="set.scores"),
        ints("_examples.codes", "n", below="._n_columns", stored_as="set.codes"),
        part("_intervals"),
        record("calibrators", stored_as="map", of="_restored_calibrators"),
        part("primary", stored_as="headline"), part("stacks", stored_as="lately"),
    )  # fmt: skip

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
        self.stacks: RecentStacks | None = None
        if self.primary.outputs:
            self.stacks = RecentStacks(
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
        self._intervals: RecentIntervals | None = None  # of a model without experts
        if config.interval_level is not None and self.stacks is None:
            self._intervals = RecentIntervals(
                config.interval_level, view, is_delayed=config.takes_delayed_labels
            )

    @property
    def for_experts(self) -> FittedModel | None:
        """What the expert ensemble needs; None if only the Venn predictor answers."""
        if self.stacks is None:
            return None
        return FittedModel(self.version, self.result.scaling, self.stacks)

    @property
    def calibration(self) -> VennSet:
        """The calibration set; `calibrate` or `from_state` creates it."""
        assert self._set is not None
        return self._set

    def follow(self, before: "ActiveModel") -> None:
        """Carry over the state that spans models from the previous model."""
        self.primary.follow(before.primary)
        if self.stacks is not None and before.stacks is not None:
            self.stacks.follow(before.stacks, self.result.scaling)
        if self._intervals is not None and before._intervals is not None:
            self._intervals.follow(before._intervals)

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
        self.refit_calibrators(calibration_version)

    def refit_calibrators(self, calibration_version: int) -> None:
        """Fit calibrators and primary prediction on the calibration set."""
        self.calibration_version = calibration_version
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
        lacks: GuaranteeReason | None = None,
        at_answer: AnswerTimeOutputs | None = None,
        experts: ExpertEnsemble,
    ) -> PredictionBlock:
        """Answer rows in order; a labelled row joins the calibration set after its answer.

        `X`, shape (m, n_features).
        `columns`, shape (m,): class columns of the labels; -1 for a row without a label.
        `n`, shape (m,): examples learned before each row.
        `lacks`: why the window's labels do not support an exact guarantee; None if they do.
        `earlier`: answer-time outputs of the rows that are learned, with delayed labels.
        `experts`: the ensemble that the primary prediction of a committee joins.
        """
        rows = self.result.scaling.transform(X)
        model = self.result.model
        odds = None
        if self.stacks is not None and isinstance(model, CommitteeModel):
            scores, odds = model.member_outputs(rows)
        else:
            scores = model.scores(rows)
        venn = self.calibration.answer(scores, columns)
        method, point, outputs = VENN, venn.point, None
        interval = None
        if self._intervals is not None:
            interval = self._intervals.answer(columns, point)
        if self.stacks is not None and odds is not None:
            primary = self.primary.answer(scores, venn, columns)
            parts, outputs = self.stacks.answer(
                MemberOutputs(X, rows, odds), primary[0], columns, at_answer
            )
            names = (*self.primary.outputs, *STACKS)
            of_model = dict(zip(names, (*primary, *parts), strict=True))
            joining = RowsToLearn(X, rows, columns, at_answer, of_model)
            found = experts.answer(joining, len(self.stacks))
            method, point, interval = EXPERTS_METHOD, found.point, found.interval
            outputs |= found.outputs
        if interval is None:
            lower, upper = np.minimum(venn.lower, point), np.maximum(venn.upper, point)
        else:
            lower, upper = interval
        guarantee, reason = self.guarantee(lacks)
        return PredictionBlock(
            status="ok",
            classes=self.view.classes,
            n=n,
            label=point.argmax(axis=1).astype(np.int64, copy=False),
            svm_label=svm_classes(scores),
            point=point,
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
            interval_level=None if interval is None else self.config.interval_level,
            member_outputs=outputs or None,
        )

    def note_learned(self, codes: Ints) -> None:
        """Count learned examples; code -1 marks an example with a probability."""
        self.learned += len(codes)
        if self.config.learner == "psvm":
            self.has_probabilities |= bool((codes < 0).any())

    @property
    def immutable(self) -> list[object]:
        """Parts that answering does not change."""
        return [self.config, self.result, self.view, self.scheme, self.calibrators]

    @property
    def _labels(self) -> list[str]:
        return list(self.view.labels)

    @property
    def _result(self) -> Bytes:
        return as_array(self.result.state())

    @classmethod
    def from_state(cls, state: State, config: PredictorConfig) -> Self:
        """Return the active model described by `state`."""
        made = StateSchema(*_MADE_FROM).values(cls, *state)
        view = ClassView(made["_labels"], config.classes is not None)
        result = RefitResult.from_state(made["_result"].tobytes(), len(config.members))
        return cls(config, result, view, 0, np.empty(0, dtype=np.int64)).restore(state)

    @property
    def _examples(self) -> CalibrationExamples:
        if self._set is None:  # it is about to be restored
            return CalibrationExamples(np.empty((0, 0)), np.empty(0, dtype=np.int64))
        return CalibrationExamples(self._set.scores, self._set.codes)

    @_examples.setter
    def _examples(self, held: CalibrationExamples) -> None:
        self._set = self.scheme.begin(self.result.training_scores, held.scores, held.codes)

    def _restored_calibrators(self, state: State) -> dict[str, Calibrator]:
        return calibrators_from_state(state.arrays, self.config, self._n_scores)

    @property
    def _n_scores(self) -> int:
        return len(self.result.calibration_scores.T)

    @property
    def _n_columns(self) -> int:
        return len(self.view.classes)

    def _on_restored(self) -> None:
        n_training = len(self.result.training_scores)
        require(len(self.training_columns) == n_training, "training_columns")
        if self.stacks:
            self.stacks.scale(self.result.scaling)

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
            return posterior(scores[:, 0], steepness(self.config.tube_half_height))
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

    def guarantee(
        self, lacks: GuaranteeReason | None = None
    ) -> tuple[Guarantee, GuaranteeReason | None]:
        """Return the guarantee of an answer, and the reason if it is not exact; see `answer`."""
        if not self.calibration.is_multiprobability:
            return "none", GuaranteeReason("venn_abers_of_many")
        if not self.view.declared:
            return "approximate", GuaranteeReason("classes_discovered")
        if self.has_probabilities:
            return "approximate", GuaranteeReason("probabilities")
        if self.config.maturity == "arrival":
            return "approximate", GuaranteeReason("arrival")
        if self.config.score_role in ("alone", "member") and self.config.score_model != "fixed":
            return "approximate", GuaranteeReason("score_model")
        encoder = self.result.scaling.encoder
        if encoder is not None and encoder.has_times:
            return "approximate", GuaranteeReason("time")
        if encoder is not None and encoder.lacks_names:
            return "approximate", GuaranteeReason("names")
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


WARMING = GuaranteeReason("warming")


def warming_block(
    declared: tuple[str | None, ...] | None,
    n: Ints,
    *,
    map_intervals: bool = False,
    imputed: int = -1,
) -> PredictionBlock:
    """Return a block without labels, for answers before a proper training set had two classes.

    Its classes are the declared ones, or only the slot of unseen labels. `map_intervals` states
    whether a published calibrator gives intervals; `imputed` is 0 if features have kinds, else -1.
    """
    m = len(n)
    return PredictionBlock(
        status="warming",
        classes=(None,) if declared is None else declared,
        n=n,
        label=np.full(m, -1),
        svm_label=np.full(m, -1),
        point=np.empty((m, 0)),
        lower=np.empty((m, 0)),
        upper=np.empty((m, 0)),
        venn_point=np.empty((m, 0)),
        venn_lower=np.empty((m, 0)),
        venn_upper=np.empty((m, 0)),
        maps={},
        map_intervals={} if map_intervals else None,
        scores=np.empty((m, 0)),
        category=np.full(m, -1),
        category_size=np.zeros(m, dtype=np.int64),
        imputed=np.full(m, imputed),
        model=0,
        calibration=0,
        taxonomy=0,
        guarantee="none",
        reason=WARMING,
        method=None,
        interval_level=None,
    )


class AnsweringParts(NamedTuple):
    """The parts of a predictor that answer."""

    config: PredictorConfig
    active: ActiveModel | None  # None while warming up
    mixed: Ensemble | None  # None without the map "mixed"
    experts: ExpertEnsemble
    thresholds: Floats | None = None  # shape (n_groups,); those that decide, with `promise`
    of_sets: float | None = None  # threshold of the sets, with `set_coverage`

    def answer(
        self,
        X: Floats,
        codes: Ints,
        n: Ints,
        *,
        is_mixed: bool,
        lacks: GuaranteeReason | None = None,
        at_answer: AnswerTimeOutputs | None = None,
    ) -> tuple[PredictionBlock, Ints]:
        """Return answers to rows in order, and the class columns that were learned after each.

        `codes`, shape (m,): label codes; -1 for a row that is not learned.
        `n`, shape (m,): examples learned before each row.
        `is_mixed`: whether features have kinds.
        `lacks`, `earlier`: see `ActiveModel.answer`.
        """
        config, active, experts = self.config, self.active, self.experts
        if active is None:
            declared = None if config.classes is None else LabelIndex(config.classes).view().classes
            block = warming_block(
                declared,
                n,
                map_intervals=bool(interval_calibrators(config)),
                imputed=0 if is_mixed else -1,
            )
            joining = RowsToLearn(X, None, experts.view.columns(codes), at_answer)
            return experts.added_to(block, joining), codes
        columns = active.view.columns(codes)
        block = active.answer(X, columns, n, lacks=lacks, at_answer=at_answer, experts=experts)
        if self.mixed is not None:
            block = self.mixed.added_to(block, columns)
        return block, columns
