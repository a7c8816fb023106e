"""Predict by Venn-Abers on a calibration set that grows with every example.

Labelled scores are kept in buckets. The pool-adjacent-violators algorithm may pool neighbours in
any order: each bucket therefore keeps the blocks of its own scores, and an answer pools these few
blocks instead of the examples. A score that is added or removed changes a single bucket. Means are
compared by integer counts, exactly, so the division into buckets does not change a result.
"""

import math
from typing import NamedTuple

import numpy as np
from typing_extensions import override

from online_svm.calibration.diagram import TiedCounts, pool_ties
from online_svm.compiled.kernel import kernel
from online_svm.errors import InvalidInput
from online_svm.types import Bools, Floats, Ints
from online_svm.venn.counted_set import VennAnswers, VennSet, svm_classes

MIN_BUCKET_WIDTH = 32  # in smaller buckets the overhead dominates


class PooledScores(NamedTuple):
    """G lists of B buckets, each with room for W distinct scores."""

    scores: Floats  # shape (G, B, W): the distinct scores of each bucket, ascending
    totals: Ints  # shape (G, B, W): number of examples at each score
    hits: Ints  # shape (G, B, W): number of positive examples at each score
    # shape (G, B): number of distinct scores in each bucket. Only an empty list has an empty bucket
    # in use.
    lengths: Ints
    # shape (G, B, W): number of examples in each block of a bucket; the means of the blocks
    # increase strictly
    block_totals: Ints
    block_hits: Ints  # shape (G, B, W): number of positive examples in each block
    blocks: Ints  # shape (G, B): number of blocks in each bucket
    order: Ints  # shape (G, B): the buckets in use by ascending scores, then the free buckets
    in_use: Ints  # shape (G,): number of buckets in use, at least one
    sizes: Ints  # shape (G,): number of examples in each list


def pooled(scores: Floats, labels: Bools, joining: int = 0) -> PooledScores:
    """Return a list for each column of `scores`, with room for `joining` more examples.

    Both arrays have shape (n, G); column g of `labels` marks the positive examples of list g.
    """
    tied = [pool_ties(scores[:, g], labels[:, g]) for g in range(scores.shape[1])]
    return _laid_out(tied, joining)


def with_room(lists: PooledScores, joining: int) -> PooledScores:
    """Return lists with room for `joining` more examples: the same lists, or larger copies."""
    width = lists.scores.shape[2]
    in_use = max(lists.in_use.tolist())
    if in_use + _max_splits(in_use, width, joining) <= lists.scores.shape[1]:
        return lists
    return _laid_out([_tied(lists, g) for g in range(len(lists.sizes))], joining)


def _laid_out(tied: list[TiedCounts], joining: int) -> PooledScores:
    """Return lists whose buckets are three quarters full."""
    n_scores = max((len(counts.scores) for counts in tied), default=0)
    width = MIN_BUCKET_WIDTH
    while width < 1 + math.sqrt(n_scores):
        width *= 2
    filled = width * 3 // 4
    used = max(1, -(-n_scores // filled))
    # Twice as many buckets as needed, so that lists are seldom copied.
    shape = (len(tied), 2 * used + _max_splits(2 * used, width, joining), width)
    lists = PooledScores(
        scores=np.zeros(shape),
        totals=np.zeros(shape, dtype=np.int64),
        hits=np.zeros(shape, dtype=np.int64),
        lengths=np.zeros(shape[:2], dtype=np.int64),
        block_totals=np.zeros(shape, dtype=np.int64),
        block_hits=np.zeros(shape, dtype=np.int64),
        blocks=np.zeros(shape[:2], dtype=np.int64),
        order=np.tile(np.arange(shape[1]), (shape[0], 1)),
        in_use=np.ones(shape[0], dtype=np.int64),
        sizes=np.zeros(shape[0], dtype=np.int64),
    )
    for g, counts in enumerate(tied):
        _fill(lists, g, counts.scores, counts.totals, counts.positives, filled)
    return lists


def _max_splits(in_use: int, width: int, joining: int) -> int:
    """Return a limit on splits: after a split either half has room for half a width of scores."""
    return min(joining, in_use + 2 * joining // width + 1)


def _tied(lists: PooledScores, g: int) -> TiedCounts:
    """Return the distinct scores of a list and their counts."""
    order = lists.order[g, : lists.in_use[g]]
    is_held = np.arange(lists.scores.shape[2]) < lists.lengths[g, order, None]
    scores, totals, hits = (part[g, order][is_held] for part in lists[:3])
    return TiedCounts(scores, totals, hits)


@kernel
def _fill(
    lists: PooledScores, g: int, scores: Floats, totals: Ints, hits: Ints, filled: int
) -> None:
    """Fill the empty list g with ascending distinct scores, shape (n,), `filled` in each bucket."""


@kernel
def insert(lists: PooledScores, g: int, score: float, hit: int) -> None:
    """Add an example to list g, positive if `hit` is 1; see `with_room`."""


@kernel
def remove(lists: PooledScores, g: int, score: float, hit: int) -> None:
    """Remove an example from list g; it must be there."""


@kernel
def isotonic_pair(lists: PooledScores, g: int, score: float, work: Ints, pair: Floats) -> None:
    """Write the isotonic values at `score` with a negative (p0) or a positive (p1) example added.

    `work` is scratch of shape (4, more than the size of the list).
    """


class AbersSet(VennSet):
    """Two isotonic fits per answer, with the example added as negative and as positive.

    The categories are the blocks of the isotonic regression of the labels on the scores, fitted to
    the calibration set and the example with its assumed label (Vovk, Petej & Fedorova 2015). With
    two classes this is a Venn predictor, and its guarantee holds. With more classes there is a pair
    (p0, p1) for each class against the rest: each pair is valid for its own class, but together
    they are not a multiprobability and have no guarantee. The point of a class is then its mean
    (p0 + p1)/2 over the sum of all means; its interval is the range of that quotient while every
    class varies within its pair.

    An answer takes one pass over the blocks of `PooledScores` for each pair, about 150 blocks for
    2,000 examples. `category` is the SVM's own class, because the blocks depend on the assumed
    label, and `size` counts the whole calibration set. Only the first `n_known` classes have a
    machine. Examples of other classes are held but not used; an unseen label has the point 0 and
    the interval [0, 1 / (N + 1)].
    """

    def __init__(
        self, n_known: int, scores: Floats, codes: Ints, n_classes: int, limit: int | None
    ) -> None:
        super().__init__(scores, codes, limit)
        self._n_known, self._n_classes = n_known, n_classes
        known = self.codes < n_known
        positive = np.array([1]) if scores.shape[1] == 1 else np.arange(scores.shape[1])
        self._lists = pooled(self.scores[known], self.codes[known, None] == positive)

    @property
    @override
    def is_multiprobability(self) -> bool:
        return self._n_known == 2  # of more classes the values are points, one against the rest

    @override
    def answer(self, scores: Floats, codes: Ints) -> VennAnswers:
        pairs, sizes = self._process(scores, codes)
        point, lower, upper = _two_classes(pairs) if pairs.shape[1] == 1 else _normalised(pairs)
        unseen = self._n_classes - self._n_known
        if unseen:
            zeros = np.zeros((len(codes), unseen))
            point, lower = np.hstack([point, zeros]), np.hstack([lower, zeros])
            upper = np.hstack([upper, zeros + 1.0 / (sizes[:, None] + 1)])
        return VennAnswers(point, lower, upper, svm_classes(scores), sizes)

    @override
    def multiprobabilities(self, scores: Floats) -> Floats:
        if self._n_classes != 2:
            raise InvalidInput(
                "taxonomy: Venn-Abers over more than two classes is one-against-all: its values "
                "are points, not a multiprobability; use another one, or two classes"
            )
        pairs, _ = self._process(scores, np.full(len(scores), -1))
        joint: Floats = np.stack([1.0 - pairs[:, 0], pairs[:, 0]], axis=2)
        return joint

    def _process(self, scores: Floats, codes: Ints) -> tuple[Floats, Ints]:
        """Return p0 and p1 of each row and list, shape (m, S, 2), and the size before each row."""
        size = self._join(scores, codes)
        self._lists = with_room(self._lists, len(self.codes) - size)
        work = np.empty((4, len(self.codes) + 1), dtype=np.int64)
        pairs = np.empty((*scores.shape, 2))
        sizes = np.empty(len(codes), dtype=np.int64)
        held = self.scores, self.codes, size, self._limit
        gone = _answer((scores, codes), held, self._n_known, self._lists, work, (pairs, sizes))
        self._leave(gone)
        return pairs, sizes


def _two_classes(pairs: Floats) -> tuple[Floats, Floats, Floats]:
    """Return point, lower and upper probability of both classes, each of shape (m, 2)."""
    point, lower, upper = (np.empty((len(pairs), 2)) for _ in range(3))
    _write_two_classes(pairs, point, lower, upper)
    return point, lower, upper


@kernel
def _write_two_classes(pairs: Floats, point: Floats, lower: Floats, upper: Floats) -> None:
    """Write point, lower and upper probability of both classes, from pairs of shape (m, 1, 2)."""


def _normalised(pairs: Floats) -> tuple[Floats, Floats, Floats]:
    """Return each class's mean over the sum of all means, and its range, shape (m, K)."""
    low, high = pairs[:, :, 0], pairs[:, :, 1]
    mean = 0.5 * (low + high)
    return (mean / _sums(mean), low / (low + _others(high)), high / (high + _others(low)))


def _others(values: Floats) -> Floats:
    """Return the sum of the other columns, clipped at 0 because of rounding."""
    return np.maximum(_sums(values) - values, 0.0)


def _sums(values: Floats) -> Floats:
    """Return row sums, shape (m, 1), added column by column: numpy's order depends on the shape."""
    total = values[:, 0].copy()
    for column in values.T[1:]:
        total += column
    return total[:, None]


@kernel
def _answer(
    rows: tuple[Floats, Ints],
    held: tuple[Floats, Ints, int, int],
    n_known: int,
    lists: PooledScores,
    work: Ints,
    found: tuple[Floats, Ints],
) -> int:
    """Answer and add rows in turn; return how many of the held examples left.

    `rows` are scores, shape (m, S), and label codes. `held` are scores and label codes of the held
    and then of the added examples, the number of the former, and the limit. `found` receives p0 and
    p1 of each row and list, shape (m, S, 2), and the number of examples before each row; `work`,
    shape (4, N + 1), is scratch.
    """
