"""Functions of statistics against scipy, and where scipy is less exact against decimal numbers."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy import special as scipy

from online_svm.compiled.elementary import logistic
from online_svm.compiled.special import (
    beta_quantile,
    erfc,
    incomplete_beta,
    log_beta,
    log_gamma,
    log_lower_gamma,
    normal_quantile,
)

RNG = np.random.default_rng(0)
HALF_LOG_TWO_PI = Decimal("0.91893853320467274178032973640561763986139747363778")


def bernoulli(count):
    """The first Bernoulli numbers of even index, from the second on."""
    row, found = [], []
    for m in range(2 * count + 1):
        row.append(Fraction(1, m + 1))
        for j in range(m, 0, -1):
            row[j - 1] = j * (row[j - 1] - row[j])
        found.append(row[0])
    return found[2::2]


BERNOULLI = bernoulli(24)


def exact_log_gamma(x):
    """ln Gamma(x) to forty digits, by Stirling's series from 60 on."""
    with localcontext() as context:
        context.prec = 50
        product, x = Decimal(1), Decimal(x)
        while x < 60:
            product, x = product * x, x + 1
        total = (x - Decimal("0.5")) * x.ln() - x + HALF_LOG_TWO_PI - product.ln()
        for k, number in enumerate(BERNOULLI, 1):
            term = Decimal(number.numerator) / number.denominator
            total += term / (2 * k * (2 * k - 1) * x ** (2 * k - 1))
        return total


SIZES = [0.5, 1.0, 2.0, 7.25, 10.0, 11.0, 60.5, 1e3, 123_456.0, 2.0**31]


@pytest.mark.parametrize("x", [*SIZES, 0.01, 1.5, 3.0, 9.99, 12.3, 100.0, 1e6])
def test_the_logarithm_of_the_gamma_function_is_that_to_forty_digits(x):
    exact = exact_log_gamma(x)
    assert abs(Decimal(log_gamma(x)) - exact) < Decimal("1e-15") * max(abs(exact), 10)


@pytest.mark.parametrize("a", SIZES)
@pytest.mark.parametrize("b", SIZES)
def test_the_logarithm_of_the_beta_function_does_not_cancel(a, b):
    exact = exact_log_gamma(a) + exact_log_gamma(b) - exact_log_gamma(Decimal(a) + Decimal(b))
    assert log_beta(a, b) == pytest.approx(float(exact), rel=2e-14, abs=2e-14)
    assert log_beta(a, b) == log_beta(b, a)


def test_the_incomplete_beta_function_is_that_of_scipy():
    a, b = 10.0 ** RNG.uniform(-1, 4, (2, 2000))
    x = np.clip(a / (a + b) + RNG.normal(0.0, 0.5, 2000) / np.sqrt(a + b), 1e-3, 0.999)
    ours = [
        incomplete_beta(*each, log_beta(*each[:2]))[0]
        for each in zip(a.tolist(), b.tolist(), x.tolist(), strict=True)
    ]
    np.testing.assert_allclose(ours, scipy.betainc(a, b, x), rtol=1e-10, atol=1e-300)


def test_the_quantile_of_the_beta_distribution_is_where_its_function_has_the_probability():
    for a, b in [(1.0, 1.0), (0.5, 3.0), (12.0, 900.0), (1.0, 1e6), (5e5, 5e5)]:
        for p in (1e-12, 0.001, 0.025, 0.5, 0.999):
            x = beta_quantile(a, b, p)
            assert scipy.betainc(a, b, x) == pytest.approx(p, rel=1e-9)
        assert (beta_quantile(a, b, 0.0), beta_quantile(a, b, 1.0)) == (0.0, 1.0)


@pytest.mark.parametrize("a", [0.5, 1.0, 5.0, 10.0, 57.3, 1e3, 1e5])
def test_the_lower_incomplete_gamma_function_is_that_of_scipy(a):
    for spread in (-0.9, -0.3, 0.0, 0.5, 2.0, 4.0, 4.5, 20.0):
        s = max(spread * math.sqrt(a), -0.99 * a) + (30.0 if spread >= 4.0 else 0.0)
        x = a + s
        expected = math.log(scipy.gammainc(a, x)) + scipy.gammaln(a) + x - a * math.log(x)
        assert log_lower_gamma(a, s) == pytest.approx(expected, abs=1e-14 * a * math.log(10 + a))


def test_the_complement_of_the_error_function_is_that_of_the_c_library():
    x = np.concatenate([RNG.uniform(0.0, 26.0, 2000), [0.0, 1.0, 0.9999999999999999, 1e-300]])
    expected = [math.erfc(value) for value in x.tolist()]
    np.testing.assert_allclose([erfc(value) for value in x.tolist()], expected, rtol=2e-14)
    assert [erfc(30.0), erfc(math.inf)] == [0.0, 0.0]


def test_normal_quantiles_are_those_of_scipy_and_infinite_at_zero():
    p = np.concatenate([10.0 ** RNG.uniform(-300, -0.4, 2000), [0.025, 0.4999999]])
    ours = [normal_quantile(value) for value in p.tolist()]
    np.testing.assert_allclose(ours, scipy.ndtri(p), rtol=1e-13, atol=1e-16)
    assert [normal_quantile(0.0), normal_quantile(0.5)] == [-math.inf, 0.0]


def test_the_logistic_function_agrees_with_the_formula_and_never_overflows():
    for value in (-30.0, -1.5, 0.0, 2.0, 30.0):
        assert logistic(value) == pytest.approx(1.0 / (1.0 + math.exp(-value)), rel=1e-14)
    assert (logistic(-1e308), logistic(1e308)) == (0.0, 1.0)
