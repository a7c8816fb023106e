"""Rank categories against a literal reading with Python lists."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from online_svm.venn.rank_predictor import RankedSet

SMALL = st.sampled_from([-1.5, -1.0, -0.5, 0.5, 1.0, 1.5])
EXAMPLES = st.lists(st.tuples(SMALL, st.integers(0, 2)), max_size=25)


def bin_of(score: float, present: list[float], n_bins: int) -> int:
    """Return the bin of a score among `present`, itself included: by its middle rank."""
    ranks = [rank for rank, other in enumerate(sorted(present)) if other == score]
    return int(n_bins * (ranks[0] + ranks[-1]) / 2 // len(present))


def literal_answer(
    score: float, held: list[tuple[float, int]], n_bins: int
) -> tuple[int, list[int]]:
    """Return the category of an example, and the labels counted in it."""
    side = [(abs(s), y) for s, y in held if (s > 0) == (score > 0)]
    present = [s for s, _ in side] + [abs(score)]
    own = bin_of(abs(score), present, n_bins)
    inside = [y for s, y in side if bin_of(s, present, n_bins) == own]
    return (score > 0) * n_bins + own, [inside.count(y) for y in range(3)]


@given(
    first=EXAMPLES,
    later=st.lists(st.tuples(SMALL, st.integers(-1, 2)), max_size=25),
    n_bins=st.integers(1, 5),
    limit=st.none() | st.integers(1, 12),
)
def test_categories_are_those_of_the_ranks_with_the_example_in_them(first, later, n_bins, limit):
    scores, codes = np.array(first, dtype=float).reshape(-1, 2).T
    asked, labels = np.array(later, dtype=float).reshape(-1, 2).T
    ranked = RankedSet(2, n_bins, scores[:, None], codes.astype(int), 3, limit)
    answers = ranked.answer(asked[:, None], labels.astype(int))
    held = list(first)
    for i, (score, code) in enumerate(later):
        held = held if limit is None else held[-limit:]
        category, counts = literal_answer(score, held, n_bins)
        assert answers.category[i] == category
        assert answers.size[i] == sum(counts)
        np.testing.assert_array_equal(answers.lower[i], np.array(counts) / (sum(counts) + 1))
        if code >= 0:
            held.append((score, code))


def test_answers_are_independent_of_the_calibration_order():
    rng = np.random.default_rng(0)
    scores, codes = rng.normal(size=(100, 3)).round(1), rng.integers(0, 3, 100)
    order, queries = rng.permutation(100), rng.normal(size=(50, 3)).round(1)
    plain = RankedSet(3, 4, scores, codes, 3, None)
    shuffled = RankedSet(3, 4, scores[order], codes[order], 3, None)
    np.testing.assert_array_equal(
        plain.multiprobabilities(queries), shuffled.multiprobabilities(queries)
    )
