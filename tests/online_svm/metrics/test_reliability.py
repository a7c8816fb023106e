"""Bins, statistics and CORP parts against scipy, scikit-learn and their definitions."""

import numpy as np
import pytest
from scipy import stats
from sklearn.isotonic import IsotonicRegression

from online_svm.calibration.diagram import equal_count_bins, pool_ties
from online_svm.metrics.reliability import (
    as_bins,
    bin_ends,
    bin_rows,
    binomial_range,
    corp_decomposition,
    cumulative_statistics,
    sorted_events,
)
from online_svm.metrics.scores import brier


def tied(n, values, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, values, n) / values, rng.random(n) < 0.4


@pytest.mark.parametrize("n_bins", [1, 2, 7, 10, 500])
@pytest.mark.parametrize("values", [1, 3, 12, 10**6])
def test_bins_end_where_those_of_the_binning_map_do(values, n_bins):
    p, y = tied(200, values)
    blocks = equal_count_bins(pool_ties(p, y), n_bins)
    assert np.array_equal(bin_ends(np.sort(p), n_bins), np.cumsum(blocks.totals))


def test_a_bin_holds_its_count_mean_frequency_and_band():
    p, y = tied(300, 10**6)
    bins = as_bins(bin_rows(*sorted_events(p, y), 6, (1.0 - 0.8) / 2.0))
    order = np.argsort(p)
    for found, inside in zip(bins, np.split(order, 6), strict=True):
        assert found.count == 50
        assert found.probability == pytest.approx(p[inside].mean(), abs=1e-15)
        assert found.frequency == y[inside].mean()
        ends = stats.binom.ppf([0.1, 0.9], 50, p[inside].mean()) / 50
        assert (found.lower, found.upper) == tuple(ends)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("n", [1, 2, 17, 100, 3000])
def test_the_ends_of_a_band_are_the_quantiles_of_scipys_binomial(n, level):
    some = [0.0, 1e-12, 1e-4, 0.5, 1 - 1e-4, 1.0]
    tail = (1 - level) / 2
    for p in [*some, *np.random.default_rng(n).random(40).tolist()]:
        expected = max(0, stats.binom.ppf(tail, n, p)), max(0, stats.binom.isf(tail, n, p))
        assert binomial_range(n, p, tail) == expected


def test_a_large_group_has_a_band_where_the_weight_of_no_hit_underflows():
    low, high = binomial_range(100_000, 0.4, 0.05)
    spread = stats.norm.isf(0.05) * np.sqrt(0.24 / 100_000)
    ends = (0.4 - spread, 0.4 + spread)
    assert (low / 100_000, high / 100_000) == pytest.approx(ends, abs=2e-5)


def test_spiegelhalters_z_is_the_standardised_excess_of_the_brier_score():
    rng = np.random.default_rng(2)
    p, y = rng.random(200), rng.random(200) < 0.5
    found, *_ = cumulative_statistics(*sorted_events(p, y))
    # Brier score less its expectation, over its standard deviation, if p is right.
    excess = np.mean((p - y) ** 2) - np.mean(p * (1 - p))
    deviation = np.sqrt(np.sum((1 - 2 * p) ** 2 * p * (1 - p))) / len(p)
    assert found == pytest.approx(excess / deviation, rel=1e-12)


@pytest.mark.parametrize("values", [4, 10**6])
def test_the_cumulative_statistics_are_those_over_all_intervals_of_probability(values):
    rng = np.random.default_rng(4)
    p, y = rng.integers(0, values, 80) / values, rng.random(80) < 0.3
    _, greatest, span = cumulative_statistics(*sorted_events(p, y))
    edges = [-1.0, *np.unique(p)]
    below = [np.sum((y - p)[p <= edge]) / 80 for edge in edges]
    assert greatest == pytest.approx(np.abs(below).max(), abs=1e-14)
    widest = max(abs(a - b) for a in below for b in below)
    assert span == pytest.approx(widest, abs=1e-14)


def test_without_variance_there_is_no_z():
    z, *_ = cumulative_statistics(*sorted_events([0.0, 0.5, 1.0], [0, 1, 1]))
    assert np.isnan(z)


def forecasts(kind, n=400):
    rng = np.random.default_rng(len(kind))
    p = {
        "distinct": rng.random(n),
        "tied": rng.integers(0, 7, n) / 6,
        "rare": rng.beta(0.2, 6.0, n),
        "constant": np.full(n, 0.3),
    }[kind]
    return p, rng.random(n) < np.clip(0.8 * p + 0.15, 0, 1)


@pytest.mark.parametrize("kind", ["distinct", "tied", "rare", "constant"])
def test_the_parts_are_those_of_scikit_learns_isotonic_regression(kind):
    p, y = forecasts(kind)
    recalibrated = IsotonicRegression().fit_transform(p, y.astype(float))
    parts = corp_decomposition(p, y)
    constant = np.mean((y.mean() - y) ** 2)
    after = np.mean((recalibrated - y) ** 2)
    expected = (np.mean((p - y) ** 2), np.mean((p - y) ** 2) - after, constant - after, constant)
    assert parts == pytest.approx(expected, abs=1e-12)
    total = parts.miscalibration - parts.discrimination + parts.uncertainty
    assert total == pytest.approx(parts.brier, abs=1e-14)
    assert parts.brier == pytest.approx(brier(np.stack([1 - p, p], 1), y.astype(int)), abs=1e-14)
    assert min(parts) >= 0


def test_the_order_of_the_examples_changes_no_bit_even_among_ties():
    p, y = forecasts("tied")
    shuffled = np.random.default_rng(1).permutation(len(p))
    assert corp_decomposition(p, y) == corp_decomposition(p[shuffled], y[shuffled])


def test_single_outcomes_and_extreme_probabilities_are_decomposed():
    assert corp_decomposition([1.0, -0.0], [1, 1]) == (0.5, 0.5, 0.0, 0.0)
