"""Closed forms against quadrature of the contours they integrate, and the maps in blocks."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, stats
from sklearn.isotonic import IsotonicRegression

from online_svm import EvidentialBinning, EvidentialIsotonic, ScoreBinning
from online_svm.calibration.evidential.blocks import (
    binomial_contour,
    binomial_mass,
    clopper_pearson,
)
from online_svm.errors import InvalidSnapshot

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
    m1, m0, both = binomial_mass("likelihood", k, n)
    np.testing.assert_allclose([m1, 1.0 - m0], [belief, plausibility], rtol=0, atol=1e-9)
    assert both == pytest.approx(plausibility - belief, abs=1e-9)


@pytest.mark.parametrize(("k", "n"), COUNTS)
def test_dempsters_masses_are_the_mean_ends_of_the_random_interval(k, n):
    # The k-th of n uniform values is Beta(k, n - k + 1), the next one Beta(k + 1, n - k).
    plausibility = integral(lambda t: stats.binom.cdf(k, n, t), 0.0, 1.0, k, n)
    m1, m0, _ = binomial_mass("dempster", k, n)
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
    m1, m0, _ = binomial_mass("confidence", k, n, alpha)
    np.testing.assert_allclose([m1, 1.0 - m0], [belief, plausibility], rtol=0, atol=1e-9)


@pytest.mark.parametrize("model", ["likelihood", "confidence", "dempster"])
def test_without_examples_every_model_is_vacuous(model):
    np.testing.assert_array_equal(binomial_mass(model, 0, 0), [0.0, 0.0, 1.0])
    tau = [0.0, 0.3, 1.0]
    np.testing.assert_array_equal(binomial_contour(model, 0, 0, tau), np.ones(3))


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


MODELS = ["likelihood", "confidence", "dempster"]


def sample(n, seed, digits=2):
    random = np.random.default_rng(seed)
    labels = random.random(n) < 0.5
    return np.round(random.normal(size=n) + labels, digits), labels


@pytest.mark.parametrize("model", MODELS)
def test_a_bin_has_the_masses_of_its_counts(model):
    scores, labels = sample(200, 1)
    fitted = EvidentialBinning(model, n_bins=7, alpha=0.1).fit(scores, labels)
    edges = [-np.inf, *fitted.edges_, np.inf]
    for low, high in pairwise(edges):
        inside = (scores > low) & (scores <= high)
        expected = binomial_mass(model, labels[inside].sum(), inside.sum(), 0.1)
        np.testing.assert_array_equal(
            fitted.mass(scores[inside]), np.tile(expected, (inside.sum(), 1))
        )


def test_the_bins_are_those_of_score_binning():
    scores, labels = sample(200, 2)
    plain = ScoreBinning(n_bins=9).fit(scores, labels)
    fitted = EvidentialBinning(n_bins=9).fit(scores, labels)
    np.testing.assert_array_equal(fitted.edges_, plain.edges_)
    np.testing.assert_array_equal(fitted.totals_, plain.totals_)
    assert (fitted.predict_interval(scores)[:, 0] <= plain.predict(scores)).all()
    assert (fitted.predict_interval(scores)[:, 1] >= plain.predict(scores)).all()


def test_isotonic_blocks_are_those_of_scikit_learn():
    scores, labels = sample(300, 3)
    fitted = EvidentialIsotonic().fit(scores, labels)
    reference = IsotonicRegression(out_of_bounds="clip").fit(scores, labels)
    means = fitted.positives_ / fitted.totals_
    blocks = np.searchsorted(fitted.edges_, scores)
    np.testing.assert_allclose(means[blocks], reference.predict(scores), atol=1e-12)
    assert (np.diff(means) > 0).all()
    np.testing.assert_array_equal(np.bincount(blocks), fitted.totals_)


def test_isotonic_envelopes_are_running_bounds_of_the_blocks_own():
    scores, labels = sample(300, 4)
    fitted = EvidentialIsotonic("confidence").fit(scores, labels)
    own = binomial_mass("confidence", fitted.positives_, fitted.totals_)
    belief, plausibility = own[:, 0], 1.0 - own[:, 1]
    assert (np.diff(belief) < 0).any()  # or the envelopes would not be needed
    assert (np.diff(plausibility) < 0).any()
    for j, score in enumerate(sorted({*fitted.edges_, fitted.edges_[-1] + 9.0})):
        expected = [belief[j:].min(), plausibility[: j + 1].max()]
        np.testing.assert_allclose(fitted.predict_interval([score])[0], expected, atol=1e-15)


def test_equal_means_are_merged_so_that_their_evidence_adds_up():
    # Violators pool to 1/2 twice over; together they are 2 of 4, not 1 of 2 twice.
    fitted = EvidentialIsotonic("dempster").fit([0.0, 1.0, 2.0, 3.0], [1, 0, 1, 0])
    np.testing.assert_array_equal(fitted.totals_, [4])
    np.testing.assert_allclose(fitted.mass([1.5]), [[0.4, 0.4, 0.2]])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("positives", np.array([0, 9])), ("totals", np.array([1, 0])), ("model", np.array([3])),
        ("alpha", np.array([np.nan])), ("edges", np.zeros(2)),
        ("edges", np.zeros(1, dtype=np.int64)), ("n_bins", np.array([0])),
    ],
)  # fmt: skip
def test_a_state_out_of_range_is_refused(name, value):
    state = EvidentialBinning(n_bins=2).fit([0.0, 1.0], [0, 1]).state()
    with pytest.raises(InvalidSnapshot, match="state"):
        EvidentialBinning.from_state(state | {name: value})
