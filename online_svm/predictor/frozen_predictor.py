"""FrozenPredictor: a predictor frozen at one n, for processes that only answer."""

from dataclasses import replace
from typing import Any, Self

import numpy as np

from online_svm.config import PredictorConfig
from online_svm.config.semantics import are_equal
from online_svm.errors import InvalidSnapshot
from online_svm.metrics.cost_matrix import CostMatrix
from online_svm.metrics.label_sets import check_threshold, with_sets
from online_svm.metrics.promised_error import NEVER, decided
from online_svm.predictor.active_model import ActiveModel, AnsweringParts
from online_svm.predictor.changed_kinds import ChangedKind, ChangedKinds
from online_svm.predictor.ensemble import Ensemble
from online_svm.predictor.expert_ensemble import ExpertEnsemble
from online_svm.storage.state import State, nest, pack, require, under, unpack
from online_svm.stream.answer_columns import Guarantee
from online_svm.stream.guarantee_reason import GuaranteeReason
from online_svm.stream.prediction import PredictionBlock
from online_svm.stream.schema import FeatureSchema
from online_svm.svm.kernel_model import balanced_weights, given_weights
from online_svm.types import Arrays, Floats

_GUARANTEES = ("exact", "approximate", "none")


class FrozenPredictor:
    """Answers rows as the predictor would answer entries without a label; it cannot learn.

    It contains the active model (with scaling, calibration set, calibrators and primary
    prediction), the ensemble of calibrators, the feature schema, and the guarantee at this n. It
    has no learner, and only the last 1,000 examples, for nearest neighbours (`RecentStacks`).

    `n`: learned examples.
    `schema`: schema of a request: features without labels, times and slices.
    `parts`: what answers.
    `guarantee`: guarantee of every answer and its reason; see `PredictionBlock`.
    `notices`: codes of the open notices, which every answer has.

    Examples
    --------
    >>> from online_svm.predictor.online_predictor import OnlinePredictor
    >>> from online_svm.stream.input_batch import Example
    >>> predictor = OnlinePredictor(PredictorConfig(classes=["no", "yes"], refit_every=10))
    >>> for i in range(30):
    ...     _ = predictor.step(Example([float(i % 2), 1.0], "yes" if i % 2 else "no"))
    >>> state = FrozenPredictor.restore(predictor.frozen().snapshot(), predictor.config)
    >>> answer = state.answer(np.array([[0.0, 1.0]])).row(0)
    >>> answer == predictor.step(Example([0.0, 1.0])), answer.n
    (True, 30)
    """

    def __init__(
        self,
        config: PredictorConfig,
        n: int,
        schema: FeatureSchema,
        parts: AnsweringParts,
        guarantee: tuple[Guarantee, GuaranteeReason | None],
        notices: tuple[str, ...] = (),
    ) -> None:
        self.config, self.n, self.schema = config, n, schema
        self._parts, self._active = parts, parts.active
        self._guarantee, self._reason = guarantee
        self._notices = notices
        self._costs = CostMatrix.of(config)

    @property
    def model(self) -> int:
        """Version of the model that answers; 0 while warming up."""
        return 0 if self._active is None else self._active.version

    @property
    def class_weights(self) -> Floats | None:
        """Class weights by the setting `class_weight`; None if it is not set or no model is active.

        "balanced" uses the labels that the model was trained and calibrated with.
        """
        given, active = self.config.class_weight, self._active
        if given is None or active is None:
            return None
        if given != "balanced":
            return given_weights(given, active.view.classes)
        codes = np.concatenate([active.training_columns, active.calibration.codes])
        return balanced_weights(codes[codes >= 0], len(active.view.classes))

    @property
    def expert_weights(self) -> dict[str, float]:
        """Part of each expert in the probabilities, by name; they sum to one.

        Empty if no ensemble of experts answers.
        """
        experts, active = self._parts.experts, self._active
        answer = active is None or active.for_experts is not None
        return experts.weights if answer and experts.view.n_known else {}

    def changed_kinds(self, X: Floats) -> tuple[ChangedKind, ...]:
        """Return the features that come in another kind in these rows than the model learned."""
        encoder = None if self._active is None else self._active.result.scaling.encoder
        if encoder is None:
            return ()
        kinds = ChangedKinds()
        kinds.add(encoder, X, self.config.n_reserved)
        return kinds.named(self.schema.names)

    def answer(self, X: Floats) -> PredictionBlock:
        """Return the answers to rows that `schema.row` accepted, shape (m, n_features).

        The state is unchanged.
        """
        X, n = np.ascontiguousarray(X), np.full(len(X), self.n, dtype=np.int64)
        unlabelled = np.full(len(X), -1, dtype=np.int64)
        parts, is_mixed = self._parts, self.schema.is_mixed
        block, _ = parts.answer(X, unlabelled, n, is_mixed=is_mixed)
        if self._active is not None:
            block = replace(block, guarantee=self._guarantee, reason=self._reason)
        block = replace(block, notices=self._notices)
        if parts.of_sets is not None:
            block = with_sets(block, np.array([parts.of_sets]))
        if parts.thresholds is not None:
            return decided(block, parts.thresholds)
        return block if self._costs is None else self._costs.decided(block)

    def snapshot(self) -> bytes:
        """Return the state as bytes, without pickle; equal states give equal bytes."""
        header: dict[str, Any] = {
            "config": self.config.model_dump(mode="json"),
            "n": self.n,
            "names": self.schema.names,
            "dimension": self.schema.dimension,
            "guarantee": self._guarantee,
            "reason": None if self._reason is None else self._reason.about,
            "notices": self._notices,
        }
        arrays: Arrays = {}
        if self._parts.thresholds is not None:
            header["thresholds"] = self._parts.thresholds.tolist()
        if self._parts.of_sets is not None:
            header["set_threshold"] = self._parts.of_sets
        if self._parts.mixed is not None:
            arrays |= nest("mixture", self._parts.mixed.state())
        header["experts"], parts = self._parts.experts.state()
        arrays |= nest("experts", parts)
        if self._active is not None:
            header["active"], parts = self._active.state()
            arrays |= nest("active", parts)
        return pack(header, arrays)

    @classmethod
    def restore(cls, data: bytes, config: PredictorConfig) -> Self:
        """Return the state described by the bytes of `snapshot`.

        Raises InvalidSnapshot if the bytes are damaged, or the configuration differs.
        """
        header, arrays = unpack(data)
        if not are_equal(header.get("config"), config.model_dump(mode="json")):
            raise InvalidSnapshot("the published state was made under another configuration")
        try:
            return cls._loaded(header, arrays, config)
        except (AttributeError, LookupError, OverflowError, TypeError, ValueError) as error:
            raise InvalidSnapshot(
                f"the published state lacks or contradicts itself: {error}"
            ) from error

    @classmethod
    def _loaded(cls, header: dict[str, Any], arrays: Arrays, config: PredictorConfig) -> Self:
        n, names, dimension = header["n"], header["names"], header["dimension"]
        require(type(n) is int and n >= 0, "n")
        require(dimension is None or (type(dimension) is int and dimension >= 0), "dimension")
        require(header["guarantee"] in _GUARANTEES, "guarantee")
        about, notices = header["reason"], header["notices"]
        require(isinstance(notices, list) and {str}.issuperset(map(type, notices)), "notices")
        reason = None if about is None else GuaranteeReason.of(about)
        schema = request_schema(config).of_features(
            None if names is None else tuple(names), dimension
        )
        mixed = Ensemble.of_calibrators(config)
        if mixed is not None:
            mixed.restore(under("mixture", arrays))
        active = None
        experts = ExpertEnsemble(config).restore(State(header["experts"], under("experts", arrays)))
        if "active" in header:
            active = ActiveModel.from_state(
                State(header["active"], under("active", arrays)), config
            )
            scaling = active.result.scaling
            encoded = scaling.encoder is not None or len(scaling.mean) == dimension
            require(encoded, "dimension")
        thresholds = None
        require(("thresholds" in header) == (config.promise is not None), "thresholds")
        if "thresholds" in header:
            thresholds = np.array(header["thresholds"], dtype=np.float64)
            require(thresholds.shape in ((1,), (2,)), "thresholds")
            require(bool(((thresholds >= 0.0) & (thresholds <= NEVER)).all()), "thresholds")
        of_sets = header.get("set_threshold")
        require((of_sets is None) == (config.set_coverage is None), "set_threshold")
        if of_sets is not None:
            check_threshold(of_sets)
        parts = AnsweringParts(config, active, mixed, experts, thresholds, of_sets)
        return cls(config, n, schema, parts, (header["guarantee"], reason), tuple(notices))


def request_schema(config: PredictorConfig) -> FeatureSchema:
    """Return the schema of a request: the features without horizon and slices."""
    plain = {"horizon": 0, "slices": ()}
    return FeatureSchema(config.model_copy(update=plain), is_of_requests=True)
