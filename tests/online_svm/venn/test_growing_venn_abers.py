"""Venn-Abers on a growing calibration set against the batch fit, itself held to venn-abers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from online_svm import VennAbers
from online_svm.errors import InvalidInput
from online_svm.venn.growing_venn_abers import AbersSet

UNSEEN = 2  # a label that no machine knows
SCORES = st.integers(-4, 4)


@given(
    first=st.lists(st.tuples(SCORES, st.integers(0, UNSEEN)), max_size=30),
    later=st.lists(st.tuples(SCORES, st.integers(-1, UNSEEN)), max_size=30),
    limit=st.none() | st.integers(1, 12),
)
def test_intervals_are_those_of_a_fit_before_every_answer(first, later, limit):
    held = list(first)
    scores, codes = np.array(held, dtype=float).reshape(-1, 2).T
    abers = AbersSet(2, scores[:, None], codes.astype(int), 3, limit)
    asked, labels = np.array(later, dtype=float).reshape(-1, 2).T
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
    assert abers.reason is not None
    assert "one-against-all" in abers.reason
    with pytest.raises(InvalidInput, match="not a multiprobability; use another one"):
        abers.multiprobabilities(queries)
    # The interval runs over what the quotient is at the corners of the pairs.
    corners = np.stack(np.meshgrid(*[[0, 1]] * 3), axis=-1).reshape(-1, 3)
    chosen = np.stack([pairs[:, range(3), corner] for corner in corners])
    values = chosen / np.maximum(chosen.sum(axis=2, keepdims=True), 1e-300)
    np.testing.assert_allclose(answers.lower, values.min(axis=0), atol=1e-12)
    np.testing.assert_allclose(answers.upper, values.max(axis=0), atol=1e-12)
