"""Each row's scores, their smoothed ranks among all before them, and what is bet on.

The p-value of a score is (number above it + U (number equal to it)) / (number of all), itself
counted, with U uniform on (0, 1). While scores are exchangeable these p-values are independent and
uniform (Vovk, Gammerman & Shafer 2022, "Algorithmic Learning in a Random World", chapter 8). Scores
are put into `CELLS` cells that were fixed beforehand: any function of a score will do.
"""

import math
from typing import NamedTuple

import numpy as np

from online_svm.compiled.jit import inner, jit
from online_svm.metrics.sequential.frozen_scorer import (
    CLASSES,
    FrozenScorer,
    Moments,
    log_sum,
    take,
)
from online_svm.stream.split import mix
from online_svm.types import Floats, Ints

CELLS = 256

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@inner
def uniform(seed: int, row: int, stream: int) -> float:
    """Return a number in [0, 1) that depends on all three, by the mixing of SplitMix64."""
    key = mix(np.uint64(seed) + _GOLDEN * np.uint64(stream + 1))
    return np.float64(mix(key ^ (np.uint64(row + 1) * _GOLDEN)) >> np.uint64(11)) * 2.0**-53


@inner
def cell_of(score: float, centre: float, spread: float) -> int:
    """Return the cell of a score: 0 ... CELLS - 1, half of them within `spread` of the centre."""
    z = (score - centre) / spread
    return min(CELLS - 1, int(CELLS * 0.5 * (1.0 + z / (1.0 + abs(z)))))


@inner
def ranked(counts: Ints, cell: int, u: float) -> float:
    """Count a score, and return its p-value.

    `counts`, shape (2 * CELLS,), is a tree of sums: the leaves stand in its second half, and node i
    holds the sum of nodes 2 i and 2 i + 1.
    """
    node, above = CELLS + cell, 0
    counts[node] += 1
    equal = counts[node]
    while node > 1:
        # Branch-free: whether a node is a left one would be mispredicted half of the time.
        above += counts[node ^ 1] * ((node & 1) ^ 1)
        node //= 2
        counts[node] += 1
    return float((above + u * equal) / counts[1])


PLACED = 100
"""Rows that fix the cells of a scorer's scores."""

LABEL, DENSITY, ODDS, OF_CLASS = range(4)
"""What is ranked: labels given features; density; odds; then, in its own rows, each class."""

RANKED = OF_CLASS + CLASSES


class RankState(NamedTuple):
    """What is held of the rows so far; all but the scorer is changed in place.

    Attributes
    ----------
    rows : ndarray of shape (1,)
        Their number.
    moments : Moments
        Of the rows for the next scorer.
    scorer : FrozenScorer
    recent : ndarray of shape (n_features,)
    places : ndarray of shape (RANKED, 3)
        Count, mean and sum of squares of what is ranked, of the first `PLACED` rows.
    trees : ndarray of shape (RANKED, 2 * CELLS)
    """

    rows: Ints
    moments: Moments
    scorer: FrozenScorer
    recent: Floats
    places: Floats
    trees: Ints


@jit
def rank_rows(
    X: Floats, labels: Ints, seed: int, held: RankState, of_class: Ints, values: Floats
) -> None:
    """Score and rank rows, fill the values that are bet on, and gather what the next fit needs.

    `of_class` has the column of values of each class; it is empty while there is no scorer.
    """
    rows, moments, scorer, recent, places, trees = held
    values[:] = np.nan
    logs, ranked_scores = np.empty(len(of_class)), np.empty(OF_CLASS + 1)
    common = int(np.argmax(scorer.constants))
    for i in range(len(X)):
        rows[0] += 1
        label = labels[i]
        take(X[i], label, moments, scorer, recent, logs)
        if not len(logs):
            continue
        # 1. The scores: label given features, density, odds of the commonest class, of its own.
        density = log_sum(logs, -1)
        own = logs[label] if label >= 0 else -np.inf
        ranked_scores[LABEL] = density - own
        ranked_scores[DENSITY] = -density
        ranked_scores[ODDS] = logs[common] - log_sum(logs, common)
        ranked_scores[OF_CLASS] = log_sum(logs, label) - own
        # 2. Each has a rank among those before; the first `PLACED` rows only fix the cells.
        for j in range(4):
            at = j if j < OF_CLASS else OF_CLASS + label
            if j in (LABEL, OF_CLASS) and label < 0:
                continue
            score = ranked_scores[j]
            # A row that every class excludes is as strange as can be: -inf less -inf is NaN.
            score = 1e30 if math.isnan(score) else min(max(score, -1e30), 1e30)
            if places[at, 0] < PLACED:
                places[at, 0] += 1.0
                step = score - places[at, 1]
                places[at, 1] += step / places[at, 0]
                places[at, 2] += step * (score - places[at, 1])
                continue
            spread = math.sqrt(places[at, 2] / PLACED) + 1e-12
            cell = cell_of(score, places[at, 1], spread)
            p = ranked(trees[at], cell, uniform(seed, rows[0], at))
            # 3. A large score has a small p-value; both ends of p are far from 1/2.
            if j == LABEL:
                values[i, 0] = 1.0 - 2.0 * p
            elif j == OF_CLASS:
                values[i, of_class[label]] = 1.0 - 2.0 * p
            else:
                column = 1 + 2 * (j - DENSITY)
                values[i, column] = 1.0 - 2.0 * p
                values[i, column + 1] = 4.0 * abs(p - 0.5) - 1.0
