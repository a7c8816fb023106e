"""List the taxonomies by name, and construct their Venn predictors."""

from dataclasses import dataclass

import numpy as np

from online_svm.compiled.kernel import kernel
from online_svm.errors import InvalidInput
from online_svm.types import Floats, Ints
from online_svm.venn.counted_set import CountedSet, Taxonomy, VennSet, class_scores, margins
from online_svm.venn.growing_venn_abers import AbersSet
from online_svm.venn.rank_predictor import RankedSet

TAXONOMIES = ("class", "class-quantile", "class-rank", "margin", "venn-abers")
_STRENGTHS = {"class-quantile": class_scores, "margin": margins}


@dataclass(frozen=True, slots=True)
class VennScheme:
    """The parameters of a Venn predictor, without its examples.

    The taxonomy "class" is the SVM's own class. "class-quantile" divides each class at quantiles,
    on the proper training set, of the score of the class, and "margin" at quantiles of its lead
    over the second class. "class-rank" divides each class by the rank of the score among the
    calibration set and the example. "venn-abers" is isotonic regression with the example added.

    Raises InvalidInput if the taxonomy is unknown, or `n_bins` is less than one.
    """

    taxonomy: str
    # Number of parts into which "class-quantile", "margin" and "class-rank" divide each class.
    n_bins: int
    n_known: int  # number of classes with a machine
    n_classes: int  # `n_known`, plus one for the slot of unseen labels, if there is one
    limit: int | None  # number of newest calibration examples kept; None keeps all

    def __post_init__(self) -> None:
        if self.taxonomy not in TAXONOMIES:
            known = ", ".join(TAXONOMIES)
            raise InvalidInput(f"taxonomy: {self.taxonomy!r} is unknown; use one of {known}")
        if self.n_bins < 1:
            raise InvalidInput(f"taxonomy_bins: {self.n_bins} is not at least 1")

    @property
    def uses_training(self) -> bool:
        """Whether the taxonomy is computed from the scores of the proper training set."""
        return self.taxonomy in _STRENGTHS

    def begin(self, training_scores: Floats, scores: Floats, codes: Ints) -> VennSet:
        """Return the Venn predictor over a calibration set, in order of arrival.

        The scores of the proper training set, shape (n_training, n_scores), are ignored unless
        `uses_training`.
        """
        if self.taxonomy == "class-rank":
            return RankedSet(self.n_known, self.n_bins, scores, codes, self.n_classes, self.limit)
        if self.taxonomy == "venn-abers":
            return AbersSet(self.n_known, scores, codes, self.n_classes, self.limit)
        strength = _STRENGTHS.get(self.taxonomy)
        n_bins = 1 if strength is None else self.n_bins
        taxonomy = Taxonomy(self.n_known, n_bins, strength, training_scores)
        return CountedSet(taxonomy, scores, codes, self.n_classes, self.limit)


NOT_JOINING = np.array([-1])


class LatestSet:
    """Calibration examples scored by the last refit, and the Venn predictor over them.

    With a refit after every example, each predictor answers a single example. For the taxonomy
    "class" one pass over the calibration set does so without building the predictor. Until it is
    built the arrays are not copied and must not change.
    """

    def __init__(
        self, scheme: VennScheme, training_scores: Floats, scores: Floats, codes: Ints
    ) -> None:
        self._scheme, self._training_scores = scheme, training_scores
        self._scores, self._codes = scores, codes
        self._set: VennSet | None = None

    @property
    def venn(self) -> VennSet:
        """The predictor, built on first use."""
        if self._set is None:
            self._set = self._scheme.begin(self._training_scores, self._scores, self._codes)
        return self._set

    def answer_last(self, scores: Floats, bounds: Floats) -> None:
        """Write the interval of each class, shape (n_classes, 2); the example is not added."""
        if self._set is None and self._scheme.taxonomy == "class":
            _count(self._scores, self._codes, scores[0], bounds)
        else:
            answers = self.venn.answer(scores, NOT_JOINING)
            bounds[:, 0], bounds[:, 1] = answers.lower[0], answers.upper[0]


@kernel
def _count(scores: Floats, codes: Ints, score: Floats, bounds: Floats) -> None:
    """Write the interval of each class in the category of `score` to `bounds`, (n_classes, 2).

    `scores` and `codes`, shapes (n, n_scores) and (n,), are the calibration set.
    """
