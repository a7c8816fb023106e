"""Weights of examples: whole ones are repetitions, others agree with scikit-learn."""

import numpy as np
import pytest
from sklearn.calibration import _SigmoidCalibration
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from online_svm import (
    EvidentialBinning,
    EvidentialIsotonic,
    EvidentialLogistic,
    IsotonicMap,
    PlattScaling,
    ScoreBinning,
    VennAbers,
)
from online_svm.errors import InvalidInput

COUNTED = [IsotonicMap(), ScoreBinning(1), ScoreBinning(4), ScoreBinning(10)]
SIGMOIDS = [PlattScaling(m, t) for m in ("newton", "model-trust") for t in ("platt", "raw")]
ASKED = np.linspace(-4.0, 4.0, 101)


def sample(seed, n=80):
    """Return scores with ties, labels, and whole weights, some of them 0."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=n).round(1 + seed % 2)
    return scores, scores + rng.normal(size=n) > 0.0, rng.integers(0, 5, n)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("map_", COUNTED, ids=repr)
def test_whole_weights_give_the_bytes_of_repeated_examples(map_, seed):
    scores, labels, weights = sample(seed)
    weighted = map_.fit(scores, labels, sample_weight=weights.astype(np.float64)).state()
    repeated = map_.fit(np.repeat(scores, weights), np.repeat(labels, weights)).state()
    for name, values in repeated.items():
        np.testing.assert_array_equal(weighted[name], values)
        assert weighted[name].dtype == values.dtype


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e3])
def test_isotonic_regression_agrees_with_scikit_learn(seed, scale):
    scores, labels, _ = sample(seed)
    weights = np.random.default_rng(seed).exponential(size=len(scores)) * scale
    ours = IsotonicMap().fit(scores, labels, weights)
    theirs = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(scores, labels, weights)
    np.testing.assert_allclose(ours.predict(ASKED), theirs.predict(ASKED), atol=1e-9)
    assert (np.diff(ours.values_) >= 0.0).all()
    assert ours.values_.max() <= 1.0
    assert ours.values_.min() >= 0.0


@pytest.mark.parametrize("seed", range(6))
def test_the_sigmoid_agrees_with_that_of_scikit_learn(seed):
    scores, labels, _ = sample(seed)
    weights = np.random.default_rng(seed).exponential(size=len(scores))
    ours = PlattScaling().fit(scores, labels, weights)
    theirs = _SigmoidCalibration().fit(scores, labels.astype(np.float64), weights)
    np.testing.assert_allclose((ours.A_, ours.B_), (theirs.a_, theirs.b_), rtol=1e-3, atol=1e-4)
    raw = PlattScaling(targets="raw").fit(scores, labels, weights)
    likeliest = LogisticRegression(C=1e12, tol=1e-10).fit(scores[:, None], labels, weights)
    np.testing.assert_allclose(-raw.A_, likeliest.coef_[0, 0], rtol=1e-3)
    np.testing.assert_allclose(-raw.B_, likeliest.intercept_[0], rtol=1e-3, atol=1e-4)
    gaps = weights * (labels - raw.predict(scores))  # the gradient vanishes
    assert max(abs(gaps.sum()), abs((gaps * scores).sum())) < 1e-6


@pytest.mark.parametrize("n_bins", [1, 3, 10])
@pytest.mark.parametrize("scale", [1.0, 1e-6])
def test_a_bin_holds_an_equal_share_of_the_weight(n_bins, scale):
    rng = np.random.default_rng(n_bins)
    scores, labels = np.sort(rng.normal(size=500)), rng.random(500) < 0.4
    weights = rng.uniform(0.5, 1.5, 500) * scale
    fitted = ScoreBinning(n_bins).fit(scores, labels, weights)
    share = fitted.totals_ / weights.sum()
    assert len(share) == n_bins
    np.testing.assert_allclose(share, 1.0 / n_bins, atol=1.5 * weights.max() / weights.sum())
    inside = np.searchsorted(fitted.edges_, scores)
    expected = [
        np.average(labels[inside == k], weights=weights[inside == k]) for k in range(n_bins)
    ]
    np.testing.assert_allclose(fitted.positives_ / fitted.totals_, expected, rtol=1e-12)
    restored = ScoreBinning.from_state(fitted.state())
    np.testing.assert_array_equal(restored.predict(ASKED), fitted.predict(ASKED))


@pytest.mark.parametrize("map_", [*COUNTED, *SIGMOIDS[::2]], ids=repr)
def test_an_example_of_weight_zero_is_not_there(map_):
    scores, labels, _ = sample(0)
    weights = np.random.default_rng(0).exponential(size=len(scores))
    expected = map_.fit(scores, labels, weights).state()
    found = map_.fit([*scores, 1e9], [*labels, False], [*weights, 0.0]).state()
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values)
    nothing = map_.fit(scores, labels, np.zeros(len(scores)))
    np.testing.assert_array_equal(nothing.predict([0.0, 1.0]), 0.5)


@pytest.mark.parametrize("map_", [*COUNTED, *SIGMOIDS], ids=repr)
def test_weights_of_one_change_no_byte(map_):
    scores, labels, _ = sample(1)
    expected = map_.fit(scores, labels).state()
    found = map_.fit(scores, labels, np.ones(len(scores))).state()
    assert {k: v.tobytes() for k, v in found.items()} == {
        k: v.tobytes() for k, v in expected.items()
    }


@pytest.mark.parametrize("map_", [IsotonicMap(), ScoreBinning(), PlattScaling()], ids=repr)
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, -1.0], "negative"), ([1.0, np.nan], "value 1 is nan"),
        ([1.0, np.inf], "value 1 is inf"), ([1.0, 1e-101], "sizes from"),
        ([1.0, 1e101], "sizes from"), ([1.0], "one weight for each of 2 scores"),
        ([[1.0, 1.0]], "one weight for each of 2 scores"), (["a", "b"], "expected numbers"),
    ],
    ids=str,
)  # fmt: skip
def test_weights_that_cannot_be_used_are_named(map_, weights, message):
    with pytest.raises(InvalidInput, match=f"sample_weight: .*{message}"):
        map_.fit([0.0, 1.0], [0, 1], weights)


@pytest.mark.parametrize(
    "map_", [VennAbers(), EvidentialBinning(), EvidentialIsotonic(), EvidentialLogistic()], ids=repr
)
def test_intervals_whose_width_counts_examples_take_no_weights(map_):
    with pytest.raises(TypeError, match="sample_weight"):
        map_.fit([0.0, 1.0], [0, 1], sample_weight=[1.0, 2.0])
