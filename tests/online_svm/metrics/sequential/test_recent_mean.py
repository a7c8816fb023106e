"""Means since several starts: which start is told, and that all intervals hold together."""

import numpy as np
import pytest

from online_svm.metrics.sequential.bounded_mean import BoundedMean
from online_svm.metrics.sequential.recent_mean import starts_of, strongest_mean


def test_a_difference_that_began_late_is_told_from_where_it_began():
    rng = np.random.default_rng(0)
    values = np.clip(rng.normal(0.0, 0.1, 20_000), -1, 1)
    values[19_000:] += 0.08
    told = strongest_mean(values, 1.0, 0.05)
    assert abs(told.since - 19_000) < 600
    true = 0.08 * 1000 / told.count
    assert 0.02 < told.lower < true < told.upper
    assert told.estimate == pytest.approx(values[told.since :].mean())
    whole = BoundedMean(-1.0, 1.0, 0.05)
    whole.update(values)
    assert whole.interval()[0] < 0.01


def test_without_a_difference_the_mean_of_all_is_told():
    values = np.random.default_rng(1).uniform(-0.3, 0.3, 5000)
    told = strongest_mean(values, 1.0, 0.05)
    assert (told.since, told.count) == (0, 5000)
    assert told.lower < 0 < told.upper


def test_the_intervals_of_all_starts_hold_together_at_all_times():
    rng, runs, level = np.random.default_rng(2), 200, 0.2
    left = 0
    for _ in range(runs):
        values = rng.choice([-0.5, 0.5], 700)
        left += any(
            abs(strongest_mean(values[:stop], 0.5, level).estimate) > 0
            and not _holds_zero(strongest_mean(values[:stop], 0.5, level))
            for stop in range(64, 700, 64)
        )
    assert left <= 58  # beyond it less than one in a thousand of a binomial(200, .2)


def _holds_zero(mean):
    return mean.lower <= 0 <= mean.upper


@pytest.mark.parametrize("count", [1, 64, 65, 1000, 123_456])
def test_starts_are_few_and_the_near_ones_lie_close_together(count):
    starts = starts_of(count)
    assert starts[0] == 0
    assert len(starts) <= 2 * 12 + 1
    assert all(0 <= start < count and start % 64 == 0 for start in starts)
    assert count - starts[-1] <= 64
