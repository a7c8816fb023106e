import numpy as np
import pytest
from scipy import stats

from online_svm.calibration.binning import equal_count_bins
from online_svm.calibration.diagram import pool_ties
from online_svm.metrics.equal_mass_bins import bin_ends
from online_svm.metrics.reliability import binomial_range, reliability_bins


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
    bins = reliability_bins(p, y, n_bins=6, level=0.8)
    order = np.argsort(p)
    for found, inside in zip(bins, np.split(order, 6), strict=True):
        assert found.count == 50
        assert found.probability == pytest.approx(p[inside].mean(), abs=1e-15)
        assert found.frequency == y[inside].mean()
        ends = stats.binom.ppf([0.1, 0.9], 50, p[inside].mean()) / 50
        assert (found.lower, found.upper) == tuple(ends)


def test_the_band_of_right_probabilities_holds_at_least_its_level_of_the_frequencies():
    rng = np.random.default_rng(5)
    inside = total = 0
    for _ in range(300):
        p = rng.random(500)
        for found in reliability_bins(p, rng.random(500) < p):
            inside += found.lower <= found.frequency <= found.upper
            total += 1
    assert inside / total > 0.9


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
