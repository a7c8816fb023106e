"""Predict by categories that are ranks among the calibration examples and the example itself."""

from typing import NamedTuple

import numpy as np
from typing_extensions import override

from online_svm.compiled.kernel import kernel
from online_svm.types import Floats, Ints
from online_svm.venn.counted_set import (
    VennAnswers,
    VennSet,
    class_scores,
    multiprobabilities,
    svm_classes,
)


class SortedScores(NamedTuple):
    """G lists, each with room for the same number of labelled scores."""

    # shape (G, room): ascending in the first `sizes[g]` places of row g. The order of equal scores
    # does not change an answer.
    scores: Floats
    codes: Ints  # shape (G, room): their label codes
    sizes: Ints  # shape (G,): number of scores in each list


def empty_lists(n_lists: int, room: int) -> SortedScores:
    """Return `n_lists` empty lists."""
    return SortedScores(
        np.zeros((n_lists, room)),
        np.zeros((n_lists, room), dtype=np.int64),
        np.zeros(n_lists, dtype=np.int64),
    )


def fill(lists: SortedScores, g: int, scores: Floats, codes: Ints) -> None:
    """Make list g the sorted form of `scores` and `codes`, each of shape (n,)."""
    order = np.argsort(scores, kind="stable")  # the order of ties is part of the state
    lists.scores[g, : len(scores)] = scores[order]
    lists.codes[g, : len(scores)] = codes[order]
    lists.sizes[g] = len(scores)


def with_room(lists: SortedScores, more: int) -> SortedScores:
    """Return lists with room for `more` scores: the same lists, or larger copies."""
    need = int(lists.sizes.max()) + more
    if need <= lists.scores.shape[1]:
        return lists
    grown = empty_lists(len(lists.sizes), 2 * need + 64)
    for g, size in enumerate(lists.sizes.tolist()):
        grown.scores[g, :size] = lists.scores[g, :size]
        grown.codes[g, :size] = lists.codes[g, :size]
    grown.sizes[:] = lists.sizes
    return grown


class RankedSet(VennSet):
    """Categories are the SVM's own class and the rank of its score among the N + 1 scores.

    The calibration examples of the same class, together with the example, are sorted by their score
    for that class and divided into `n_bins` bins of about equal count; examples with equal scores
    share the bin of the middle one. The category is a permutation-invariant function of the
    calibration set with the example, and does not depend on the assumed label. The guarantee of
    Venn prediction therefore holds although the bins change with every example. The first `n_known`
    classes have a machine.
    """

    def __init__(
        self,
        n_known: int,
        n_bins: int,
        scores: Floats,
        codes: Ints,
        n_classes: int,
        limit: int | None,
    ) -> None:
        super().__init__(scores, codes, limit)
        self._n_bins, self._n_classes = n_bins, n_classes
        self._lists = empty_lists(n_known, len(self.codes))
        own, strengths = svm_classes(self.scores), class_scores(self.scores)
        for k in range(n_known):
            fill(self._lists, k, strengths[own == k], self.codes[own == k])

    @override
    def answer(self, scores: Floats, codes: Ints) -> VennAnswers:
        return VennAnswers.counted(*self._process(scores, codes))

    @override
    def multiprobabilities(self, scores: Floats) -> Floats:
        label_counts, _ = self._process(scores, np.full(len(scores), -1))
        return multiprobabilities(label_counts)

    def _process(self, scores: Floats, codes: Ints) -> tuple[Ints, Ints]:
        """Answer and add rows in turn; return the label counts of their categories, and these."""
        size = self._join(scores, codes)
        joining = len(self.codes) - size
        self._lists = with_room(self._lists, joining)
        label_counts = np.zeros((len(codes), self._n_classes), dtype=np.int64)
        categories = np.empty(len(codes), dtype=np.int64)
        oldest = self.scores[:joining]  # at most as many leave as are added
        rows = svm_classes(scores), class_scores(scores), codes
        held = svm_classes(oldest), class_scores(oldest), self.codes, size, self._limit
        gone = _answer(rows, held, self._lists, self._n_bins, label_counts, categories)
        self._leave(gone)
        return label_counts, categories


@kernel
def _answer(
    rows: tuple[Ints, Floats, Ints],
    held: tuple[Ints, Floats, Ints, int, int],
    lists: SortedScores,
    n_bins: int,
    label_counts: Ints,
    categories: Ints,
) -> int:
    """Answer and add rows in turn; return how many of the held examples left.

    `rows` are the SVM's own class, its score and the label code of each row. `held` are own classes
    and scores of the examples that can leave, the label codes of the held and then of the added
    examples, the number of held ones, and the limit. `label_counts`, shape (m, n_classes), must be
    0.
    """
