"""Means with intervals that hold at all times, with all labels and with few."""

import math

import numpy as np
import pytest

from online_svm.errors import InvalidInput, InvalidSnapshot
from online_svm.metrics.sequential.bounded_mean import RHOS, BoundedMean
from online_svm.metrics.sequential.mixture_boundary import log_mixture
from online_svm.metrics.sequential.prediction_powered import PredictionPoweredMean


def test_the_wealth_is_that_of_the_definition():
    values = np.random.default_rng(0).uniform(-1, 1.5, 200)
    mean = BoundedMean(-1.0, 1.5, 0.05)
    mean.update(values)
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


def test_means_do_not_depend_on_cuts_and_go_on_from_a_state():
    values = np.random.default_rng(3).random(200)
    whole, part = BoundedMean(0, 1, 0.05), BoundedMean(0, 1, 0.05)
    whole.update(values)
    part.update(values[:11])
    part = BoundedMean.from_state(part.state(), 0, 1, 0.05)
    part.update(values[11:])
    assert whole.interval() == part.interval()
    assert whole.count == part.count == 200


def test_before_the_first_value_the_mean_may_be_any():
    assert BoundedMean(-1.0, 3.0, 0.05).interval() == (-1.0, 1.0, 3.0)
    assert PredictionPoweredMean(0.5, 0.05).interval() == (0.0, 0.5, 1.0)


def test_bad_input_is_refused():
    with pytest.raises(InvalidInput, match="low < high"):
        BoundedMean(1.0, 1.0, 0.05)
    with pytest.raises(InvalidInput, match=r"\[0.0, 1.0\]"):
        BoundedMean(0.0, 1.0, 0.05).update(np.array([0.5, np.nan]))
    with pytest.raises(InvalidInput, match="rate"):
        PredictionPoweredMean(0.0, 0.05)
    for restored in (BoundedMean, PredictionPoweredMean):
        with pytest.raises(InvalidSnapshot):
            restored.from_state({}, *([0.0, 1.0] if restored is BoundedMean else [0.5]), 0.05)


def test_a_probability_that_knows_something_makes_the_interval_narrower():
    rng = np.random.default_rng(4)
    p = rng.choice([0.05, 0.95], 40_000, p=[0.7, 0.3])
    y = (rng.random(40_000) < p).astype(float)
    y[rng.random(40_000) > 0.1] = np.nan  # a tenth is labelled
    with_p, without = PredictionPoweredMean(0.1, 0.05), PredictionPoweredMean(0.1, 0.05)
    with_p.update(p, y)
    without.update(np.full(40_000, 0.32), y)  # the best constant
    (low, _, high), (least, _, most) = with_p.interval(), without.interval()
    assert least < low < 0.32 < high < most
    assert high - low < 0.6 * (most - least)


def test_few_labels_suffice_for_intervals_that_hold():
    rng, left = np.random.default_rng(5), 0
    for _ in range(80):
        mean, p = PredictionPoweredMean(0.1, 0.1), rng.uniform(0.1, 0.6, 3000)
        y = np.where(rng.random(3000) < 0.1, rng.random(3000) < p + 0.2, np.nan)  # p is wrong
        is_left = False
        for begin in range(0, 3000, 100):
            rows = slice(begin, begin + 100)
            mean.update(p[rows], y[rows])
            lower, _, upper = mean.interval()
            is_left |= not lower <= (p[: begin + 100] + 0.2).mean() <= upper
        left += is_left
    assert left <= 18
    restored = PredictionPoweredMean.from_state(mean.state(), 0.1, 0.1)
    assert restored.interval() == mean.interval()


def test_an_estimate_from_few_labels_does_not_depend_on_how_answers_are_cut():
    rng = np.random.default_rng(8)
    p = rng.uniform(0.1, 0.6, 1000)
    y = np.where(rng.random(1000) < 0.5, rng.random(1000) < p, np.nan)
    whole, other = PredictionPoweredMean(0.5, 0.05), PredictionPoweredMean(0.5, 0.05)
    whole.update(p, y)
    for begin in range(0, 1000, 7):
        other.update(p[begin : begin + 7], y[begin : begin + 7])
    np.testing.assert_array_equal(whole.state()["sums"], other.state()["sums"])
