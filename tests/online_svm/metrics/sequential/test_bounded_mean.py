"""Means with intervals that hold at all times."""

import math

import numpy as np
import pytest

from online_svm.metrics.sequential.bounded_mean import RHOS, BoundedMean
from online_svm.metrics.sequential.mixture_boundary import log_mixture


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


def test_intervals_hold_at_all_times_where_the_mean_moves():
    rng, left = np.random.default_rng(1), 0
    for _ in range(80):
        p = 0.3 + 0.2 * np.sin(np.arange(600) / 50)
        values, mean, is_left = (rng.random(600) < p).astype(float), BoundedMean(0, 1, 0.1), False
        for begin in range(0, 600, 20):
            mean.update(values[begin : begin + 20])
            lower, _, upper = mean.interval()
            is_left |= not lower <= p[: begin + 20].mean() <= upper
        left += is_left
    assert left <= 18  # beyond it less than one in a thousand of a binomial(80, .1)


def test_a_mean_of_zero_is_seldom_called_positive_and_a_small_one_is():
    rng, level = np.random.default_rng(2), 0.1
    false = 0
    for _ in range(100):
        mean = BoundedMean(-1.0, 1.0, level)
        mean.update(rng.choice([-0.2, 0.2], 500))
        false += bool(mean.rejected[0])
    assert false <= 21  # beyond it less than one in a thousand of a binomial(100, .1)
    mean = BoundedMean(-1.0, 1.0, level)
    mean.update(rng.choice([-0.2, 0.2], 4000) + 0.02)
    assert mean.rejected[0]
    assert mean.interval()[0] > 0
