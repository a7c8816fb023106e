from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from online_svm.calibration.diagram import isotonic_blocks, midpoints, pool_ties

few_scores = st.integers(-3, 3).map(float)
samples = st.lists(st.tuples(few_scores, st.booleans()), min_size=1, max_size=25)
floats = st.floats(allow_nan=False, allow_infinity=False)


def isotonic_by_min_max(means_of):
    """The max-min formula over whole fractions: slow, and independent of any pooling."""
    k = len(means_of)

    def mean(first, last):
        positives = sum(p for p, _ in means_of[first : last + 1])
        return Fraction(int(positives), int(sum(t for _, t in means_of[first : last + 1])))

    return [max(min(mean(a, b) for b in range(i, k)) for a in range(i + 1)) for i in range(k)]


@settings(deadline=None)
@given(samples)
def test_blocks_are_the_exact_isotonic_fit_with_equal_means_merged(sample):
    scores, labels = map(np.array, zip(*sample, strict=True))
    counts = pool_ties(scores, labels)
    expected = isotonic_by_min_max(list(zip(counts.positives, counts.totals, strict=True)))
    blocks = isotonic_blocks(counts)
    values = [
        Fraction(int(p), int(t)) for p, t in zip(blocks.positives, blocks.totals, strict=True)
    ]
    assert values == sorted(set(expected))
    inside = np.searchsorted(blocks.lower, counts.scores, side="right") - 1
    assert [values[j] for j in inside] == expected
    assert (counts.scores <= blocks.upper[inside]).all()


@given(samples)
def test_ties_are_counted_at_the_distinct_scores(sample):
    scores, labels = map(np.array, zip(*sample, strict=True))
    counts = pool_ties(scores, labels)
    assert counts.scores.tolist() == sorted(set(scores.tolist()))
    for score, total, positives in zip(counts.scores, counts.totals, counts.positives, strict=True):
        assert total == (scores == score).sum()
        assert positives == (labels & (scores == score)).sum()


def test_the_two_zeros_are_one_score():
    assert pool_ties(np.array([0.0, -0.0]), np.array([True, False])).totals.tolist() == [2]


@given(floats, floats)
def test_a_midpoint_keeps_each_neighbour_on_its_own_side(first, second):
    low, high = sorted((first, second))
    if low < high:
        edge = midpoints(np.array([low]), np.array([high]))[0]
        assert low <= edge < high


def test_the_edge_between_neighbouring_floats_is_the_lower_one():
    for low in (1.0, np.nextafter(1.0, 2.0), 5e-324, -5e-324):
        high = np.nextafter(low, 2.0)
        assert midpoints(np.array([low]), np.array([high]))[0] == low
