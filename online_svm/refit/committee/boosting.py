"""Boosted trees whose cuts are random, every sum in integers: the same bytes on any machine.

Newton boosting of the logistic loss; for more than two classes of the softmax loss, by trees whose
leaves hold a step for each class. The structure of such a tree is found from one sum of the class
gradients with random signs. A node tries a few random features, each cut at the value of a random
row of its own, and keeps the best cut: no histogram is made and nothing is sorted (Geurts, Ernst
and Wehenkel 2006).

Gradients and curvatures are whole numbers of 2^-s, packed in one int64, so that one addition adds
both, and sums are exact in any order. Random numbers are hashes of (key, tree, node, trial).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from online_svm.compiled.elementary import exp_nonpositive, log
from online_svm.compiled.jit import inner, jit
from online_svm.compiled.logistic import logistic
from online_svm.refit.committee.forest import (
    LEAF_UNIT,
    LEAVES,
    MOST_LEAF,
    NO_CUT,
    NODES,
    Bytes,
    Forest,
)
from online_svm.stream.split import mix
from online_svm.types import Floats, Ints

TRIALS = 8  # cuts that a node tries
SHRINKAGE = 0.15
RIDGE = 1.0  # on the step of a leaf, in units of curvature
LEAST_CURVATURE = 1.0  # on either side of a cut

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


class Sample(NamedTuple):
    """What a forest is grown from.

    Attributes
    ----------
    bins : ndarray of uint8, shape (n_features, n)
    codes : ndarray of shape (n,)
    weights : ndarray of shape (n,)
        Positive, of mean 1.
    """

    bins: Bytes
    codes: Ints
    weights: Floats


class Work(NamedTuple):
    """Scratch of one tree: the rows in the order of the nodes, a copy, and where a node's begin."""

    order: NDArray[np.uint32]
    beyond: NDArray[np.uint32]
    packed: Ints
    starts: Ints
    stops: Ints
    features: Ints
    cuts: Ints
    lefts: Ints


@jit
def grow_two(sample: Sample, seed: int, number: int, forest: Forest) -> None:
    """Write to `forest` the trees of the log-odds of class 1 of two."""
    key = _key(seed, number)
    bins, codes, weights = sample
    n = len(codes)
    work, totals = _work(n), np.zeros(n, dtype=np.int64)
    unit = _unit(n)
    # 1. The first tree begins with the smoothed frequency of class 1.
    count = 0.0
    for i in range(n):
        count += weights[i] * codes[i]
    base = log((count + 1.0) / (n - count + 1.0))
    for i in range(n):
        totals[i] = _steps(base)
    for t in range(len(forest.features)):
        # 2. Gradient and curvature of each row.
        for i in range(n):
            p = logistic(totals[i] * LEAF_UNIT)
            scale = weights[i] * unit
            work.packed[i] = _packed(scale * (p - codes[i]), scale * (p * (1.0 - p)))
        # 3. A tree, and a Newton step in each of its leaves.
        _grow(bins, work, key, t, unit, forest)
        for leaf in range(LEAVES):
            lo, hi = work.starts[NODES + leaf], work.stops[NODES + leaf]
            if lo == hi:
                continue
            total = 0
            for i in range(lo, hi):
                total += work.packed[work.order[i]]
            first = base if t == 0 else 0.0
            step = _steps(first + _newton(total, unit))
            forest.leaves[t, leaf, 0] = step
            if t == 0:
                step -= _steps(base)
            for i in range(lo, hi):
                totals[work.order[i]] += step


@jit
def grow_more(sample: Sample, seed: int, number: int, forest: Forest) -> None:
    """Write to `forest` the trees of the logits of three classes or more."""
    key = _key(seed, number)
    bins, codes, weights = sample
    n, classes = len(codes), forest.leaves.shape[2]
    work, unit = _work(n), _unit(n)
    totals, base = np.zeros((n, classes), dtype=np.int64), np.zeros(classes)
    p, sums, signs = np.empty((n, classes)), np.empty(classes, np.int64), np.empty(classes)
    # 1. The first tree begins with the smoothed frequencies.
    for i in range(n):
        base[codes[i]] += weights[i]
    for k in range(classes):
        base[k] = log((base[k] + 1.0) / (n + classes))
        for i in range(n):
            totals[i, k] = _steps(base[k])
    for t in range(len(forest.features)):
        # 2. The sum of the gradients with random signs, and that of the curvatures.
        for k in range(classes):
            signs[k] = 1.0 if _hash(key, t, NODES, k) >> np.uint64(63) else -1.0
        for i in range(n):
            _softmax(totals[i], p[i])
            gradient, curvature = -signs[codes[i]], 0.0
            for k in range(classes):
                gradient += signs[k] * p[i, k]
                curvature += p[i, k] * (1.0 - p[i, k])
            scale = weights[i] * unit
            work.packed[i] = _packed(scale * gradient, scale * curvature)
        # 3. A tree, and a Newton step for each class in each of its leaves.
        _grow(bins, work, key, t, unit, forest)
        for leaf in range(LEAVES):
            lo, hi = work.starts[NODES + leaf], work.stops[NODES + leaf]
            if lo == hi:
                continue
            sums[:] = 0
            for i in range(lo, hi):
                row = work.order[i]
                scale = weights[row] * unit
                for k in range(classes):
                    q = p[row, k]
                    gradient = scale * (q - (1.0 if k == codes[row] else 0.0))
                    sums[k] += _packed(gradient, scale * (q * (1.0 - q)))
            for k in range(classes):
                first = base[k] if t == 0 else 0.0
                step = _steps(first + _newton(sums[k], unit))
                forest.leaves[t, leaf, k] = step
                if t == 0:
                    step -= _steps(base[k])
                for i in range(lo, hi):
                    totals[work.order[i], k] += step


@jit
def _work(n: int) -> Work:
    return Work(
        np.empty(n, dtype=np.uint32),
        np.empty(n, dtype=np.uint32),
        np.empty(n, dtype=np.int64),
        np.empty(NODES + LEAVES, dtype=np.int64),
        np.empty(NODES + LEAVES, dtype=np.int64),
        np.empty(TRIALS, dtype=np.int64),
        np.empty(TRIALS, dtype=np.int64),
        np.empty(TRIALS, dtype=np.int64),
    )


@inner
def _unit(n: int) -> float:
    """Return 2^s, in which sums over n rows of gradients of size 2 fit 32 bits."""
    unit = 1.0
    while unit * n < 2.0**29:
        unit *= 2.0
    return unit


@inner
def _packed(gradient: float, curvature: float) -> int:
    return (int(np.floor(gradient + 0.5)) << 32) + int(np.floor(curvature + 0.5))


@inner
def _gradient(total: int) -> float:
    """Return the sum of the gradients from one of packed pairs."""
    return np.float64((total - (total & 0xFFFFFFFF)) >> 32)


@inner
def _curvature(total: int) -> float:
    return np.float64(total & 0xFFFFFFFF)


@inner
def _newton(total: int, unit: float) -> float:
    return -SHRINKAGE * _gradient(total) / (_curvature(total) + RIDGE * unit)


@inner
def _steps(value: float) -> int:
    """Return a step of the log-odds as a whole number of units."""
    whole = int(np.floor(value / LEAF_UNIT + 0.5))
    return min(max(whole, -MOST_LEAF), MOST_LEAF)


@inner
def _gain(total: int, unit: float) -> float:
    g = _gradient(total)
    return g * g / (_curvature(total) + RIDGE * unit)


@inner
def _key(seed: int, number: int) -> np.uint64:
    return mix(mix(np.uint64(seed) + _GOLDEN) + np.uint64(number))


@inner
def _hash(key: np.uint64, tree: int, node: int, trial: int) -> np.uint64:
    place = np.uint64((tree * (NODES + 1) + node) << 32) + np.uint64(trial)
    return mix(key + _GOLDEN * place)


@inner
def _softmax(totals: Ints, p: Floats) -> None:
    highest = totals[0]
    for k in range(len(p)):
        highest = max(highest, totals[k])
    whole = 0.0
    for k in range(len(p)):
        p[k] = exp_nonpositive((totals[k] - highest) * LEAF_UNIT)
        whole += p[k]
    for k in range(len(p)):
        p[k] /= whole


@inner
def _grow(bins: Bytes, work: Work, key: np.uint64, tree: int, unit: float, forest: Forest) -> None:
    """Write the nodes of one tree, and where the rows of each node and leaf are in the order."""
    order, starts, stops = work.order, work.starts, work.stops
    for i in range(len(order)):
        order[i] = i
    starts[0], stops[0] = 0, len(order)
    for node in range(NODES):
        lo, hi = starts[node], stops[node]
        feature, cut = _best_cut(bins, work, key, (tree, node), unit)
        middle = hi
        if cut < NO_CUT:
            middle = _divide(bins[feature], cut, lo, hi, work)
        forest.features[tree, node], forest.bins[tree, node] = feature, cut
        starts[2 * node + 1], stops[2 * node + 1] = lo, middle
        starts[2 * node + 2], stops[2 * node + 2] = middle, hi


@inner
def _best_cut(
    bins: Bytes, work: Work, key: np.uint64, place: tuple[int, int], unit: float
) -> tuple[int, int]:
    """Return feature and bin of the best of the cuts that a node tries; 0, `NO_CUT` if none is."""
    order, _, packed, starts, stops, features, cuts, lefts = work
    tree, node = place
    lo, hi = starts[node], stops[node]
    best_feature, best_cut = 0, NO_CUT
    # 1. What the node holds.
    total = 0
    for i in range(lo, hi):
        total += packed[order[i]]
    least = LEAST_CURVATURE * unit
    if _curvature(total) < 2.0 * least:
        return best_feature, best_cut
    # 2. Random features, each cut at the value of a random row.
    for trial in range(TRIALS):
        drawn = _hash(key, tree, node, trial)
        feature = np.int64(((drawn >> _HALF) * np.uint64(len(bins))) >> _HALF)
        row = order[lo + np.int64(((drawn & _LOW) * np.uint64(hi - lo)) >> _HALF)]
        features[trial], cuts[trial] = feature, bins[feature, row]
    # 3. The best, of those that leave enough on either side.
    for trial in range(0, TRIALS, 4):
        _sums_below(bins, work, lo, hi, trial)
    best = _gain(total, unit)
    for trial in range(TRIALS):
        left, right = lefts[trial], total - lefts[trial]
        if min(_curvature(left), _curvature(right)) < least:
            continue
        gain = _gain(left, unit) + _gain(right, unit)
        if gain > best:
            best, best_feature, best_cut = gain, features[trial], cuts[trial]
    return best_feature, best_cut


@inner
def _sums_below(bins: Bytes, work: Work, lo: int, hi: int, first: int) -> None:
    """Write the sums over the rows not beyond each of four cuts: in one pass, without a branch."""
    order, packed, features, cuts = work.order, work.packed, work.features, work.cuts
    a, b = bins[features[first]], bins[features[first + 1]]
    c, d = bins[features[first + 2]], bins[features[first + 3]]
    p, q, r, s = cuts[first], cuts[first + 1], cuts[first + 2], cuts[first + 3]
    of_a, of_b, of_c, of_d = 0, 0, 0, 0
    for i in range(lo, hi):
        row = order[i]
        pair = packed[row]
        of_a += pair & -np.int64(a[row] <= p)
        of_b += pair & -np.int64(b[row] <= q)
        of_c += pair & -np.int64(c[row] <= r)
        of_d += pair & -np.int64(d[row] <= s)
    lefts = work.lefts
    lefts[first], lefts[first + 1], lefts[first + 2], lefts[first + 3] = of_a, of_b, of_c, of_d


@inner
def _divide(own: Bytes, cut: int, lo: int, hi: int, work: Work) -> int:
    """Move the rows of a node that lie beyond its cut behind the others; return where these end."""
    order, beyond = work.order, work.beyond
    left, right = lo, 0
    for i in range(lo, hi):
        row = order[i]
        order[left] = row
        beyond[right] = row
        goes_right = int(own[row] > cut)
        left += 1 - goes_right
        right += goes_right
    for i in range(right):
        order[left + i] = beyond[i]
    return left
