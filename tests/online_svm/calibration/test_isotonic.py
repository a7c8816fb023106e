"""Histogram binning and isotonic regression, against scikit-learn and counts by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

from online_svm import IsotonicMap, ScoreBinning
from online_svm.errors import InvalidSnapshot

scores = st.one_of(st.integers(-5, 5).map(float), st.integers(-500, 500).map(lambda v: v / 64))
samples = st.lists(st.tuples(scores, st.booleans()), min_size=1, max_size=60)


@settings(deadline=None)
@given(samples)
def test_values_are_scikit_learns_at_between_and_beyond_the_scores(sample):
    values, labels = map(np.array, zip(*sample, strict=True))
    reference = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
    reference.fit(values, labels.astype(float))
    grid = np.concatenate((values, np.linspace(-12, 12, 769)))
    ours = IsotonicMap().fit(values, labels).predict(grid)
    assert ours == pytest.approx(reference.predict(grid), abs=1e-12)


def test_a_gap_as_wide_as_the_doubles_is_crossed_without_overflow():
    fitted = IsotonicMap().fit([-1.7e308, 1.7e308], [0, 1])
    assert fitted.predict([-1.7e308, 0.0, 1.7e308]).tolist() == [0.0, 0.5, 1.0]


def test_subnormal_gaps_give_the_values_of_their_ends():
    fitted = IsotonicMap().fit([0.0, 5e-324], [0, 1])
    assert fitted.predict([0.0, 5e-324]).tolist() == [0.0, 1.0]


def test_a_state_with_a_reversed_block_is_refused():
    state = IsotonicMap().fit([0.0, 1.0], [0, 1]).state()
    state["lower"], state["upper"] = state["upper"] + 1.0, state["lower"]
    with pytest.raises(InvalidSnapshot, match="ends before it begins"):
        IsotonicMap.from_state(state)


tied_samples = st.lists(st.tuples(st.integers(-4, 4), st.booleans()), min_size=1, max_size=40)


@pytest.mark.parametrize("n", [10, 11, 19, 95, 100, 2000])
def test_bins_have_equal_counts_and_the_frequencies_of_sorted_tenths(n):
    scores = np.random.default_rng(n).permutation(n).astype(float)
    totals = ScoreBinning(10).fit(scores, scores > n / 2).totals_
    assert (len(totals), totals.sum()) == (10, n)
    assert totals.max() - totals.min() <= 1
    rng = np.random.default_rng(3)
    scores, labels = rng.normal(size=500), rng.random(500) < 0.3
    by_rank = labels[np.argsort(scores)].reshape(10, 50).mean(axis=1)
    fitted = ScoreBinning(10).fit(scores, labels)
    answers = fitted.predict(np.sort(scores)).reshape(10, 50)
    assert answers == pytest.approx(np.tile(by_rank[:, None], 50))


@given(tied_samples, st.integers(1, 12))
def test_ties_share_a_bin_and_no_bin_is_empty(sample, n_bins):
    scores, labels = map(np.array, zip(*sample, strict=True))
    fitted = ScoreBinning(n_bins).fit(scores, labels)
    assert (fitted.totals_ > 0).all()
    assert len(fitted.totals_) <= min(n_bins, len(set(scores.tolist())))
    bins = np.searchsorted(fitted.edges_, scores, side="left")
    for j in range(len(fitted.totals_)):
        assert fitted.totals_[j] == (bins == j).sum()
        assert fitted.positives_[j] == labels[bins == j].sum()


@given(tied_samples, st.integers(1, 12), st.floats(-6, 6))
def test_a_score_outside_every_bin_takes_the_nearest(sample, n_bins, query):
    scores, labels = map(np.array, zip(*sample, strict=True))
    fitted = ScoreBinning(n_bins).fit(scores, labels)
    nearest = scores[np.abs(scores - query) == np.abs(scores - query).min()].min()
    assert fitted.predict([query]) == fitted.predict([nearest])


def test_neighbouring_floats_in_two_bins_keep_their_frequencies():
    low = np.nextafter(1.0, 2.0)  # odd: the middle to the next float rounds up to it
    high = np.nextafter(low, 2.0)
    assert ScoreBinning(2).fit([low, high], [0, 1]).predict([low, high]).tolist() == [0.0, 1.0]
