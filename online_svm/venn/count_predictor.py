"""The Venn predictor of a taxonomy that is fixed given the proper training set."""

from typing_extensions import override

from online_svm.types import Arrays, Floats, Ints
from online_svm.venn.calibration_set import CalibrationSet
from online_svm.venn.multiprobability import multiprobabilities
from online_svm.venn.protocol import VennAnswers, VennSet
from online_svm.venn.taxonomy import Taxonomy


class CountedSet(VennSet):
    """Counts labels by category (Lambrou et al. 2012, eq. 2).

    Parameters
    ----------
    taxonomy : Taxonomy
    scores : ndarray of shape (n, n_scores)
        Of the calibration examples, in order of arrival.
    codes : ndarray of shape (n,)
        Their label codes.
    n_classes : int
        Labels there are.
    limit : int, optional
        The newest examples that are kept; all without it.

    Examples
    --------
    >>> from online_svm.venn.taxonomy import ClassTaxonomy
    >>> import numpy as np
    >>> held = CountedSet(ClassTaxonomy(2), np.array([[-1.0], [2.0]]), np.array([0, 1]), 2, None)
    >>> held.answer(np.array([[0.5]]), np.array([1])).lower.tolist()
    [[0.0, 0.5]]
    >>> held.multiprobabilities(np.array([[0.5]]))[0, 1].round(2).tolist()
    [0.0, 1.0]
    """

    reason = None

    def __init__(
        self, taxonomy: Taxonomy, scores: Floats, codes: Ints, n_classes: int, limit: int | None
    ) -> None:
        self.taxonomy = taxonomy
        shape = (taxonomy.n_categories, n_classes)
        self._held = CalibrationSet(scores, taxonomy.categories(scores), codes, shape, limit)

    @property
    @override
    def scores(self) -> Floats:
        return self._held.scores

    @property
    @override
    def codes(self) -> Ints:
        return self._held.codes

    @property
    def counts(self) -> Ints:
        """N_k[y], shape (n_categories, n_classes)."""
        return self._held.counts

    @override
    def answer(self, scores: Floats, codes: Ints) -> VennAnswers:
        categories = self.taxonomy.categories(scores)
        return VennAnswers.counted(self._held.answer(scores, categories, codes), categories)

    @override
    def multiprobabilities(self, scores: Floats) -> Floats:
        return multiprobabilities(self.counts[self.taxonomy.categories(scores)])

    @override
    def state(self) -> Arrays:
        return self._held.state()
