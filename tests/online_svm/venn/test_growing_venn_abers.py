"""Venn-Abers on a growing calibration set against the batch fit, itself held to venn-abers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from online_svm import VennAbers
from online_svm.errors import InvalidInput
from online_svm.venn.growing_venn_abers import AbersSet

EXAMPLES = st.lists(st.tuples(st.integers(-4, 4), st.integers(-1, 1)), max_size=30)


@given(first=EXAMPLES, later=EXAMPLES, limit=st.none() | st.integers(1, 12))
def test_intervals_are_those_of_a_fit_before_every_answer(
    first: list[tuple[int, int]], later: list[tuple[int, int]], limit: int | None
) -> None:
    held = [(float(s), y) for s, y in first if y >= 0]
    scores = np.array([s for s, _ in held]).reshape(-1, 1)
    abers = AbersSet(2, scores, np.array([y for _, y in held], dtype=np.int64), 2, limit)
    answers = abers.answer(
        np.array([float(s) for s, _ in later]).reshape(-1, 1),
        np.array([y for _, y in later], dtype=np.int64),
    )
    for i, (score, code) in enumerate(later):
        held = held if limit is None else held[-limit:]
        fitted = VennAbers().fit([s for s, _ in held], [y for _, y in held])
        p0, p1 = fitted.predict_interval([score])[0]
        assert answers.size[i] == len(held)
        assert (answers.lower[i, 1], answers.upper[i, 1]) == (p0, p1)
        assert (answers.lower[i, 0], answers.upper[i, 0]) == (1.0 - p1, 1.0 - p0)
        if code >= 0:
            held.append((float(score), code))


def three_classes(seed: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 3, n)
    return rng.normal(size=(n, 3)).round(1) + np.eye(3)[codes], codes


def test_several_classes_are_one_against_all_normalised_and_promise_nothing() -> None:
    scores, codes = three_classes(0, 200)
    queries, _ = three_classes(1, 60)
    abers = AbersSet(3, scores, codes, 3, None)
    answers = abers.answer(queries, np.full(60, -1))
    pairs = np.stack(
        [
            VennAbers().fit(scores[:, k], codes == k).predict_interval(queries[:, k])
            for k in range(3)
        ],
        axis=1,
    )
    means = pairs.mean(axis=2)
    np.testing.assert_allclose(answers.point, means / means.sum(axis=1, keepdims=True), atol=1e-15)
    assert abers.reason is not None
    assert "one-against-all" in abers.reason
    with pytest.raises(InvalidInput, match="not a multiprobability; use another one"):
        abers.multiprobabilities(queries)


def test_several_classes_intervals_hold_every_normalised_choice_within_the_pairs() -> None:
    scores, codes = three_classes(2, 150)
    queries, _ = three_classes(3, 40)
    answers = AbersSet(3, scores, codes, 3, None).answer(queries, np.full(40, -1))
    rng = np.random.default_rng(4)
    pairs = np.stack(
        [
            VennAbers().fit(scores[:, k], codes == k).predict_interval(queries[:, k])
            for k in range(3)
        ],
        axis=1,
    )
    for _ in range(50):
        share = rng.random(pairs.shape[:2]).round()  # the extremes lie at the corners
        chosen = pairs[:, :, 0] + share * (pairs[:, :, 1] - pairs[:, :, 0])
        values = chosen / np.maximum(chosen.sum(axis=1, keepdims=True), 1e-300)
        assert (values >= answers.lower - 1e-12).all()
        assert (values <= answers.upper + 1e-12).all()


def test_an_unseen_label_has_a_vanishing_interval_and_no_part_in_the_pairs() -> None:
    rng = np.random.default_rng(0)
    scores, codes = rng.normal(size=(30, 1)), rng.integers(0, 2, 30)
    with_unseen = AbersSet(
        2, np.concatenate([scores, [[0.5]]]), np.append(codes, 2), n_classes=3, limit=None
    )
    plain = AbersSet(2, scores, codes, n_classes=2, limit=None)
    query, none = np.array([[0.4]]), np.array([-1])
    ours, expected = with_unseen.answer(query, none), plain.answer(query, none)
    np.testing.assert_array_equal(ours.lower[:, :2], expected.lower)
    assert ours.lower[0, 2] == ours.point[0, 2] == 0.0
    assert ours.upper[0, 2] == pytest.approx(1 / 31)


def test_an_unseen_label_leaves_the_window_like_any_other() -> None:
    scores, codes = np.arange(4.0).reshape(-1, 1), np.array([2, 0, 1, 2])
    abers = AbersSet(2, scores, codes, 3, limit=4)
    abers.answer(np.array([[7.0], [8.0], [9.0]]), np.array([1, 2, 0]))
    assert abers.codes.tolist() == [2, 1, 2, 0]
    sizes = abers.answer(np.array([[0.0]]), np.array([-1])).size
    assert sizes.tolist() == [2]
