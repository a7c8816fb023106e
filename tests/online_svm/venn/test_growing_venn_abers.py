"""Venn-Abers on a growing calibration set against the batch fit, itself held to venn-abers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from online_svm import VennAbers
from online_svm.errors import InvalidInput
from online_svm.venn.growing_venn_abers import (
    AbersSet,
    insert,
    isotonic_pair,
    pooled,
    remove,
    with_room,
)


def assert_fitted(lists, held, score):
    """The pair at a score is that of the two isotonic fits with it among the examples held."""
    pair, work = np.empty(2), np.empty((4, len(held) + 1), dtype=np.int64)
    isotonic_pair(lists, 0, score, work, pair)
    fitted = VennAbers().fit([s for s, _ in held], [y for _, y in held])
    assert pair.tolist() == fitted.predict_interval([score])[0].tolist()


def check_walk(seed, first, steps, decimals, slope, keep):
    """Insert, remove and ask at random; hold every value to the fit of all examples."""
    rng = np.random.default_rng(seed)

    def draw(n):
        scores = rng.normal(size=n).round(decimals)
        return scores, (rng.random(n) < 1 / (1 + np.exp(-slope * scores))).astype(np.int64)

    scores, hits = draw(first)
    lists = pooled(scores[:, None], hits[:, None] == 1)
    held = list(zip(scores.tolist(), hits.tolist(), strict=True))
    for score, hit in zip(*draw(steps), strict=True):
        assert_fitted(lists, held, float(score) if rng.random() < 0.5 else float(rng.normal()))
        lists = with_room(lists, 1)
        insert(lists, 0, float(score), int(hit))
        held.append((float(score), int(hit)))
        while len(held) > keep:
            remove(lists, 0, *held.pop(int(rng.integers(len(held)))))
        assert lists.sizes[0] == len(held)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    first=st.integers(0, 150),
    decimals=st.integers(0, 3),
    slope=st.sampled_from([0.0, 1.0, 5.0, -2.0, 50.0]),
    keep=st.integers(0, 200),
)
def test_values_are_those_of_a_fit_under_inserts_removals_and_ties(
    seed, first, decimals, slope, keep
):
    check_walk(seed, first, 60, decimals, slope, keep)


@pytest.mark.parametrize("decimals", [1, 12])
def test_values_are_those_of_a_fit_while_buckets_split_fill_and_empty(decimals):
    check_walk(1, 0, 700, decimals, 2.0, 450)
    check_walk(2, 1200, 60, decimals, 2.0, 100)  # nearly all leave at once


def test_buckets_follow_scores_that_drift_out_of_those_there_were():
    stream = [(float(i), int(i % 3 == 0)) for i in range(1500)]
    scores, hits = np.array(stream[:100]).T
    lists = pooled(scores[:, None], hits[:, None] == 1)
    for i in range(100, 1500):
        lists = with_room(lists, 1)
        insert(lists, 0, *stream[i])
        remove(lists, 0, *stream[i - 100])
        if i % 50 == 0:
            assert_fitted(lists, stream[i - 99 : i + 1], i - 30.5)
    assert lists.sizes[0] == 100
    assert lists.in_use[0] <= 10  # those that emptied were given up


def test_minus_zero_ties_with_zero():
    lists = with_room(pooled(np.array([[0.0]]), np.array([[True]])), 1)
    insert(lists, 0, -0.0, 0)
    assert lists.totals[0, 0, 0] == 2


UNSEEN = 2  # a label that no machine knows
SCORES = st.integers(-4, 4)


@given(
    first=st.lists(st.tuples(SCORES, st.integers(0, UNSEEN)), max_size=30),
    later=st.lists(st.tuples(SCORES, st.integers(-1, UNSEEN)), max_size=30),
    limit=st.none() | st.integers(1, 12),
)
def test_intervals_are_those_of_a_fit_before_every_answer(first, later, limit):
    held = list(first)
    scores, codes = np.array(held, dtype=float).reshape(-1, 2).T.copy()
    abers = AbersSet(2, scores[:, None], codes.astype(int), 3, limit)
    asked, labels = np.array(later, dtype=float).reshape(-1, 2).T.copy()
    answers = abers.answer(asked[:, None], labels.astype(int))
    for i, (score, code) in enumerate(later):
        held = held if limit is None else held[-limit:]
        known = [example for example in held if example[1] != UNSEEN]
        fitted = VennAbers().fit([s for s, _ in known], [y for _, y in known])
        p0, p1 = fitted.predict_interval([score])[0]
        assert answers.size[i] == len(known)
        assert answers.lower[i].tolist() == [1.0 - p1, p0, 0.0]
        assert answers.upper[i].tolist() == [1.0 - p0, p1, 1.0 / (len(known) + 1)]
        assert answers.point[i, UNSEEN] == 0.0
        if code >= 0:
            held.append((score, code))
    assert abers.codes.tolist() == [y for _, y in (held if limit is None else held[-limit:])]


def three_classes(seed, n):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 3, n)
    return rng.normal(size=(n, 3)).round(1) + np.eye(3)[codes], codes


def test_several_classes_are_one_against_all_normalised_and_promise_nothing():
    scores, codes = three_classes(0, 200)
    queries, _ = three_classes(1, 60)
    abers = AbersSet(3, scores, codes, 3, None)
    answers = abers.answer(queries, np.full(60, -1))
    fits = [VennAbers().fit(scores[:, k], codes == k) for k in range(3)]
    pairs = np.stack([fits[k].predict_interval(queries[:, k]) for k in range(3)], axis=1)
    means = pairs.mean(axis=2)
    np.testing.assert_allclose(answers.point, means / means.sum(axis=1, keepdims=True), atol=1e-15)
    assert not abers.is_multiprobability
    with pytest.raises(InvalidInput, match="not a multiprobability; use another one"):
        abers.multiprobabilities(queries)
    # The interval runs over what the quotient is at the corners of the pairs.
    corners = np.stack(np.meshgrid(*[[0, 1]] * 3), axis=-1).reshape(-1, 3)
    chosen = np.stack([pairs[:, range(3), corner] for corner in corners])
    values = chosen / np.maximum(chosen.sum(axis=2, keepdims=True), 1e-300)
    np.testing.assert_allclose(answers.lower, values.min(axis=0), atol=1e-12)
    np.testing.assert_allclose(answers.upper, values.max(axis=0), atol=1e-12)
