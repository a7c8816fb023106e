"""The compiled Clopper-Pearson interval against scipy's beta quantiles and binomial tails."""

import pytest
from scipy import stats

from online_svm.metrics.binomial_interval import N_CACHE_SLOTS, binomial_intervals, interval


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
def test_the_ends_are_the_quantiles_of_beta_distributions(level):
    intervals, tail = binomial_intervals(level), (1 - level) / 2
    for n in (1, 2, 7, 30, 143, 850, 2000, 20_000):
        for k in sorted({0, 1, n // 50, n // 3, n // 2, n - 1, n}):
            low, high = interval(intervals, k, n)
            expected_low = stats.beta.ppf(tail, k, n - k + 1) if k else 0.0
            expected_high = stats.beta.ppf(1 - tail, k + 1, n - k) if k < n else 1.0
            assert low == pytest.approx(expected_low, rel=1e-9, abs=1e-15)
            assert high == pytest.approx(expected_high, rel=1e-9, abs=1e-15)


def test_counts_that_share_a_slot_do_not_mix():
    intervals = binomial_intervals(0.9)
    slots = {}
    for n in range(1, 400):
        for k in range(0, n + 1, 7):
            slot = (n * 1_000_003 + k) % N_CACHE_SLOTS
            if slot in slots:
                one, other = slots[slot], (k, n)
                before = interval(intervals, *one)
                assert interval(intervals, *other) != before
                assert interval(intervals, *one) == before
                return
            slots[slot] = (k, n)
    pytest.fail("no two counts share a slot")
