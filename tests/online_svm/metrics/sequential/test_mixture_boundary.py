"""The gamma-exponential mixture: against quadrature, and as a bound by simulation."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import gammainc, gammaln

from online_svm.metrics.sequential.mixture_boundary import boundary, log_mixture


def by_quadrature(s, v, rho):
    """The mixture over l of exp(l s - (-ln(1 - l) - l) v), with its density written out."""
    constant = rho * math.log(rho) - gammaln(rho) - math.log(gammainc(rho, rho))

    def integrand(u):
        size = 1.0 - u
        density = constant + (rho - 1) * math.log(u) - rho * u
        return math.exp(density + size * s + v * (math.log(u) + size))

    return math.log(quad(integrand, 0.0, 1.0, epsabs=0, epsrel=1e-10, limit=200)[0])


@pytest.mark.parametrize(("s", "v", "rho"), [(5, 3, 2), (-4, 10, 5), (30, 100, 50), (60, 20, 50)])
def test_the_closed_form_is_the_integral(s, v, rho):
    assert log_mixture(s, v, rho) == pytest.approx(by_quadrature(s, v, rho), abs=1e-8)


def test_the_boundary_is_where_the_mixture_reaches_the_level():
    assert log_mixture(boundary(80.0, 0.01), 80.0) == pytest.approx(math.log(100), abs=1e-6)


def test_sums_of_rare_events_stay_below_the_boundary_at_all_times():
    rng, runs = np.random.default_rng(0), 300
    outcomes = (rng.random((runs, 1500)) < 0.1) - 0.1
    sums, squares = outcomes.cumsum(axis=1), (outcomes**2).cumsum(axis=1)
    at = range(5, 1500, 15)
    left = [any(s[t] > boundary(v[t], 0.1) for t in at) for s, v in zip(sums, squares, strict=True)]
    assert sum(left) <= 47  # beyond it less than one in a thousand of a binomial(300, .1)


CONFSEQ = {
    (1.0, 0.01): (12.29814175003412, 16.09150288946796),
    (50.0, 0.01): (27.608182028257033, 5.381306357417458),
    (3000.0, 0.01): (207.735005195957, -2.444587212135957),
}
"""By their package, version 0.0.11: the boundary, and the mixture at a sum of 30."""


@pytest.mark.parametrize(("v", "level"), CONFSEQ)
def test_boundary_and_mixture_are_those_of_the_package_of_their_authors(v, level):
    bound, log = CONFSEQ[v, level]
    assert boundary(v, level) == pytest.approx(bound, rel=1e-8)
    assert log_mixture(30.0, v) == pytest.approx(log, rel=1e-9)
