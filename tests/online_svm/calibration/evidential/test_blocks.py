"""Evidential binning and isotonic regression."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate
from sklearn.isotonic import IsotonicRegression

from online_svm import EvidentialBinning, EvidentialIsotonic, ScoreBinning
from online_svm.calibration.evidential.binomial import binomial_mass
from online_svm.errors import InvalidSnapshot

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


def test_between_blocks_the_map_switches_half_way_and_the_middle_is_the_lower_side():
    fitted = EvidentialIsotonic("dempster").fit([0.0, 2.0], [0, 1])
    low, middle, high = fitted.predict_interval([0.999, 1.0, 1.001])
    np.testing.assert_array_equal(low, middle)
    assert high[0] > low[0]


@pytest.mark.parametrize("model", ["likelihood", "confidence"])
@pytest.mark.parametrize("kind", [EvidentialBinning, EvidentialIsotonic])
def test_the_contour_integrates_to_the_block_masses(kind, model):
    scores, labels = sample(80, 5)
    fitted = kind(model).fit(scores, labels)
    j = len(fitted.totals_) // 2
    score, mode = fitted.edges_[j], fitted.positives_[j] / fitted.totals_[j]
    tau = lambda t: fitted.contour(score, t)[0]  # noqa: E731  (an integrand)
    steps = [0.2, 0.4, 0.6, 0.8]
    below = integrate.quad(tau, 0, mode, limit=500, points=steps, epsabs=1e-8)[0]
    above = integrate.quad(tau, mode, 1, limit=500, points=steps, epsabs=1e-8)[0]
    m1, m0, _ = binomial_mass(model, fitted.positives_[j], fitted.totals_[j])
    np.testing.assert_allclose([m1, 1 - m0], [mode - below, mode + above], atol=1e-6)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("positives", np.array([0, 9])),
        ("totals", np.array([1, 0])),
        ("model", np.array([3])),
        ("alpha", np.array([np.nan])),
        ("edges", np.zeros(2)),
        ("edges", np.zeros(1, dtype=np.int64)),
        ("n_bins", np.array([0])),
    ],
)
def test_a_state_out_of_range_is_refused(name, value):
    state = EvidentialBinning(n_bins=2).fit([0.0, 1.0], [0, 1]).state()
    with pytest.raises(InvalidSnapshot, match="state"):
        EvidentialBinning.from_state(state | {name: value})


@given(st.lists(st.tuples(st.integers(-5, 5), st.booleans()), max_size=40), st.sampled_from(MODELS))
def test_isotonic_bel_and_pl_never_fall_with_the_score(examples, model):
    scores = [float(s) for s, _ in examples]
    fitted = EvidentialIsotonic(model).fit(scores, [y for _, y in examples])
    interval = fitted.predict_interval(np.linspace(-6, 6, 49))
    assert (np.diff(interval, axis=0) >= -1e-15).all()
