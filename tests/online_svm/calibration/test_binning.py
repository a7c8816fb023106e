import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from online_svm import ScoreBinning

samples = st.lists(st.tuples(st.integers(-4, 4), st.booleans()), min_size=1, max_size=40)


@pytest.mark.parametrize("n", [10, 11, 19, 95, 100, 2000])
def test_distinct_scores_fill_bins_of_equal_count_with_the_frequencies_of_the_sorted_tenths(n):
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


@given(samples, st.integers(1, 12))
def test_ties_share_a_bin_and_no_bin_is_empty(sample, n_bins):
    scores, labels = map(np.array, zip(*sample, strict=True))
    fitted = ScoreBinning(n_bins).fit(scores, labels)
    assert (fitted.totals_ > 0).all()
    assert len(fitted.totals_) <= min(n_bins, len(set(scores.tolist())))
    bins = np.searchsorted(fitted.edges_, scores, side="left")
    for j in range(len(fitted.totals_)):
        assert fitted.totals_[j] == (bins == j).sum()
        assert fitted.positives_[j] == labels[bins == j].sum()


@given(samples, st.integers(1, 12), st.floats(-6, 6))
def test_a_score_outside_every_bin_takes_the_nearest(sample, n_bins, query):
    scores, labels = map(np.array, zip(*sample, strict=True))
    fitted = ScoreBinning(n_bins).fit(scores, labels)
    nearest = scores[np.abs(scores - query) == np.abs(scores - query).min()].min()
    assert fitted.predict([query]) == fitted.predict([nearest])


def test_fewer_examples_than_bins_get_a_bin_each():
    fitted = ScoreBinning(10).fit([3.0, 1.0, 2.0], [1, 0, 0])
    assert fitted.totals_.tolist() == [1, 1, 1]
    assert fitted.predict([0.9, 2.4, 2.6]).tolist() == [0.0, 0.0, 1.0]


def test_neighbouring_floats_in_two_bins_keep_their_own_frequency():
    low = np.nextafter(1.0, 2.0)  # odd: the middle to the next float rounds up to it
    high = np.nextafter(low, 2.0)
    assert ScoreBinning(2).fit([low, high], [0, 1]).predict([low, high]).tolist() == [0.0, 1.0]
