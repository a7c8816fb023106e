"""AnsweringState: what a predictor answers with at one n, saved for processes that only answer."""

from dataclasses import replace
from typing import Any, Self

import numpy as np

from online_svm.config import PredictorConfig
from online_svm.config.semantics import are_equal
from online_svm.errors import InvalidSnapshot
from online_svm.metrics.cost_matrix import CostMatrix
from online_svm.predictor.active_model import ActiveModel
from online_svm.predictor.mixture import SHARE, Mixture
from online_svm.predictor.published_maps import interval_maps
from online_svm.predictor.warm_up import warming_block
from online_svm.storage.arrays import nest, require, under
from online_svm.storage.container import pack, unpack
from online_svm.storage.state import State
from online_svm.stream.answer_columns import Guarantee
from online_svm.stream.labels import LabelIndex
from online_svm.stream.prediction import PredictionBlock
from online_svm.stream.schema import FeatureSchema
from online_svm.svm.hyperparameters import balanced_weights, given_weights
from online_svm.types import Arrays, Floats

_GUARANTEES = ("exact", "approximate", "none")


class AnsweringState:
    """Answers rows as the predictor would answer entries without a label; it cannot learn.

    It holds the active model with its scaling, calibration set, maps and headline, the mixture, the
    features, and the guarantee that an answer has at this n. It holds no learner, and of examples
    the last 1,000, among which neighbours are looked for (see `Lately`).

    Parameters
    ----------
    config : PredictorConfig
    n : int
        Learned examples.
    schema : FeatureSchema
        Of rows to answer: the features of the stream, without labels, times and slices.
    active : ActiveModel or None
        None while warming up.
    mixture : Mixture or None
    guarantee : tuple of (Guarantee, str or None)
        Of every answer, with the reason; see `PredictionBlock`.

    Examples
    --------
    >>> from online_svm.predictor.online_predictor import OnlinePredictor
    >>> from online_svm.stream.input_batch import Example
    >>> predictor = OnlinePredictor(PredictorConfig(classes=["no", "yes"], refit_every=10))
    >>> for i in range(30):
    ...     _ = predictor.step(Example([float(i % 2), 1.0], "yes" if i % 2 else "no"))
    >>> state = AnsweringState.restore(predictor.answering(), predictor.config)
    >>> answer = state.answer(np.array([[0.0, 1.0]])).row(0)
    >>> answer == predictor.step(Example([0.0, 1.0])), answer.n
    (True, 30)
    """

    def __init__(
        self,
        config: PredictorConfig,
        n: int,
        schema: FeatureSchema,
        active: ActiveModel | None,
        mixture: Mixture | None,
        guarantee: tuple[Guarantee, str | None],
    ) -> None:
        self.config, self.n, self.schema = config, n, schema
        self._active, self._mixture = active, mixture
        self._guarantee, self._reason = guarantee
        self._costs = CostMatrix.of(config)

    @property
    def model(self) -> int:
        """Version of the model that answers; 0 while warming up."""
        return 0 if self._active is None else self._active.version

    @property
    def class_weights(self) -> Floats | None:
        """Weight of each class by the setting `class_weight`; None where it is not set.

        "balanced" goes by the labels that the model was trained and calibrated with; while there is
        no model all are 1.
        """
        given, active = self.config.class_weight, self._active
        if given is None or active is None:
            return None
        if given != "balanced":
            return given_weights(given, active.view.classes)
        codes = np.concatenate([active.training_columns, active.calibration.codes])
        return balanced_weights(codes[codes >= 0], len(active.view.classes))

    def answer(self, X: Floats) -> PredictionBlock:
        """Return the answers to rows that `schema.row` accepted; nothing changes.

        Parameters
        ----------
        X : ndarray of shape (m, n_features)
        """
        n = np.full(len(X), self.n, dtype=np.int64)
        if self._active is None:
            declared = self.config.classes
            classes = None if declared is None else LabelIndex(declared).view().classes
            imputed = 0 if self.schema.is_mixed else -1
            return warming_block(
                classes, n, map_intervals=bool(interval_maps(self.config)), imputed=imputed
            )
        unlabelled = np.full(len(X), -1, dtype=np.int64)
        block = self._active.answer(X, unlabelled, n)
        if self._mixture is not None:
            block = self._mixture.added_to(block, unlabelled)
        block = replace(block, guarantee=self._guarantee, reason=self._reason)
        return block if self._costs is None else self._costs.decided(block)

    def snapshot(self) -> bytes:
        """Return the state as bytes, without pickle; equal states give equal bytes."""
        header: dict[str, Any] = {
            "config": self.config.model_dump(mode="json"),
            "n": self.n,
            "names": self.schema.names,
            "dimension": self.schema.dimension,
            "first": self.schema.first,
            "guarantee": self._guarantee,
            "reason": self._reason,
        }
        arrays: Arrays = {}
        if self._mixture is not None:
            arrays |= nest("mixture", self._mixture.state())
        if self._active is not None:
            header["active"], parts = self._active.state()
            arrays |= nest("active", parts)
        return pack(header, arrays)

    @classmethod
    def restore(cls, data: bytes, config: PredictorConfig) -> Self:
        """Return the state that `snapshot` described.

        Raises
        ------
        InvalidSnapshot
            If the bytes are damaged, or of another configuration.
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
        first = header.get("first")  # states of before have none
        require(type(n) is int and n >= 0, "n")
        require(dimension is None or (type(dimension) is int and dimension >= 0), "dimension")
        require(first is None or (type(first) is int and first >= 0), "first")
        require(header["guarantee"] in _GUARANTEES, "guarantee")
        require(isinstance(header["reason"], str | None), "reason")
        schema = request_schema(config).of_features(
            None if names is None else tuple(names), dimension, first
        )
        mixture = Mixture.of(config)
        if mixture is not None:
            logs = under("mixture", arrays)
            mixture = Mixture.from_state(logs, len(config.published), SHARE)
        active = None
        if "active" in header:
            active = ActiveModel.from_state(
                State(header["active"], under("active", arrays)), config
            )
            scaling = active.result.scaling
            coded = scaling.coding is not None or len(scaling.mean) == dimension
            require(coded, "dimension")
        return cls(config, n, schema, active, mixture, (header["guarantee"], header["reason"]))


def request_schema(config: PredictorConfig) -> FeatureSchema:
    """Return what a request looks like: features alone, whatever else an example of the feed has.

    Examples
    --------
    >>> request_schema(PredictorConfig(horizon="1s")).counts_time
    False
    """
    plain = {"horizon": 0, "slices": ()}
    return FeatureSchema(config.model_copy(update=plain), is_of_requests=True)
