"""Rows for the exchangeability tests, and the numbers that rank equal scores, by hand."""

import numpy as np

from online_svm.stream.prediction import ScoredRows

WORD = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def rows_of(X, columns, classes=("a", "b"), first=0):
    m, nothing = len(X), np.zeros((len(X), len(classes)))
    zeros = np.zeros(m, dtype=np.int64)
    n = first + np.arange(m)
    parts = (nothing, nothing, nothing, nothing, nothing, zeros)
    return ScoredRows(n, classes, columns, *parts, model=1, X=X)


def mixed(z):
    """The finalizer of SplitMix64, by Python's integers."""
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & WORD
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & WORD
    return z ^ (z >> 31)


def uniform(seed, row, stream):
    key = mixed(seed + GOLDEN * (stream + 1) & WORD)
    return (mixed(key ^ ((row + 1) * GOLDEN & WORD)) >> 11) / 2**53
