"""The taxonomies by name, and the Venn predictor that each begins."""

from dataclasses import dataclass

from online_svm.errors import InvalidInput
from online_svm.types import Arrays, Floats, Ints
from online_svm.venn.counted_set import CountedSet
from online_svm.venn.growing_venn_abers import AbersSet
from online_svm.venn.protocol import VennSet
from online_svm.venn.rank_predictor import RankedSet
from online_svm.venn.taxonomy import Taxonomy, class_scores, margins

TAXONOMIES = ("class", "class-quantile", "class-rank", "margin", "venn-abers")
_STRENGTHS = {"class-quantile": class_scores, "margin": margins}


@dataclass(frozen=True, slots=True)
class VennScheme:
    """Everything a Venn predictor needs to know but its examples.

    Attributes
    ----------
    taxonomy : {"class", "class-quantile", "class-rank", "margin", "venn-abers"}
        "class" is the SVM's own class. "class-quantile" and "margin" divide it by the score of
        that class and by its lead over the second class, at quantiles of the proper training set;
        "class-rank" by the rank of its score among the calibration set and the example.
        "venn-abers" is isotonic regression with the example in it.
    n_bins : int
        Parts into which the second to fourth divide each class.
    n_known : int
        Classes that have a machine.
    n_classes : int
        Those and the slot of unseen labels, if there is one.
    limit : int or None
        The newest calibration examples that are kept.

    Raises
    ------
    InvalidInput
        If the taxonomy is not known, or there is not at least one bin.

    Examples
    --------
    >>> import numpy as np
    >>> scheme = VennScheme("class-rank", n_bins=2, n_known=2, n_classes=2, limit=None)
    >>> held = scheme.begin(np.empty((0, 1)), np.array([[1.0], [2.0]]), np.array([0, 1]))
    >>> held.answer(np.array([[3.0]]), np.array([-1])).category.tolist()
    [3]
    """

    taxonomy: str
    n_bins: int
    n_known: int
    n_classes: int
    limit: int | None

    def __post_init__(self) -> None:
        if self.taxonomy not in TAXONOMIES:
            known = ", ".join(TAXONOMIES)
            raise InvalidInput(f"taxonomy: {self.taxonomy!r} is unknown; use one of {known}")
        if self.n_bins < 1:
            raise InvalidInput(f"taxonomy_bins: {self.n_bins} is not at least 1")

    @property
    def uses_training(self) -> bool:
        """Whether the taxonomy is taken from the scores of the proper training set."""
        return self.taxonomy in _STRENGTHS

    def from_state(self, state: Arrays, training_scores: Floats) -> VennSet:
        """Return the Venn predictor of this scheme that `state` describes.

        Parameters
        ----------
        state : dict of ndarray
            Of the Venn predictor; "scores" and "codes" suffice.
        training_scores : ndarray of shape (n_training, n_scores)
            As `begin` was given them.
        """
        return self.begin(training_scores, state["scores"], state["codes"])

    def begin(self, training_scores: Floats, scores: Floats, codes: Ints) -> VennSet:
        """Return the Venn predictor over a calibration set.

        Parameters
        ----------
        training_scores : ndarray of shape (n_training, n_scores)
            Scores of the proper training set; not looked at unless `uses_training`.
        scores : ndarray of shape (n, n_scores)
            Scores of the calibration examples in order of arrival.
        codes : ndarray of shape (n,)
            Their label codes.
        """
        if self.taxonomy == "class-rank":
            return RankedSet(self.n_known, self.n_bins, scores, codes, self.n_classes, self.limit)
        if self.taxonomy == "venn-abers":
            return AbersSet(self.n_known, scores, codes, self.n_classes, self.limit)
        strength = _STRENGTHS.get(self.taxonomy)
        n_bins = 1 if strength is None else self.n_bins
        taxonomy = Taxonomy(self.n_known, n_bins, strength, training_scores)
        return CountedSet(taxonomy, scores, codes, self.n_classes, self.limit)
