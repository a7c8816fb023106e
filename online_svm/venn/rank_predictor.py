"""The Venn predictor whose categories are ranks among the calibration set and the example."""

import numpy as np
from typing_extensions import override

from online_svm.compiled.jit import jit
from online_svm.types import Floats, Ints
from online_svm.venn.protocol import VennAnswers, VennSet, multiprobabilities
from online_svm.venn.sorted_scores import (
    SortedScores,
    empty_lists,
    fill,
    insert,
    place,
    remove,
    with_room,
)
from online_svm.venn.taxonomy import class_scores, svm_classes


class RankedSet(VennSet):
    """The SVM's own class, and within it the rank of the class's score among the N + 1 there are.

    The calibration examples of the example's own class and the example itself are sorted by their
    score for that class and cut into `n_bins` bins of about equal count; examples with equal
    scores share the bin of the middle one. The category is a permutation-invariant function of the
    calibration multiset with the example in it, and does not depend on the assumed label, so the
    guarantee of Venn prediction holds although the bins move with every example.

    Parameters
    ----------
    n_known : int
        Classes that have a machine.
    n_bins : int
        Bins a class.
    scores, codes, n_classes, limit
        As for `CountedSet`.

    Examples
    --------
    >>> scores, codes = np.array([[1.0], [2.0], [3.0]]), np.array([0, 1, 1])
    >>> answers = RankedSet(2, 2, scores, codes, 2, None).answer(np.array([[9.0]]), np.array([-1]))
    >>> answers.category.tolist(), answers.size.tolist(), answers.lower.tolist()
    ([3], [1], [[0.0, 0.5]])
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
        return VennAnswers.counted(*self._meet(scores, codes))

    @override
    def multiprobabilities(self, scores: Floats) -> Floats:
        met, _ = self._meet(scores, np.full(len(scores), -1))
        return multiprobabilities(met)

    def _meet(self, scores: Floats, codes: Ints) -> tuple[Ints, Ints]:
        """Return the label counts of each row's category in turn, and the categories."""
        size = self._join(scores, codes)
        joining = len(self.codes) - size
        self._lists = with_room(self._lists, joining)
        met = np.zeros((len(codes), self._n_classes), dtype=np.int64)
        categories = np.empty(len(codes), dtype=np.int64)
        oldest = self.scores[:joining]  # no more than join can leave
        gone = _answer(
            svm_classes(scores), class_scores(scores), codes, size,
            svm_classes(oldest), class_scores(oldest), self.codes, self._limit,
            self._lists, self._n_bins, met, categories,
        )  # fmt: skip
        self._leave(gone)
        return met, categories


@jit
def _answer(
    own: Ints, strengths: Floats, codes: Ints, size: int,
    held_own: Ints, held_strengths: Floats, held_codes: Ints, limit: int,
    lists: SortedScores, n_bins: int, met: Ints, categories: Ints,
) -> int:  # fmt: skip
    """Answer and join in turn, `size` examples being held at first; return how many left."""
    gone = 0
    for i in range(len(codes)):
        # 1. Answer: the label counts of its bin.
        k = own[i]
        bin_ = _count(lists.scores[k], lists.codes[k], lists.sizes[k], strengths[i], n_bins, met[i])
        categories[i] = k * n_bins + bin_
        if codes[i] < 0:
            continue
        # 2. Join the calibration set.
        insert(lists, k, strengths[i], codes[i])
        size += 1
        # 3. The oldest leaves where the window is full.
        if limit >= 0 and size > limit:
            remove(lists, held_own[gone], held_strengths[gone], held_codes[gone])
            gone += 1
            size -= 1
    return gone


@jit
def _count(scores: Floats, codes: Ints, size: int, score: float, n_bins: int, met: Ints) -> int:
    """Add the labels in the bin of `score`, once it has joined, to `met`; return the bin.

    An example of rank r (from 0) among the n = size + 1 belongs to bin floor(n_bins r / n), a
    group of ties to that of its middle rank: twice that rank is its first plus its last.
    """
    # 1. The ties of the example, and its bin by their middle rank.
    begin = place(scores, size, score)
    end = begin
    while end < size and scores[end] == score:
        end += 1
    twice = 2 * (size + 1)
    bin_ = (begin + end) * n_bins // twice
    # 2. The range of examples in that bin, one group of ties after the other.
    low = begin
    while low > 0:  # downwards: ranks below the example are what they were
        first = _group_start(scores, low - 1)
        if (first + low - 1) * n_bins // twice != bin_:
            break
        low = first
    high = end
    while high < size:  # upwards: the example has moved them by one
        last = _group_stop(scores, high, size)
        if (high + last + 1) * n_bins // twice != bin_:
            break
        high = last
    # 3. Their labels.
    for i in range(low, high):
        met[codes[i]] += 1
    return int(bin_)


@jit
def _group_start(scores: Floats, i: int) -> int:
    """Return the first place of the score at place i."""
    while i > 0 and scores[i - 1] == scores[i]:
        i -= 1
    return i


@jit
def _group_stop(scores: Floats, i: int, size: int) -> int:
    """Return the place after the last of the score at place i."""
    i += 1
    while i < size and scores[i] == scores[i - 1]:
        i += 1
    return i
