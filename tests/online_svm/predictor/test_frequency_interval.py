"""The headline's interval: its bins, its counts, and that it holds the probability."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from online_svm.predictor.frequency_interval import FrequencyIntervals, bin_edges


def clopper_pearson(level, k, n):
    tail = (1 - level) / 2
    low = stats.beta.ppf(tail, k, n - k + 1) if k else 0.0
    return low, stats.beta.ppf(1 - tail, k + 1, n - k) if k < n else 1.0


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    unseen=st.booleans(),
    limit=st.none() | st.integers(1, 20),
)
def test_each_answer_is_the_interval_of_the_counts_before_it(seed, unseen, limit):
    rng = np.random.default_rng(seed)
    n_classes = 2 + unseen
    training = rng.normal(size=(27, 1)).round(1)
    scores = rng.normal(size=(50, 1)).round(1)
    columns = rng.integers(0, n_classes, 50)
    columns[25:] -= rng.integers(0, 2, 25) * (columns[25:] + 1)  # some without a label
    point = rng.dirichlet(np.ones(n_classes), 25)
    held = FrequencyIntervals(0.9, training, scores[:25], columns[:25], limit)
    lower, upper = held.answer(scores[25:], columns[25:], point)
    bins = np.searchsorted(bin_edges(training[:, 0]), scores[:, 0])
    for i in range(25):
        joined = np.flatnonzero(columns[: 25 + i] >= 0)
        joined = joined if limit is None else joined[-limit:]
        for k in range(n_classes):
            alike = bins[joined] == bins[25 + i] if k < 2 else np.ones(len(joined), dtype=np.bool_)
            # The first class is what the second is not.
            hit = columns[joined] == k if k else columns[joined] != 1
            hits = int(hit[alike].sum())
            low, high = clopper_pearson(0.9, hits, int(alike.sum()))
            assert lower[i, k] == pytest.approx(min(low, point[i, k]), abs=1e-9)
            assert upper[i, k] == pytest.approx(max(high, point[i, k]), abs=1e-9)


def test_there_are_as_many_bins_as_the_cube_root_of_the_training_scores_says():
    assert len(bin_edges(np.random.default_rng(0).normal(size=1000))) == 9
    assert bin_edges(np.empty(0)).tolist() == []
    assert bin_edges(np.zeros(1000)).tolist() == []  # ties are not divided
    assert bin_edges(np.arange(27.0)).tolist() == [8.5, 17.5]
