import numpy as np
import pytest
from scipy import stats

from online_svm.metrics.calibration_error import (
    calibration_error,
    calibration_error_floor,
    squared_calibration_error,
)
from online_svm.metrics.scores import expected_calibration_error


def literal(p, y, n_bins):
    """The definition in a loop, for distinct probabilities: rank r of n is in bin n_bins r / n."""
    ranked = sorted(zip(p, y, strict=True))
    total, used = 0.0, 0
    for b in range(n_bins):
        inside = [pair for r, pair in enumerate(ranked) if n_bins * r // len(ranked) == b]
        if len(inside) < 2:
            continue
        residuals = [happened - said for said, happened in inside]
        mean, variance = np.mean(residuals), np.var(residuals, ddof=1)
        total += len(inside) * (mean**2 - variance / len(inside))
        used += len(inside)
    return total / used


def uneven(rng, n):
    """Probabilities of which most are near 0 and a third are tied."""
    p = rng.beta(0.3, 3.0, n)
    p[: n // 3] = 0.25
    return p


def simulated(n, draws, said, truth, n_bins=15):
    rng = np.random.default_rng(7)
    found = []
    for _ in range(draws):
        p = truth(rng, n)
        found.append(squared_calibration_error(said(p), rng.random(n) < p, n_bins))
    return np.mean(found), np.std(found, ddof=1) / np.sqrt(draws)


@pytest.mark.parametrize("n", [20, 300])
@pytest.mark.parametrize("truth", [lambda rng, n: rng.random(n), uneven])
def test_the_debiased_error_of_a_perfect_forecaster_is_zero_on_average(n, truth):
    mean, error = simulated(n, 4000, lambda p: p, truth)
    assert abs(mean) < 4 * error
    assert error < 2e-3


def test_the_debiased_error_of_a_constant_bias_is_that_bias_on_average():
    mean, error = simulated(300, 4000, lambda p: p + 0.1, lambda rng, n: 0.8 * rng.random(n))
    assert abs(mean - 0.01) < 4 * error
    assert error < 2e-4


def test_the_common_form_of_a_perfect_forecaster_is_not_zero():
    rng = np.random.default_rng(3)
    found = []
    for _ in range(300):
        p = rng.random(300)
        found.append(expected_calibration_error(p, rng.random(300) < p))
    # .070 is the figure for 15 bins of 300 probabilities that are uniform.
    assert np.mean(found) == pytest.approx(0.070, abs=0.003)
    assert calibration_error_floor(p) == pytest.approx(np.mean(found), abs=0.004)


def test_the_debiased_error_is_its_definition():
    rng = np.random.default_rng(0)
    p = rng.random(101)
    y = rng.random(101) < p**2
    assert squared_calibration_error(p, y) == pytest.approx(literal(p, y, 15), rel=1e-12)


def test_the_debiased_error_does_not_depend_on_the_order_of_the_examples():
    rng = np.random.default_rng(0)
    p = rng.integers(0, 9, 200) / 8
    y = rng.random(200) < p
    other = rng.permutation(200)
    assert squared_calibration_error(p, y) == pytest.approx(
        squared_calibration_error(p[other], y[other]), rel=1e-12
    )


def test_a_bin_with_a_single_example_is_left_out():
    p, y = [0.2, 0.2, 0.2, 0.9], [0, 0, 0, 0]
    assert squared_calibration_error(p, y, 2) == pytest.approx(0.04, rel=1e-12)


def test_the_root_is_zero_where_chance_alone_explains_the_error():
    p, y = np.full(10, 0.5), np.arange(10) % 2
    assert squared_calibration_error(p, y) < 0.0
    assert calibration_error(p, y) == 0.0


def test_the_floor_of_equal_probabilities_is_the_mean_deviation_of_a_binomial():
    counts = np.arange(51)
    exact = stats.binom.pmf(counts, 50, 0.3) @ np.abs(counts / 50 - 0.3)
    found = calibration_error_floor(np.full(50, 0.3), draws=20_000)
    assert found == pytest.approx(exact, rel=0.03)
