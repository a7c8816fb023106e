"""Combine the masses of several classifiers and recalibrate the result (Xu et al. 2016).

Dempster's rule treats its sources as independent evidence. Classifiers that learned from the same
labels are not independent: shared evidence is counted more than once, and the combined belief is
too extreme. The decision remains usable, but the probability is recalibrated on combined scores
with known labels. The results carry no guarantee.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field, model_validator

from online_svm.calibration.evidential.masses import belief_plausibility, combine, pignistic
from online_svm.calibration.isotonic import IsotonicMap
from online_svm.calibration.platt import PlattScaling
from online_svm.calibration.score_map import ScoreMap
from online_svm.config import check_semantics
from online_svm.config.groups import Label, Settings
from online_svm.config.semantics import SEMANTICS, are_equal
from online_svm.errors import InvalidInput, InvalidSnapshot
from online_svm.storage.container import pack, unpack
from online_svm.storage.state import nest, under
from online_svm.stream.labels import sorted_labels
from online_svm.types import Arrays, Bools, Floats

FIRST_RECALIBRATION_LABELS = 10
"""Labels before the first recalibration. Later ones come at doublings, then on schedule."""


class CombinerConfig(Settings):
    """Settings of `Combiner`. Two equal configurations give equal answers, byte for byte."""

    classes: tuple[Label, Label] = Field(description="The two labels; the last is the positive.")
    rule: Literal["dempster", "cautious"] = Field(
        "dempster", description="Dempster's rule, or the cautious one for overlapping evidence."
    )
    recalibration: Literal["platt", "isotonic"] = Field(
        "platt", description="Map from the combined log odds to the probability."
    )
    recalibrate_every: int = Field(100, ge=1, description="Labels between two recalibrations.")
    window: int = Field(2000, ge=10, description="Labels that the recalibration is fitted on.")
    semantics: int = Field(
        SEMANTICS, description="How answers are computed; see `PredictorConfig`."
    )

    @model_validator(mode="before")
    @classmethod
    def _in_order(cls, given: object) -> object:
        """Sort the classes, so that sources that name them in another order agree."""
        if isinstance(given, dict) and isinstance(given.get("classes"), list | tuple):
            return given | {"classes": sorted_labels(given["classes"])}
        return given

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        check_semantics(self.semantics)
        if self.classes[0] == self.classes[1]:
            raise ValueError("classes: a label is declared twice")
        return self


@dataclass(frozen=True, slots=True)
class CombinedPrediction:
    """The combined prediction of all sources for one example, before its label is learned."""

    mass: tuple[float, float, float]  # combined m({1}), m({0}) and m({0, 1}); 1 is the last class
    belief: float  # lower bound for the last class
    plausibility: float  # upper bound for the last class
    pignistic: float  # probability of the last class if ignorance is shared equally
    score: float  # log odds of the plausibilities, the input of the recalibration
    probability: float  # recalibrated, of the last class; pignistic until both labels were seen
    decision: str  # the more plausible class; the first class on a tie
    n: int  # labels learned before
    fitted_on: int  # labels used by the recalibration; 0 before the first
    calibration: int  # version of the recalibration


class Combiner:
    """Combines masses example by example: predict first, then learn the label if there is one.

    The recalibration is fitted on the newest `window` combined scores with labels, at 10, 20, 40...
    labels and at each multiple of `recalibrate_every`, once both classes are among them.

    Attributes
    ----------
    n : int
        Labels learned.

    References
    ----------
    P. Xu, F. Davoine, H. Zha, T. Denoeux (2016), Evidential calibration of binary SVM classifiers.

    Examples
    --------
    >>> combiner = Combiner(CombinerConfig(classes=("a", "b")))
    >>> two = [[0.5, 0.0, 0.5], [0.5, 0.0, 0.5]]
    >>> answer = combiner.step(two, label="b")
    >>> answer.belief, answer.plausibility, answer.decision, combiner.n
    (0.75, 1.0, 'b', 1)
    """

    def __init__(self, config: CombinerConfig) -> None:
        self.config = config
        self.n = 0
        self._scores: list[float] = []
        self._positive: list[bool] = []
        self._map: ScoreMap | None = None
        self._fitted_on = self._calibration = 0

    def step(self, masses: ArrayLike, label: str | None = None) -> CombinedPrediction:
        """Combine the masses of one example, shape (n_sources, 3), and learn its label.

        Raises InvalidInput if a row is not a mass function, or the label is neither of the two
        classes.
        """
        return self.step_many(np.asarray(masses, dtype=np.float64)[:, None, :], [label])[0]

    def step_many(
        self, masses: ArrayLike, labels: Sequence[str | None]
    ) -> list[CombinedPrediction]:
        """Combine the masses of n examples, in order; equal to n calls of `step`.

        Parameters
        ----------
        masses : array-like of shape (n_sources, n, 3)

        Raises
        ------
        InvalidInput
            As in `step`; no example was learned then.
        """
        for label in labels:
            if label is not None and label not in self.config.classes:
                raise InvalidInput(f"label: {label[:40]!r} is not one of {self.config.classes}")
        combined, scores = combine(masses, self.config.rule)
        if len(scores) != len(labels):
            raise InvalidInput(f"masses: {len(scores)} examples, but {len(labels)} labels")
        bounds, shared = belief_plausibility(combined), pignistic(combined)
        answers = []
        for i, label in enumerate(labels):
            score = float(scores[i])
            answers.append(self._answer(combined[i], bounds[i], float(shared[i]), score))
            if label is not None:
                self._learn(score, label == self.config.classes[1])
        return answers

    def snapshot(self) -> bytes:
        """Return the state; equal states give equal bytes."""
        header = {
            "config": self.config.model_dump(mode="json"),
            "n": self.n,
            "fitted_on": self._fitted_on,
            "calibration": self._calibration,
        }
        arrays: Arrays = {
            "scores": np.array(self._scores, dtype=np.float64),
            "positive": np.array(self._positive, dtype=np.bool_),
        }
        if self._map is not None:
            arrays |= nest("map", self._map.state())
        return pack(header, arrays)

    def restore(self, data: bytes) -> None:
        """Continue from a snapshot.

        Raises InvalidSnapshot if the bytes are damaged or the configuration differs; the state is
        unchanged then.
        """
        header, arrays = unpack(data)
        try:
            counters = [int(header[name]) for name in ("n", "fitted_on", "calibration")]
            stored = header["config"]
            scores, positive = arrays["scores"], arrays["positive"]
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidSnapshot(f"the snapshot of a combination lacks {error}") from error
        if not are_equal(stored, self.config.model_dump(mode="json")):
            raise InvalidSnapshot("the snapshot is of a combination with another configuration")
        _check_learned(scores, positive)
        fitted = _maker(self.config).from_state(under("map", arrays)) if counters[1] else None
        self.n, self._fitted_on, self._calibration = counters
        self._scores, self._positive, self._map = scores.tolist(), positive.tolist(), fitted

    def _answer(
        self, mass: Floats, bounds: Floats, shared: float, score: float
    ) -> CombinedPrediction:
        m1, m0, both = mass.tolist()
        belief, plausibility = bounds.tolist()
        probability = shared if self._map is None else float(self._map.predict([score])[0])
        return CombinedPrediction(
            mass=(m1, m0, both),
            belief=belief,
            plausibility=plausibility,
            pignistic=shared,
            score=score,
            probability=probability,
            decision=self.config.classes[int(score > 0.0)],
            n=self.n,
            fitted_on=self._fitted_on,
            calibration=self._calibration,
        )

    def _learn(self, score: float, positive: bool) -> None:
        self.n += 1
        self._scores.append(score)
        self._positive.append(positive)
        if len(self._scores) > self.config.window:
            del self._scores[0], self._positive[0]
        if self._is_due() and 0 < sum(self._positive) < len(self._positive):
            self._map = _maker(self.config)().fit(self._scores, self._positive)
            self._fitted_on = len(self._scores)
            self._calibration += 1

    def _is_due(self) -> bool:
        every = self.config.recalibrate_every
        if self.n >= every:
            return self.n % every == 0
        doublings = self.n // FIRST_RECALIBRATION_LABELS
        return self.n % FIRST_RECALIBRATION_LABELS == 0 and doublings.bit_count() == 1


def _maker(config: CombinerConfig) -> type[PlattScaling] | type[IsotonicMap]:
    return PlattScaling if config.recalibration == "platt" else IsotonicMap


def _check_learned(scores: Floats, positive: Bools) -> None:
    shaped = scores.dtype == np.float64 and positive.dtype == np.bool_ and scores.ndim == 1
    if not shaped or scores.shape != positive.shape or not np.isfinite(scores).all():
        raise InvalidSnapshot("the snapshot of a combination holds no scores with their labels")
