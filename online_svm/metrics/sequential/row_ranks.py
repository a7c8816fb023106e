"""Each row's scores, their ranks, and what is bet on: one pass over the rows."""

import math

import numpy as np

from online_svm.compiled.jit import jit
from online_svm.metrics.sequential.conformal_ranks import cell_of, ranked, uniform
from online_svm.metrics.sequential.frozen_scorer import (
    CLASSES,
    log_sum,
    take,
)
from online_svm.types import Floats, Ints

PLACED = 100
"""Rows that fix the cells of a scorer's scores."""

MEMORY = 250.0  # rows behind the recent mean of a feature

LABEL, DENSITY, ODDS, OF_CLASS = range(4)
"""What is ranked: labels given features; density; odds; then, in its own rows, each class."""

RANKED = OF_CLASS + CLASSES


@jit
def rank_rows(
    X: Floats,
    labels: Ints,
    seed: int,
    has_scorer: bool,
    rows: Ints,
    moments: tuple[Floats, Floats, Floats],
    scorer: tuple[Floats, Floats, Floats],
    recent: Floats,
    places: Floats,
    trees: Ints,
    of_class: Ints,
    n_classes: int,
    values: Floats,
) -> None:
    """Score and rank rows, fill the values that are bet on, and gather what the next fit needs."""
    counts, means, squares = moments
    values[:] = np.nan
    logs, ranked_scores = np.empty(n_classes), np.empty(OF_CLASS + 1)
    common = int(np.argmax(scorer[0]))
    for i in range(len(X)):
        rows[0] += 1
        label = labels[i]
        take(X[i], label, has_scorer, counts, means, squares, scorer, recent, MEMORY, logs)
        if not has_scorer:
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
