import numpy as np
import pytest

from online_svm.metrics.calibration_statistics import calibration_statistics


def test_spiegelhalters_z_is_the_standardised_excess_of_the_brier_score():
    rng = np.random.default_rng(2)
    p, y = rng.random(200), rng.random(200) < 0.5
    found = calibration_statistics(p, y).spiegelhalter_z
    # Brier score less its expectation, over its standard deviation, if p is right.
    excess = np.mean((p - y) ** 2) - np.mean(p * (1 - p))
    deviation = np.sqrt(np.sum((1 - 2 * p) ** 2 * p * (1 - p))) / len(p)
    assert found == pytest.approx(excess / deviation, rel=1e-12)


def test_spiegelhalters_z_of_right_probabilities_is_standard_normal():
    rng = np.random.default_rng(3)
    z = []
    for _ in range(2000):
        p = rng.random(200)
        z.append(calibration_statistics(p, rng.random(200) < p).spiegelhalter_z)
    assert abs(np.mean(z)) < 4 / np.sqrt(2000)
    assert np.var(z) == pytest.approx(1, abs=4 * np.sqrt(2 / 2000))


@pytest.mark.parametrize("values", [4, 10**6])
def test_the_cumulative_statistics_are_those_over_all_intervals_of_probability(values):
    rng = np.random.default_rng(4)
    p, y = rng.integers(0, values, 80) / values, rng.random(80) < 0.3
    found = calibration_statistics(p, y)
    edges = [-1.0, *np.unique(p)]
    below = [np.sum((y - p)[p <= edge]) / 80 for edge in edges]
    assert found.kolmogorov_smirnov == pytest.approx(np.abs(below).max(), abs=1e-14)
    widest = max(abs(a - b) for a in below for b in below)
    assert found.kuiper == pytest.approx(widest, abs=1e-14)


def test_deviations_that_cancel_are_found_by_kuiper_as_the_sum_of_both():
    p = np.repeat([0.1, 0.3, 0.6, 0.9], 100)
    y = np.concatenate([np.arange(100) < k for k in (20, 20, 50, 100)])
    found = calibration_statistics(p, y)
    assert found.kolmogorov_smirnov == pytest.approx(10 / 400)
    assert found.kuiper == pytest.approx(20 / 400)


def test_without_variance_there_is_no_z():
    assert calibration_statistics([0.0, 0.5, 1.0], [0, 1, 1]).spiegelhalter_z is None
