"""The Venn predictor of a taxonomy that is fixed given the proper training set."""

import numpy as np
from typing_extensions import override

from online_svm.compiled.jit import jit
from online_svm.stream.tail import Tail
from online_svm.types import Arrays, Floats, Ints
from online_svm.venn.protocol import VennAnswers, VennSet, multiprobabilities
from online_svm.venn.taxonomy import Taxonomy


class CountedSet(VennSet):
    """Counts labels by category (Lambrou et al. 2012, eq. 2).

    Parameters
    ----------
    taxonomy : Taxonomy
    n_classes : int
        Labels there are.
    scores, codes, limit
        As for `VennSet`.

    Attributes
    ----------
    counts : ndarray of int, shape (n_categories, n_classes)
        N_k[y].

    Examples
    --------
    >>> held = CountedSet(Taxonomy(2), np.array([[-1.0], [2.0]]), np.array([0, 1]), 2, None)
    >>> held.answer(np.array([[0.5]]), np.array([1])).lower.tolist()
    [[0.0, 0.5]]
    >>> held.counts.tolist()
    [[1, 0], [0, 2]]
    >>> held.multiprobabilities(np.array([[0.5]]))[0, 1].round(2).tolist()
    [0.0, 1.0]
    """

    def __init__(
        self, taxonomy: Taxonomy, scores: Floats, codes: Ints, n_classes: int, limit: int | None
    ) -> None:
        super().__init__(scores, codes, limit)
        self.taxonomy = taxonomy
        self._categories = Tail(taxonomy.categories(self.scores))
        cells = self._categories.held * n_classes + self.codes
        shape = (taxonomy.n_categories, n_classes)
        self.counts: Ints = np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)

    @override
    def answer(self, scores: Floats, codes: Ints) -> VennAnswers:
        categories = self.taxonomy.categories(scores)
        if (codes < 0).all():
            return VennAnswers.counted(self.counts[categories], categories)
        size = self._join(scores, codes)
        self._categories.append(categories[codes >= 0])
        met = np.empty((len(codes), self.counts.shape[1]), dtype=np.int64)
        gone = _answer(
            categories, codes, size, self._categories.held, self.codes, self._limit,
            self.counts, met,
        )  # fmt: skip
        self._leave(gone)
        self._categories.drop_before(self._categories.first + gone)
        return VennAnswers.counted(met, categories)

    @override
    def multiprobabilities(self, scores: Floats) -> Floats:
        return multiprobabilities(self.counts[self.taxonomy.categories(scores)])

    @override
    def state(self) -> Arrays:
        return super().state() | {"categories": self._categories.held}


@jit
def _answer(
    categories: Ints, codes: Ints, size: int, held_categories: Ints, held_codes: Ints, limit: int,
    counts: Ints, met: Ints,
) -> int:  # fmt: skip
    """Answer and join in turn, `size` examples being held at first; return how many left.

    Those that join follow them in `held_categories` and `held_codes`.
    """
    gone = 0
    for i in range(len(codes)):
        # 1. Answer: the label counts of its category.
        k = categories[i]
        for y in range(counts.shape[1]):
            met[i, y] = counts[k, y]
        if codes[i] < 0:
            continue
        # 2. Join the calibration set.
        counts[k, codes[i]] += 1
        size += 1
        # 3. The oldest leaves where the window is full.
        if limit >= 0 and size - gone > limit:
            counts[held_categories[gone], held_codes[gone]] -= 1
            gone += 1
    return gone
