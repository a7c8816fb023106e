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

from online_svm.compiled.elementary import ROUNDER, exp_nonpositive, log
from online_svm.compiled.intrinsics import bits_of
from online_svm.compiled.jit import inner, jit
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

ROUNDED_ZERO = int(np.float64(ROUNDER).view(np.int64))

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
    """Scratch of one tree.

    Attributes
    ----------
    order, beyond : ndarray of shape (n,)
        The rows in the order of the nodes, and a copy of some.
    pairs : ndarray of shape (n,)
        The packed gradient and curvature of each row.
    starts, stops, totals : ndarray of shape (NODES + LEAVES,)
        Where the rows of each node and leaf are in the order, and the sum of their pairs.
    features, cuts, lefts : ndarray of shape (TRIALS,)
        What a node tries, and the sum of the pairs that are not beyond it.
    """

    order: NDArray[np.uint32]
    beyond: NDArray[np.uint32]
    pairs: Ints
    starts: Ints
    stops: Ints
    totals: Ints
    features: Ints
    cuts: Ints
    lefts: Ints


@jit
def grow_two(sample: Sample, seed: int, number: int, forest: Forest) -> None:
    """Write to `forest` the trees of the log-odds of class 1 of two."""
    key = _key(seed, number)
    bins, codes, weights = sample
    n = len(codes)
    work, values = _work(n), np.empty(n)
    unit = _unit(n)
    # 1. The first tree begins with the smoothed frequency of class 1.
    count = 0.0
    for i in range(n):
        count += weights[i] * codes[i]
    base = log((count + 1.0) / (n - count + 1.0))
    values[:] = _steps(base)
    for t in range(len(forest.features)):
        # 2. Gradient and curvature of each row.
        for i in range(n):
            value = values[i] * LEAF_UNIT
            e = exp_nonpositive(-abs(value))
            p = (1.0 if value >= 0.0 else e) / (1.0 + e)
            scale = weights[i] * unit
            work.pairs[i] = _packed(scale * (p - codes[i]), scale * (p * (1.0 - p)))
        # 3. A tree, and a Newton step in each of its leaves.
        _grow(bins, work, key, t, unit, forest)
        for leaf in range(LEAVES):
            lo, hi = work.starts[NODES + leaf], work.stops[NODES + leaf]
            if lo == hi:
                continue
            first = base if t == 0 else 0.0
            step = _steps(first + _newton(work.totals[NODES + leaf], unit))
            forest.leaves[t, leaf, 0] = np.int16(step)
            if t == 0:
                step -= _steps(base)
            for i in range(lo, hi):
                values[work.order[i]] += step


@jit
def grow_more(sample: Sample, seed: int, number: int, forest: Forest) -> None:
    """Write to `forest` the trees of the logits of three classes or more.

    What there is of each class and row stands by classes, so that several rows are taken at a time.
    """
    key = _key(seed, number)
    bins, codes, weights = sample
    n, classes = len(codes), forest.leaves.shape[2]
    work, unit = _work(n), _unit(n)
    values, base = np.empty((classes, n)), np.zeros(classes)
    softmax = Softmax(np.empty((classes, n)), np.empty(n), np.empty(n))
    pairs, gradients, curvatures = np.empty((classes, n), np.int64), np.empty(n), np.empty(n)
    # 1. The first tree begins with the smoothed frequencies.
    for i in range(n):
        base[codes[i]] += weights[i]
    for k in range(classes):
        base[k] = log((base[k] + 1.0) / (n + classes))
        values[k] = _steps(base[k])
    for t in range(len(forest.features)):
        # 2. Gradient and curvature of each class; their sums, of the gradients with random signs.
        _softmax(values, softmax)
        gradients[:], curvatures[:] = 0.0, 0.0
        for k in range(classes):
            sign = 1.0 if _hash(key, t, NODES, k) >> np.uint64(63) else -1.0
            of_class, p = pairs[k], softmax.p[k]
            for i in range(n):
                gradient = p[i] - (1.0 if codes[i] == k else 0.0)
                curvature = p[i] * (1.0 - p[i])
                gradients[i] += sign * gradient
                curvatures[i] += curvature
                scale = weights[i] * unit
                of_class[i] = _packed(scale * gradient, scale * curvature)
        for i in range(n):
            scale = weights[i] * unit
            work.pairs[i] = _packed(scale * gradients[i], scale * curvatures[i])
        # 3. A tree, and a Newton step for each class in each of its leaves.
        _grow(bins, work, key, t, unit, forest)
        for leaf in range(LEAVES):
            lo, hi = work.starts[NODES + leaf], work.stops[NODES + leaf]
            if lo == hi:
                continue
            for k in range(classes):
                total, of_class, own = 0, pairs[k], values[k]
                for i in range(lo, hi):
                    total += of_class[work.order[i]]
                first = base[k] if t == 0 else 0.0
                step = _steps(first + _newton(total, unit))
                forest.leaves[t, leaf, k] = np.int16(step)
                if t == 0:
                    step -= _steps(base[k])
                for i in range(lo, hi):
                    own[work.order[i]] += step


class Softmax(NamedTuple):
    """The softmax of each row, shape (K, n), and scratch of shape (n,)."""

    p: Floats
    highest: Floats
    whole: Floats


@inner
def _softmax(values: Floats, softmax: Softmax) -> None:
    """Write the softmax of logits in `LEAF_UNIT`, shape (K, n), over the classes."""
    p, highest, whole = softmax
    highest[:], whole[:] = -np.inf, 0.0
    for k in range(len(p)):
        for i in range(len(whole)):
            highest[i] = max(highest[i], values[k, i])
    for k in range(len(p)):
        for i in range(len(whole)):
            p[k, i] = exp_nonpositive((values[k, i] - highest[i]) * LEAF_UNIT)
            whole[i] += p[k, i]
    for i in range(len(whole)):
        whole[i] = 1.0 / whole[i]
    for k in range(len(p)):
        for i in range(len(whole)):
            p[k, i] *= whole[i]


@jit
def _work(n: int) -> Work:
    return Work(
        np.empty(n, dtype=np.uint32),
        np.empty(n, dtype=np.uint32),
        np.empty(n, dtype=np.int64),
        np.empty(NODES + LEAVES, dtype=np.int64),
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
    """Return both, rounded to whole numbers, the gradient in the upper half."""
    return (_whole(gradient) << 32) + _whole(curvature)


@inner
def _whole(value: float) -> int:
    """Return the nearest whole number: the low bits of the sum with `ROUNDER`."""
    return bits_of(value + ROUNDER) - ROUNDED_ZERO


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
def _grow(bins: Bytes, work: Work, key: np.uint64, tree: int, unit: float, forest: Forest) -> None:
    """Write the nodes of one tree, and where the rows of each node and leaf are in the order."""
    order, starts, stops, totals = work.order, work.starts, work.stops, work.totals
    total = 0
    for i in range(len(order)):
        order[i] = i
        total += work.pairs[i]
    starts[0], stops[0], totals[0] = 0, len(order), total
    for node in range(NODES):
        lo, hi = starts[node], stops[node]
        feature, cut, left = _best_cut(bins, work, key, (tree, node), unit)
        middle = hi
        if cut < NO_CUT:
            middle = _divide(bins[feature], cut, lo, hi, work)
        forest.features[tree, node], forest.bins[tree, node] = feature, cut
        below, beyond = 2 * node + 1, 2 * node + 2
        starts[below], stops[below], totals[below] = lo, middle, left
        starts[beyond], stops[beyond], totals[beyond] = middle, hi, totals[node] - left


@inner
def _best_cut(
    bins: Bytes, work: Work, key: np.uint64, place: tuple[int, int], unit: float
) -> tuple[int, int, int]:
    """Return feature and bin of the best cut that a node tries, and the sum of what is not beyond.

    The bin is `NO_CUT` if none is worth it.
    """
    order, features, cuts, lefts = work.order, work.features, work.cuts, work.lefts
    tree, node = place
    lo, hi, total = work.starts[node], work.stops[node], work.totals[node]
    best_feature, best_cut, best_left = 0, NO_CUT, total
    # 1. Is there enough for two sides?
    least = LEAST_CURVATURE * unit
    if _curvature(total) < 2.0 * least:
        return best_feature, best_cut, best_left
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
            best, best_left = gain, left
            best_feature, best_cut = features[trial], cuts[trial]
    return best_feature, best_cut, best_left


@inner
def _sums_below(bins: Bytes, work: Work, lo: int, hi: int, first: int) -> None:
    """Write the sums over the rows not beyond each of four cuts: in one pass, without a branch."""
    order, pairs, features, cuts = work.order[lo:hi], work.pairs, work.features, work.cuts
    a, b = bins[features[first]], bins[features[first + 1]]
    c, d = bins[features[first + 2]], bins[features[first + 3]]
    p, q = np.uint8(cuts[first]), np.uint8(cuts[first + 1])
    r, s = np.uint8(cuts[first + 2]), np.uint8(cuts[first + 3])
    of_a, of_b, of_c, of_d = 0, 0, 0, 0
    for i in range(len(order)):
        row = order[i]
        pair = pairs[row]
        of_a += pair & -np.int64(a[row] <= p)
        of_b += pair & -np.int64(b[row] <= q)
        of_c += pair & -np.int64(c[row] <= r)
        of_d += pair & -np.int64(d[row] <= s)
    lefts = work.lefts
    lefts[first], lefts[first + 1], lefts[first + 2], lefts[first + 3] = of_a, of_b, of_c, of_d


@inner
def _divide(own: Bytes, cut: int, lo: int, hi: int, work: Work) -> int:
    """Move the rows of a node that lie beyond its cut behind the others; return where these end."""
    order, beyond, left, right = work.order[lo:hi], work.beyond, np.uint64(0), np.uint64(0)
    for i in range(len(order)):
        row = order[i]
        order[left] = beyond[right] = row
        goes_right = np.uint64(own[row] > cut)
        left += np.uint64(1) - goes_right
        right += goes_right
    for i in range(right):
        order[left + i] = beyond[i]
    return lo + int(left)
