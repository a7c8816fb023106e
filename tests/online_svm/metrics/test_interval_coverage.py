import numpy as np
import pytest
from scipy import stats

from online_svm.metrics.interval_coverage import interval_coverage


def test_the_coverage_counts_examples_in_bins_whose_frequency_lies_in_the_interval():
    p = np.repeat([0.2, 0.8], [4, 4])
    y = [0, 0, 0, 1, 0, 0, 0, 1]  # frequencies .25 and .25
    found = interval_coverage(p, np.transpose([p - 0.1, p + 0.1]), y, n_bins=2)
    assert found.coverage == 0.5
    assert found.width == pytest.approx(0.2)


def test_a_perfect_forecaster_covers_as_often_as_the_binomial_says():
    p = np.full(60, 0.3)
    counts = np.arange(61)
    inside = (counts / 60 >= 0.22) & (counts / 60 <= 0.41)
    exact = stats.binom.pmf(counts, 60, 0.3)[inside].sum()
    found = interval_coverage(p, np.transpose([p - 0.08, p + 0.11]), np.zeros(60), draws=20_000)
    assert found.coverage == 0.0
    assert abs(found.of_perfect - exact) < 4 * np.sqrt(exact * (1 - exact) / 20_000)


def test_the_coverage_of_true_probabilities_is_on_average_that_of_a_perfect_forecaster():
    rng = np.random.default_rng(5)
    p = rng.random(300)
    ends = np.clip(np.transpose([p - 0.06, p + 0.06]), 0, 1)
    found = [interval_coverage(p, ends, rng.random(300) < p, draws=1).coverage for _ in range(2000)]
    expected = interval_coverage(p, ends, np.zeros(300), draws=2000).of_perfect
    assert abs(np.mean(found) - expected) < 4 * np.std(found) * np.sqrt(2 / 2000)
