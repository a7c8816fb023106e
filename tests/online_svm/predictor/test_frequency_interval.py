"""The headline's interval: its bins, its counts, and that it holds the probability."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from online_svm.predictor.frequency_interval import FrequencyIntervals, bin_edges
from online_svm.stream.labels import ClassView


def clopper_pearson(level, k, n):
    tail = (1 - level) / 2
    low = stats.beta.ppf(tail, k, n - k + 1) if k else 0.0
    return low, stats.beta.ppf(1 - tail, k + 1, n - k) if k < n else 1.0


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_known=st.integers(2, 4),
    unseen=st.booleans(),
    limit=st.none() | st.integers(1, 20),
)
def test_each_answer_is_the_interval_of_the_counts_before_it(seed, n_known, unseen, limit):
    rng = np.random.default_rng(seed)
    n_scores, n_classes = 1 if n_known == 2 else n_known, n_known + unseen
    training = rng.normal(size=(27, n_scores)).round(1)
    scores = rng.normal(size=(50, n_scores)).round(1)
    columns = rng.integers(0, n_classes, 50)
    columns[25:] -= rng.integers(0, 2, 25) * (columns[25:] + 1)  # some without a label
    point = rng.dirichlet(np.ones(n_classes), 25)
    view = ClassView("abcdef"[:n_known], n_classes == n_known)
    held = FrequencyIntervals(0.9, view, training, scores[:25], columns[:25], limit)
    lower, upper = held.answer(scores[25:], columns[25:], point)
    edges = bin_edges(training)
    bins = np.stack([np.searchsorted(edges[g], scores[:, g]) for g in range(n_scores)], axis=1)
    for i in range(25):
        joined = np.flatnonzero(columns[: 25 + i] >= 0)
        joined = joined if limit is None else joined[-limit:]
        for k in range(n_classes):
            alike = np.ones(len(joined), dtype=np.bool_)
            if k < n_known:
                g = 0 if n_scores == 1 else k
                alike = bins[joined, g] == bins[25 + i, g]
            hits = int((columns[joined][alike] == k).sum())
            if n_known == 2 and k == 0:  # the first class is what the second is not
                hits = int((columns[joined][alike] != 1).sum())
            low, high = clopper_pearson(0.9, hits, int(alike.sum()))
            assert lower[i, k] == pytest.approx(min(low, point[i, k]), abs=1e-9)
            assert upper[i, k] == pytest.approx(max(high, point[i, k]), abs=1e-9)


def test_there_are_as_many_bins_as_the_cube_root_of_the_training_scores_says():
    assert bin_edges(np.random.default_rng(0).normal(size=(1000, 3))).shape == (3, 9)
    assert bin_edges(np.empty((0, 1))).shape == (1, 0)
    assert bin_edges(np.zeros((1000, 2))).shape == (2, 0)  # ties are not divided
    mixed = bin_edges(np.stack([np.zeros(27), np.arange(27.0)], axis=1))
    assert mixed.tolist() == [[math.inf, math.inf], [8.5, 17.5]]
