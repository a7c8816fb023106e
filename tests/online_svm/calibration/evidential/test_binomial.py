"""The closed forms against quadrature of the contours they integrate."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, stats

from online_svm.calibration.evidential.binomial import (
    binomial_contour,
    binomial_mass,
    clopper_pearson,
    confidence_mass,
    dempster_mass,
    likelihood_mass,
)

COUNTS = [
    (k, n)
    for n in (1, 2, 3, 7, 20, 100, 463, 1000)
    for k in sorted({0, 1, n // 7, n // 3, n // 2, n - 1, n})
]


def integral(function, low, high, k, n):
    """Integrate, with the places where the integrand turns given to the quadrature."""
    mode, width = k / n, 1 / np.sqrt(n)
    breaks = {low, high, *np.clip(mode + width * np.array([-4, -2, -1, -0.3, 0.3, 1, 2, 4]), 0, 1)}
    ends = sorted(b for b in breaks if low <= b <= high)
    parts = pairwise(ends)
    return sum(integrate.quad(function, a, b, epsabs=1e-13, epsrel=1e-13)[0] for a, b in parts)


def relative_likelihood(k, n):
    """Eq. 29 by another route: scipy's binomial distribution."""
    top = stats.binom.logpmf(k, n, k / n)
    return lambda tau: np.exp(stats.binom.logpmf(k, n, tau) - top)


@pytest.mark.parametrize(("k", "n"), COUNTS)
def test_likelihood_masses_are_the_integrals_of_the_relative_likelihood(k, n):
    contour, mode = relative_likelihood(k, n), k / n
    belief = mode - integral(contour, 0.0, mode, k, n)
    plausibility = mode + integral(contour, mode, 1.0, k, n)
    m1, m0, both = likelihood_mass(k, n)
    np.testing.assert_allclose([m1, 1.0 - m0], [belief, plausibility], rtol=0, atol=1e-9)
    assert both == pytest.approx(plausibility - belief, abs=1e-9)


@pytest.mark.parametrize(("k", "n"), COUNTS)
def test_dempsters_masses_are_the_mean_ends_of_the_random_interval(k, n):
    # The k-th of n uniform values is Beta(k, n - k + 1), the next one Beta(k + 1, n - k).
    plausibility = integral(lambda t: stats.binom.cdf(k, n, t), 0.0, 1.0, k, n)
    m1, m0, _ = dempster_mass(k, n)
    assert 1.0 - m0 == pytest.approx(plausibility, abs=1e-9)
    if k:
        belief = integral(lambda t: stats.beta.sf(t, k, n - k + 1), 0.0, 1.0, k, n)
        assert m1 == pytest.approx(belief, abs=1e-9)
    else:
        assert m1 == 0.0


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.5])
@pytest.mark.parametrize(("k", "n"), COUNTS)
def test_each_clopper_pearson_bound_leaves_half_of_alpha_in_the_tail(k, n, alpha):
    lower, upper = clopper_pearson(k, n, alpha)
    if k > 0:
        assert stats.binom.sf(k - 1, n, lower) == pytest.approx(alpha / 2, rel=1e-9)
    else:
        assert lower == 0.0
    if k < n:
        assert stats.binom.cdf(k, n, upper) == pytest.approx(alpha / 2, rel=1e-9)
    else:
        assert upper == 1.0


@pytest.mark.parametrize(("k", "n"), COUNTS)
def test_confidence_masses_are_the_integrals_of_a_step(k, n):
    alpha = 0.05
    lower = stats.beta.ppf(alpha / 2, k, n - k + 1) if k else 0.0
    upper = stats.beta.ppf(1 - alpha / 2, k + 1, n - k) if k < n else 1.0
    # The contour is alpha outside [lower, upper] and 1 inside, and its mode lies inside.
    belief = lower - integrate.quad(lambda _: alpha, 0.0, lower)[0]
    plausibility = upper + integrate.quad(lambda _: alpha, upper, 1.0)[0]
    m1, m0, _ = confidence_mass(k, n, alpha)
    np.testing.assert_allclose([m1, 1.0 - m0], [belief, plausibility], rtol=0, atol=1e-9)


@pytest.mark.parametrize("model", ["likelihood", "confidence", "dempster"])
def test_without_examples_every_model_is_vacuous(model):
    np.testing.assert_array_equal(binomial_mass(model, 0, 0), [0.0, 0.0, 1.0])
    tau = [0.0, 0.3, 1.0]
    np.testing.assert_array_equal(binomial_contour(model, 0, 0, tau), np.ones(3))


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_at_both_limits_of_alpha_confidence_is_vacuous(alpha):
    k, n = np.array(COUNTS).T
    expected = np.tile([0.0, 0.0, 1.0], (len(COUNTS), 1))
    np.testing.assert_array_equal(confidence_mass(k, n, alpha), expected)


@pytest.mark.parametrize("model", ["likelihood", "confidence", "dempster"])
def test_masses_of_any_counts_are_proper(model):
    k, n = np.array([(k, n) for n in (0, 1, 2, 30, 10**6, 10**9) for k in (0, n // 3, n)]).T
    masses = binomial_mass(model, k, n)
    assert np.isfinite(masses).all()
    assert (masses >= 0).all()
    np.testing.assert_allclose(masses.sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize(("k", "n"), [(0, 4), (3, 10), (500, 1000), (7, 7)])
def test_contours_are_the_binomial_probability_or_that_relative_to_the_largest(k, n):
    tau = np.linspace(0.0, 1.0, 41)
    for model, expected in (
        ("likelihood", relative_likelihood(k, n)(tau)),
        ("dempster", stats.binom.pmf(k, n, tau)),
    ):
        np.testing.assert_allclose(binomial_contour(model, k, n, tau), expected, atol=1e-12)


def test_the_confidence_contour_is_alpha_outside_the_interval():
    lower, upper = clopper_pearson(3, 10, 0.1)
    tau = [0.0, lower, 0.3, upper, 1.0]
    contour = binomial_contour("confidence", 3, 10, tau, alpha=0.1)
    np.testing.assert_array_equal(contour, [0.1, 1.0, 1.0, 1.0, 0.1])
