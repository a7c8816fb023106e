"""Means with intervals that hold at all times, and which of two predictors loses less."""

import math

import numpy as np
import pytest

from online_svm.metrics.sequential.comparison import (
    RHOS,
    BoundedMean,
    ScoreComparison,
    reach_of,
    starts_of,
    strongest_mean,
)
from online_svm.metrics.sequential.confidence_sequence import log_mixture


def test_the_wealth_is_that_of_the_definition():
    values = np.random.default_rng(0).uniform(-1, 1.5, 200)
    mean = BoundedMean(-1.0, 1.5, 0.05)
    assert mean.interval() == (-1.0, 0.25, 1.5)  # before the first value it may be any
    mean.update(values[:11])
    mean.update(values[11:])
    scaled = values / 2.5
    before = [(scaled[:i].sum() + 0.1) / (i + 1) for i in range(200)]
    v = ((scaled - before) ** 2).sum()
    wealth = np.mean([math.exp(log_mixture(scaled.sum(), v, rho)) for rho in RHOS])
    assert mean.log_wealth[0] == pytest.approx(math.log(wealth))


def test_the_better_one_is_found_and_by_how_much():
    rng = np.random.default_rng(1)
    p = rng.uniform(0.1, 0.9, 5000)
    y = rng.random(5000) < p
    comparison = ScoreComparison(1.0, 0.05)
    comparison.update((p - y) ** 2, (0.5 - y) ** 2)
    assert comparison.rejected.tolist() == [True, False]
    between = comparison.difference
    gain = -((p - 0.5) ** 2).mean()
    assert between.lower < gain < between.upper < 0
    assert comparison.log_wealth[0] > np.log(20) > comparison.log_wealth[1]


def test_a_late_difference_is_reported_with_its_start():
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


def test_the_squares_of_an_interval_are_about_a_recent_mean():
    values = np.random.default_rng(3).uniform(-0.2, 0.4, 50)
    told = strongest_mean(values, 0.5, 0.05)
    mean = squares = 0.0
    for value in values.tolist():
        squares += (value - mean) ** 2
        mean += (value - mean) / 32.0
    reach = reach_of(squares, 0.5 * 0.05 * 0.25)  # a quarter of the level is the beginning's
    assert told.upper - told.estimate == pytest.approx(reach / 50, rel=1e-9)


def test_without_a_difference_the_overall_mean_is_reported():
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
