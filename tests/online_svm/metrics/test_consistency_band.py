import numpy as np
import pytest
from scipy import stats

from online_svm.errors import InvalidInput
from online_svm.metrics.reliability import consistency_band


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("n", [1, 2, 17, 100, 3000])
def test_the_ends_are_the_quantiles_of_scipys_binomial(n, level):
    some = [0.0, 1e-12, 1e-4, 0.5, 1 - 1e-4, 1.0]
    p = np.concatenate([some, np.random.default_rng(n).random(40)])
    tail = (1 - level) / 2
    band = consistency_band(np.full(len(p), n), p, level)
    assert np.array_equal(band[:, 0], stats.binom.ppf(tail, n, p).clip(0) / n)
    assert np.array_equal(band[:, 1], stats.binom.isf(tail, n, p).clip(0) / n)


def test_a_large_group_has_a_band_where_the_weight_of_no_hit_underflows():
    low, high = consistency_band([100_000], [0.4])[0]
    spread = stats.norm.isf(0.05) * np.sqrt(0.24 / 100_000)
    assert (low, high) == pytest.approx((0.4 - spread, 0.4 + spread), abs=2e-5)


@pytest.mark.parametrize(
    ("counts", "p", "level"),
    [([0], [0.5], 0.9), ([1], [1.5], 0.9), ([1], [0.5], 1.0), ([1, 2], [0.5], 0.9)],
)
def test_an_empty_group_or_a_wrong_probability_or_level_is_refused(counts, p, level):
    with pytest.raises(InvalidInput):
        consistency_band(counts, p, level)
