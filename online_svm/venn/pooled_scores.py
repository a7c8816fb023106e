"""Labelled scores in buckets, each pooled on its own: isotonic values next to any score.

The pool-adjacent-violators algorithm may pool neighbours in any order. So each bucket keeps the
blocks that its own scores pool to, and an answer pools those few blocks, not the examples. A score
that joins or leaves changes one bucket. Counts are whole numbers: equal means are seen to be equal,
and a value is the quotient of the same two counts, but for a common factor, whatever the buckets.
"""

import math
from typing import NamedTuple

import numpy as np

from online_svm.calibration.diagram import TiedCounts, pool_ties
from online_svm.compiled.jit import inner, jit
from online_svm.types import Bools, Floats, Ints
from online_svm.venn.sorted_scores import place

LEAST_WIDTH = 32  # below that, buckets cost more than what they hold


class PooledScores(NamedTuple):
    """G lists of B buckets, each with room for W distinct scores.

    Attributes
    ----------
    scores : ndarray of shape (G, B, W)
        The distinct scores of each bucket, ascending.
    totals, hits : ndarray of shape (G, B, W)
        Examples, and positive examples, at each.
    lengths : ndarray of shape (G, B)
        Distinct scores in each bucket. Only the bucket of an empty list is empty.
    block_totals, block_hits : ndarray of shape (G, B, W)
        Examples, and positive examples, of the blocks that the bucket pools to: their means
        increase strictly.
    blocks : ndarray of shape (G, B)
        How many blocks that are.
    order : ndarray of shape (G, B)
        The buckets in use by ascending scores, then those that are free.
    in_use : ndarray of shape (G,)
        At least one.
    sizes : ndarray of shape (G,)
        Examples in each list.
    """

    scores: Floats
    totals: Ints
    hits: Ints
    lengths: Ints
    block_totals: Ints
    block_hits: Ints
    blocks: Ints
    order: Ints
    in_use: Ints
    sizes: Ints


def pooled(scores: Floats, labels: Bools, joining: int = 0) -> PooledScores:
    """Return one list for each column of `scores`, with room for `joining` more examples.

    Parameters
    ----------
    scores, labels : ndarray of shape (n, G)
        Column g of `labels` says which examples are positive for list g.
    joining : int

    Examples
    --------
    >>> lists = pooled(np.array([[1.0], [2.0], [2.0]]), np.array([[True], [False], [True]]))
    >>> lists.totals[0, 0, :2], lists.block_hits[0, 0, : lists.blocks[0, 0]]
    (array([1, 2]), array([2]))
    """
    tied = [pool_ties(scores[:, g], labels[:, g]) for g in range(scores.shape[1])]
    return _laid_out(tied, joining)


def with_room(lists: PooledScores, joining: int) -> PooledScores:
    """Return lists that `joining` examples can join: the same ones, or copies laid out anew."""
    width = lists.scores.shape[2]
    most = max(lists.in_use.tolist())
    if most + _splits(most, width, joining) <= lists.scores.shape[1]:
        return lists
    return _laid_out([_tied(lists, g) for g in range(len(lists.sizes))], joining)


def _laid_out(tied: list[TiedCounts], joining: int) -> PooledScores:
    """Return lists whose buckets are three quarters full."""
    most = max((len(counts.scores) for counts in tied), default=0)
    width = LEAST_WIDTH
    while width < 1 + math.sqrt(most):
        width *= 2
    filled = width * 3 // 4
    used = max(1, -(-most // filled))
    # As many again, so that this is seldom done.
    shape = (len(tied), 2 * used + _splits(2 * used, width, joining), width)
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


def _splits(in_use: int, width: int, joining: int) -> int:
    """Return how many buckets can be split at most: each half takes half a width to fill again."""
    return min(joining, in_use + 2 * joining // width + 1)


def _tied(lists: PooledScores, g: int) -> TiedCounts:
    """Return the distinct scores of a list and their counts."""
    order = lists.order[g, : lists.in_use[g]]
    is_held = np.arange(lists.scores.shape[2]) < lists.lengths[g, order, None]
    scores, totals, hits = (part[g, order][is_held] for part in lists[:3])
    return TiedCounts(scores, totals, hits)


@jit
def _fill(
    lists: PooledScores, g: int, scores: Floats, totals: Ints, hits: Ints, filled: int
) -> None:
    for i in range(len(scores)):
        b, at = i // filled, i % filled
        lists.scores[g, b, at] = scores[i]
        lists.totals[g, b, at], lists.hits[g, b, at] = totals[i], hits[i]
        lists.lengths[g, b] = at + 1
        lists.sizes[g] += totals[i]
        lists.in_use[g] = b + 1
    for b in range(lists.in_use[g]):
        _pool(lists, g, b)


@jit
def insert(lists: PooledScores, g: int, score: float, hit: int) -> None:
    """Add an example, positive where `hit` is 1, to list g; see `with_room`."""
    rank = _rank(lists, g, score)
    b = lists.order[g, rank]
    at = place(lists.scores[g, b], lists.lengths[g, b], score)
    lists.sizes[g] += 1
    if at < lists.lengths[g, b] and lists.scores[g, b, at] == score:
        lists.totals[g, b, at] += 1
        lists.hits[g, b, at] += hit
        _pool(lists, g, b)
        return
    if lists.lengths[g, b] == lists.scores.shape[2]:
        after = _split(lists, g, rank)
        if at > lists.lengths[g, b]:
            _pool(lists, g, b)
            at -= lists.lengths[g, b]
            b = after
        else:
            _pool(lists, g, after)
    scores, totals, hits = lists.scores[g, b], lists.totals[g, b], lists.hits[g, b]
    for i in range(lists.lengths[g, b], at, -1):
        scores[i], totals[i], hits[i] = scores[i - 1], totals[i - 1], hits[i - 1]
    scores[at], totals[at], hits[at] = score, 1, hit
    lists.lengths[g, b] += 1
    _pool(lists, g, b)


@jit
def remove(lists: PooledScores, g: int, score: float, hit: int) -> None:
    """Take an example, which is there, out of list g."""
    rank = _rank(lists, g, score)
    b = lists.order[g, rank]
    scores, totals, hits = lists.scores[g, b], lists.totals[g, b], lists.hits[g, b]
    at = place(scores, lists.lengths[g, b], score)
    lists.sizes[g] -= 1
    totals[at] -= 1
    hits[at] -= hit
    if totals[at] == 0:
        lists.lengths[g, b] -= 1
        for i in range(at, lists.lengths[g, b]):
            scores[i], totals[i], hits[i] = scores[i + 1], totals[i + 1], hits[i + 1]
    if lists.lengths[g, b] == 0 and lists.in_use[g] > 1:
        _free(lists, g, rank)
    _pool(lists, g, b)


@jit
def isotonic_pair(lists: PooledScores, g: int, score: float, work: Ints, pair: Floats) -> None:
    """Write the isotonic value at `score` once a negative, or a positive, example joins there.

    Parameters
    ----------
    lists, g, score
        List g is asked, and stays as it is.
    work : ndarray of shape (4, more than the size of the list)
        Its values before do not matter.
    pair : ndarray of shape (2,)
        Gets p0 and p1.
    """
    rank = _rank(lists, g, score)
    b = lists.order[g, rank]
    totals, hits, length = lists.totals[g, b], lists.hits[g, b], lists.lengths[g, b]
    at = place(lists.scores[g, b], length, score)
    has_tie = at < length and lists.scores[g, b, at] == score
    # 1. The blocks of what lies below the score, the nearest on top of the stack.
    below_hits, below_totals, below = work[0], work[1], -1
    for r in range(rank):
        c = lists.order[g, r]
        for i in range(lists.blocks[g, c]):
            hit, total = lists.block_hits[g, c, i], lists.block_totals[g, c, i]
            below = _push(below_hits, below_totals, below, hit, total)
    for i in range(at):
        below = _push(below_hits, below_totals, below, hits[i], totals[i])
    # 2. Those of what lies above it, the nearest on top: negatives take the place of positives.
    above_misses, above_totals, above = work[2], work[3], -1
    for r in range(lists.in_use[g] - 1, rank, -1):
        c = lists.order[g, r]
        for i in range(lists.blocks[g, c] - 1, -1, -1):
            total = lists.block_totals[g, c, i]
            miss = total - lists.block_hits[g, c, i]
            above = _push(above_misses, above_totals, above, miss, total)
    for i in range(length - 1, at - 1 + has_tie, -1):
        above = _push(above_misses, above_totals, above, totals[i] - hits[i], totals[i])
    # 3. The example with its ties, pooled outwards.
    for label in range(2):
        hit, total = label, 1
        if has_tie:
            hit, total = label + hits[at], 1 + totals[at]
        i, j = below, above
        while True:
            if i >= 0 and below_hits[i] * total >= hit * below_totals[i]:
                hit, total = hit + below_hits[i], total + below_totals[i]
                i -= 1
            elif j >= 0 and above_misses[j] * total >= (total - hit) * above_totals[j]:
                hit += above_totals[j] - above_misses[j]
                total += above_totals[j]
                j -= 1
            else:
                break
        pair[label] = hit / total


@inner
def _push(hits: Ints, totals: Ints, top: int, hit: int, total: int) -> int:
    """Push a block, pooled with those before it whose mean is not lower; return the new top."""
    while top >= 0 and hits[top] * total >= hit * totals[top]:
        hit += hits[top]
        total += totals[top]
        top -= 1
    hits[top + 1], totals[top + 1] = hit, total
    return top + 1


@inner
def _pool(lists: PooledScores, g: int, b: int) -> None:
    """Pool the scores of bucket b to blocks."""
    hits, totals, top = lists.block_hits[g, b], lists.block_totals[g, b], -1
    for i in range(lists.lengths[g, b]):
        top = _push(hits, totals, top, lists.hits[g, b, i], lists.totals[g, b, i])
    lists.blocks[g, b] = top + 1


@inner
def _rank(lists: PooledScores, g: int, score: float) -> int:
    """Return the place in `order` of the bucket of a score: the last that begins at most there."""
    order = lists.order[g]
    low, high = 0, lists.in_use[g] - 1
    while low < high:
        middle = (low + high + 1) // 2
        if lists.scores[g, order[middle], 0] <= score:
            low = middle
        else:
            high = middle - 1
    return low


@inner
def _split(lists: PooledScores, g: int, rank: int) -> int:
    """Move the upper half of a full bucket to a free one, which comes right after it."""
    order, last = lists.order[g], lists.in_use[g]
    b, after = order[rank], order[last]
    for r in range(last, rank + 1, -1):
        order[r] = order[r - 1]
    order[rank + 1] = after
    lists.in_use[g] += 1
    length = lists.lengths[g, b]
    half = length // 2
    for i in range(half, length):
        lists.scores[g, after, i - half] = lists.scores[g, b, i]
        lists.totals[g, after, i - half] = lists.totals[g, b, i]
        lists.hits[g, after, i - half] = lists.hits[g, b, i]
    lists.lengths[g, b], lists.lengths[g, after] = half, length - half
    return int(after)


@inner
def _free(lists: PooledScores, g: int, rank: int) -> None:
    """Give up an empty bucket."""
    order, last = lists.order[g], lists.in_use[g] - 1
    b = order[rank]
    for r in range(rank, last):
        order[r] = order[r + 1]
    order[last] = b
    lists.in_use[g] = last
