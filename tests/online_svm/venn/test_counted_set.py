"""The calibration set against the same thing done with Python lists."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from online_svm.venn.counted_set import CountedSet
from online_svm.venn.taxonomy import Taxonomy


class Named(Taxonomy):
    """The taxonomy whose score is the category."""

    def categories(self, scores: np.ndarray) -> np.ndarray:
        return scores[:, 0].astype(np.int64)


@given(
    first=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), max_size=20),
    later=st.lists(st.tuples(st.integers(0, 2), st.integers(-1, 3)), max_size=60),
    cuts=st.lists(st.integers(0, 60), max_size=5),
    limit=st.none() | st.integers(1, 25),
)
def test_counts_are_those_of_the_newest_examples_before_each_answer(first, later, cuts, limit):
    held = list(first)
    expected = []
    for category, code in later:
        newest = held if limit is None else held[-limit:]
        expected.append([sum(pair == (category, y) for pair in newest) for y in range(4)])
        if code >= 0:
            held.append((category, code))

    pairs = np.array(first, dtype=np.int64).reshape(-1, 2)
    kept = CountedSet(Named(3), pairs[:, :1] * 1.0, pairs[:, 1], 4, limit)
    stream = np.array(later, dtype=np.int64).reshape(-1, 2)
    bounds = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    answers = [kept.answer(stream[a:b, :1] * 1.0, stream[a:b, 1]) for a, b in pairwise(bounds)]
    met = np.array(expected, dtype=np.int64).reshape(-1, 4)
    lower = np.concatenate([each.lower for each in answers])
    np.testing.assert_array_equal(lower, met / (met.sum(axis=1, keepdims=True) + 1))
    newest = held if limit is None else held[-limit:]
    categories = kept.state()["categories"].tolist()
    assert list(zip(categories, kept.codes.tolist(), strict=True)) == newest
    assert kept.counts.sum() == len(newest)
